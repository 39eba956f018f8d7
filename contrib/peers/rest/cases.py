"""The requests that are put to Ryu's REST server and to Weir's, in their order.

A case is a name and its steps; a step is a method, a path and a body as text. Names begin with what
is asked (`flow/match/..`), and the explanations of differences go by them. Each case leaves the
switch as it found it: what it adds it deletes, and the reads between show what the switch has.
"""
import json
import socket
import struct

ETH_ARP, ETH_IP, ETH_IP6, ETH_MPLS, ETH_PBB = 2054, 2048, 34525, 34887, 35047

# Match fields of 1.3 with what they need beside them.
MATCHES_13 = {
    "in_port": {"in_port": 1},
    "in_port-name": {"in_port": "LOCAL"},
    "in_port-prefix": {"in_port": "OFPP_LOCAL"},
    "in_port-text": {"in_port": "2"},
    "in_phy_port": {"in_port": 1, "in_phy_port": 1},
    "metadata": {"metadata": 5},
    "metadata-hex": {"metadata": "0x1212121212121212"},
    "metadata-mask": {"metadata": "0x19af28be37fa91b/0x1010101010101010"},
    "dl_dst": {"dl_dst": "00:00:00:11:22:33"},
    "eth_dst": {"eth_dst": "00:00:00:11:22:33"},
    "eth_dst-mask": {"eth_dst": "00:00:00:11:22:33/00:00:00:00:ff:ff"},
    "dl_src": {"dl_src": "aa:11:22:33:44:55"},
    "eth_src-mask": {"eth_src": "aa:11:22:33:44:55/00:00:00:00:ff:ff"},
    "dl_type": {"dl_type": 123},
    "eth_type": {"eth_type": 2048},
    "eth_type-hex": {"eth_type": "0x86dd"},
    "dl_vlan": {"dl_vlan": 3},
    "dl_vlan-text": {"dl_vlan": "3"},
    "dl_vlan-hex": {"dl_vlan": "0x1003"},
    "dl_vlan-none": {"dl_vlan": "0x0000"},
    "vlan_vid": {"vlan_vid": 4},
    "vlan_vid-mask": {"vlan_vid": "0x1000/0x1000"},
    "vlan_pcp": {"vlan_vid": 3, "vlan_pcp": 5},
    "ip_dscp": {"ip_dscp": 3, "eth_type": ETH_IP},
    "ip_ecn": {"ip_ecn": 1, "eth_type": ETH_IP6},
    "nw_proto": {"nw_proto": 5, "eth_type": ETH_IP},
    "ip_proto": {"ip_proto": 6, "eth_type": ETH_IP6},
    "nw_src": {"nw_src": "192.168.0.1", "eth_type": ETH_IP},
    "nw_src-arp": {"nw_src": "192.168.0.1", "eth_type": ETH_ARP},
    "nw_dst": {"nw_dst": "192.168.0.1/24", "dl_type": ETH_IP},
    "nw_dst-arp": {"nw_dst": "192.168.0.0/24", "dl_type": ETH_ARP},
    "ipv4_src": {"ipv4_src": "192.168.0.0/255.255.255.0", "eth_type": ETH_IP},
    "ipv4_src-odd-mask": {"ipv4_src": "192.0.0.1/255.0.0.255", "eth_type": ETH_IP},
    "ipv4_dst": {"ipv4_dst": "192.168.0.1", "eth_type": ETH_IP},
    "ipv4_dst-8": {"ipv4_dst": "10.0.0.0/8", "eth_type": ETH_IP},
    "tp_src-tcp": {"tp_src": 1, "ip_proto": 6, "eth_type": ETH_IP},
    "tp_dst-udp": {"tp_dst": 2, "nw_proto": 17, "eth_type": ETH_IP6},
    "tcp_src": {"tcp_src": 3, "ip_proto": 6, "eth_type": ETH_IP},
    "tcp_dst": {"tcp_dst": "4", "ip_proto": 6, "eth_type": ETH_IP6},
    "udp_src": {"udp_src": 5, "ip_proto": 17, "eth_type": ETH_IP},
    "udp_dst": {"udp_dst": 6, "ip_proto": 17, "eth_type": ETH_IP6},
    "sctp_src": {"sctp_src": 7, "ip_proto": 132, "eth_type": ETH_IP},
    "sctp_dst": {"sctp_dst": 8, "ip_proto": 132, "eth_type": ETH_IP6},
    "icmpv4_type": {"icmpv4_type": 5, "ip_proto": 1, "eth_type": ETH_IP},
    "icmpv4_code": {"icmpv4_code": 6, "ip_proto": 1, "eth_type": ETH_IP},
    "arp_op": {"arp_op": 3, "eth_type": ETH_ARP},
    "arp_spa": {"arp_spa": "192.168.0.11", "eth_type": ETH_ARP},
    "arp_spa-mask": {"arp_spa": "192.168.0.0/24", "eth_type": ETH_ARP},
    "arp_tpa": {"arp_tpa": "192.168.0.44/32", "eth_type": ETH_ARP},
    "arp_sha": {"arp_sha": "aa:bb:cc:11:22:33", "eth_type": ETH_ARP},
    "arp_sha-mask": {"arp_sha": "aa:bb:cc:00:00:00/ff:ff:ff:00:00:00", "eth_type": ETH_ARP},
    "arp_tha": {"arp_tha": "aa:bb:cc:11:22:33", "eth_type": ETH_ARP},
    "ipv6_src": {"ipv6_src": "2001::aaaa:bbbb:cccc:1111", "eth_type": ETH_IP6},
    "ipv6_src-64": {"ipv6_src": "2001:db8::/64", "eth_type": ETH_IP6},
    "ipv6_dst": {"ipv6_dst": "2001::ffff:cccc:bbbb:1111", "eth_type": ETH_IP6},
    "ipv6_dst-mask": {"ipv6_dst": "2001:db8::1/ffff:ffff::ffff", "eth_type": ETH_IP6},
    "ipv6_flabel": {"ipv6_flabel": 2, "eth_type": ETH_IP6},
    "icmpv6_type": {"icmpv6_type": 3, "ip_proto": 58, "eth_type": ETH_IP6},
    "icmpv6_code": {"icmpv6_code": 4, "ip_proto": 58, "eth_type": ETH_IP6},
    "ipv6_nd_target": {"ipv6_nd_target": "2001::ffff:cccc:bbbb:1111", "icmpv6_type": 135,
                       "ip_proto": 58, "eth_type": ETH_IP6},
    "ipv6_nd_sll": {"ipv6_nd_sll": "aa:bb:cc:11:22:33", "icmpv6_type": 135, "ip_proto": 58,
                    "eth_type": ETH_IP6},
    "ipv6_nd_tll": {"ipv6_nd_tll": "aa:bb:cc:11:22:33", "icmpv6_type": 136, "ip_proto": 58,
                    "eth_type": ETH_IP6},
    "mpls_label": {"mpls_label": 3, "eth_type": ETH_MPLS},
    "mpls_tc": {"mpls_tc": 2, "eth_type": ETH_MPLS},
    "mpls_bos": {"mpls_bos": 1, "eth_type": ETH_MPLS},
    "pbb_isid": {"pbb_isid": 5, "eth_type": ETH_PBB},
    "pbb_isid-mask": {"pbb_isid": "0x10/0xf0", "eth_type": ETH_PBB},
    "tunnel_id": {"tunnel_id": 7},
    "tunnel_id-mask": {"tunnel_id": "0x10/0xf0"},
    "ipv6_exthdr": {"ipv6_exthdr": 3, "eth_type": ETH_IP6},
    "ipv6_exthdr-mask": {"ipv6_exthdr": "0x40/0x1F0", "eth_type": ETH_IP6},
    "many": {"in_port": 1, "dl_src": "02:00:00:00:00:01", "dl_dst": "02:00:00:00:00:02",
             "dl_vlan": 7, "vlan_pcp": 1, "dl_type": ETH_IP, "nw_proto": 6,
             "nw_src": "10.0.0.0/8", "nw_dst": "10.1.0.0/16", "tp_src": 1000, "tp_dst": 80},
}

MATCHES_10 = {
    "in_port": {"in_port": 1},
    "in_port-name": {"in_port": "LOCAL"},
    "in_port-number": {"in_port": 65534},
    "dl_src": {"dl_src": "aa:11:22:33:44:55"},
    "dl_dst": {"dl_dst": "00:00:00:11:22:33"},
    "dl_vlan": {"dl_vlan": 5},
    "dl_vlan-hex": {"dl_vlan": "0x5"},
    "dl_vlan-none": {"dl_vlan": 65535},
    "dl_vlan_pcp": {"dl_vlan": 3, "dl_vlan_pcp": 3},
    "dl_vlan_pcp-alone": {"dl_vlan_pcp": 3},
    "dl_type": {"dl_type": 123},
    "nw_tos": {"nw_tos": 16, "dl_type": ETH_IP},
    "nw_proto": {"nw_proto": 5, "dl_type": ETH_IP},
    "nw_proto-arp": {"nw_proto": 1, "dl_type": ETH_ARP},
    "nw_src": {"nw_src": "192.168.0.1", "dl_type": ETH_IP},
    "nw_src-24": {"nw_src": "192.168.0.0/24", "dl_type": ETH_IP},
    "nw_src-arp": {"nw_src": "192.168.0.1/32", "dl_type": ETH_ARP},
    "nw_dst": {"nw_dst": "192.168.0.1", "dl_type": ETH_IP},
    "nw_dst-8": {"nw_dst": "10.0.0.0/8", "dl_type": ETH_IP},
    "tp_src-tcp": {"tp_src": 7, "nw_proto": 6, "dl_type": ETH_IP},
    "tp_dst-tcp": {"tp_dst": 8, "nw_proto": 6, "dl_type": ETH_IP},
    "tp_src-udp": {"tp_src": 7, "nw_proto": 17, "dl_type": ETH_IP},
    "tp_dst-udp": {"tp_dst": 8, "nw_proto": 17, "dl_type": ETH_IP},
    "tp_src-icmp": {"tp_src": 8, "nw_proto": 1, "dl_type": ETH_IP},
    "tp_dst-icmp": {"tp_dst": 1, "nw_proto": 1, "dl_type": ETH_IP},
    "many": {"in_port": 1, "dl_src": "02:00:00:00:00:01", "dl_dst": "02:00:00:00:00:02",
             "dl_vlan": 7, "dl_vlan_pcp": 1, "dl_type": ETH_IP, "nw_tos": 32, "nw_proto": 6,
             "nw_src": "10.0.0.0/8", "nw_dst": "10.1.0.0/16", "tp_src": 1000, "tp_dst": 80},
}

IP, TAGGED, LABELLED = {"eth_type": ETH_IP}, {"vlan_vid": 3}, {"eth_type": ETH_MPLS}

# Actions of 1.3, with the match that they need.
ACTIONS_13 = {
    "output": ([{"type": "OUTPUT", "port": 2}], {}),
    "output-text": ([{"type": "OUTPUT", "port": "2"}], {}),
    "output-controller": ([{"type": "OUTPUT", "port": "CONTROLLER", "max_len": 128}], {}),
    "output-in_port": ([{"type": "OUTPUT", "port": "IN_PORT"}], {}),
    "output-flood": ([{"type": "OUTPUT", "port": "FLOOD"}], {}),
    "output-all": ([{"type": "OUTPUT", "port": "OFPP_ALL"}], {}),
    "output-number": ([{"type": "OUTPUT", "port": 4294967293, "max_len": "NO_BUFFER"}], {}),
    "output-two": ([{"type": "OUTPUT", "port": 1}, {"type": "OUTPUT", "port": 2}], {}),
    "none": ([], {}),
    "copy_ttl_out": ([{"type": "COPY_TTL_OUT"}], LABELLED),
    "copy_ttl_in": ([{"type": "COPY_TTL_IN"}], LABELLED),
    "set_mpls_ttl": ([{"type": "SET_MPLS_TTL", "mpls_ttl": 64}], LABELLED),
    "dec_mpls_ttl": ([{"type": "DEC_MPLS_TTL"}], LABELLED),
    "push_vlan": ([{"type": "PUSH_VLAN", "ethertype": 33024}], {}),
    "push_vlan-set": ([{"type": "PUSH_VLAN", "ethertype": 33024},
                       {"type": "SET_FIELD", "field": "vlan_vid", "value": 4102},
                       {"type": "OUTPUT", "port": 2}], {}),
    "pop_vlan": ([{"type": "POP_VLAN"}], TAGGED),
    "push_mpls": ([{"type": "PUSH_MPLS", "ethertype": 34887}], {}),
    "pop_mpls": ([{"type": "POP_MPLS", "ethertype": 2048}], LABELLED),
    "set_queue": ([{"type": "SET_QUEUE", "queue_id": 7}], {}),
    "set_nw_ttl": ([{"type": "SET_NW_TTL", "nw_ttl": 64}], IP),
    "dec_nw_ttl": ([{"type": "DEC_NW_TTL"}], IP),
    "push_pbb": ([{"type": "PUSH_PBB", "ethertype": 35047}], {}),
    "pop_pbb": ([{"type": "POP_PBB"}], {"eth_type": ETH_PBB}),
    "goto_table": ([{"type": "GOTO_TABLE", "table_id": 8}], {}),
    "write_metadata": ([{"type": "WRITE_METADATA", "metadata": 3, "metadata_mask": 3}], {}),
    "write_metadata-hex": ([{"type": "WRITE_METADATA", "metadata": "0x3"}], {}),
    "write_actions": ([{"type": "WRITE_ACTIONS", "actions": [{"type": "OUTPUT", "port": 1}]}], {}),
    "write_actions-empty": ([{"type": "WRITE_ACTIONS", "actions": []}], {}),
    "clear_actions": ([{"type": "CLEAR_ACTIONS"}], {}),
    "all-kinds": ([{"type": "WRITE_METADATA", "metadata": 5, "metadata_mask": 15},
                   {"type": "CLEAR_ACTIONS"},
                   {"type": "WRITE_ACTIONS", "actions": [{"type": "DEC_NW_TTL"},
                                                         {"type": "OUTPUT", "port": 2}]},
                   {"type": "OUTPUT", "port": 1}, {"type": "GOTO_TABLE", "table_id": 1}], IP),
}

SET_FIELDS_13 = {
    "eth_dst": ("aa:bb:cc:11:22:33", {}), "eth_src": ("aa:bb:cc:11:22:33", {}),
    "eth_type": (2048, {}), "vlan_vid": (4102, TAGGED), "vlan_pcp": (3, TAGGED),
    "ip_dscp": (3, IP), "ip_ecn": (1, IP), "ip_proto": (6, IP),
    "ipv4_src": ("192.168.0.1", IP), "ipv4_dst": ("192.168.0.1", IP),
    "tcp_src": (1, {"eth_type": ETH_IP, "ip_proto": 6}),
    "tcp_dst": (2, {"eth_type": ETH_IP, "ip_proto": 6}),
    "udp_src": (3, {"eth_type": ETH_IP, "ip_proto": 17}),
    "udp_dst": (4, {"eth_type": ETH_IP, "ip_proto": 17}),
    "sctp_src": (5, {"eth_type": ETH_IP, "ip_proto": 132}),
    "sctp_dst": (6, {"eth_type": ETH_IP, "ip_proto": 132}),
    "icmpv4_type": (7, {"eth_type": ETH_IP, "ip_proto": 1}),
    "icmpv4_code": (8, {"eth_type": ETH_IP, "ip_proto": 1}),
    "arp_op": (2, {"eth_type": ETH_ARP}), "arp_spa": ("192.168.0.1", {"eth_type": ETH_ARP}),
    "arp_tpa": ("192.168.0.1", {"eth_type": ETH_ARP}),
    "arp_sha": ("aa:bb:cc:11:22:33", {"eth_type": ETH_ARP}),
    "arp_tha": ("aa:bb:cc:11:22:33", {"eth_type": ETH_ARP}),
    "ipv6_src": ("2001::1", {"eth_type": ETH_IP6}), "ipv6_dst": ("2001::2", {"eth_type": ETH_IP6}),
    "ipv6_flabel": (5, {"eth_type": ETH_IP6}),
    "icmpv6_type": (135, {"eth_type": ETH_IP6, "ip_proto": 58}),
    "icmpv6_code": (0, {"eth_type": ETH_IP6, "ip_proto": 58}),
    "mpls_label": (3, LABELLED), "mpls_tc": (2, LABELLED), "mpls_bos": (1, LABELLED),
    "pbb_isid": (5, {"eth_type": ETH_PBB}), "tunnel_id": (7, {}),
}

ACTIONS_10 = {
    "output": [{"type": "OUTPUT", "port": 2}],
    "output-name": [{"type": "OUTPUT", "port": "CONTROLLER"}],
    "output-number": [{"type": "OUTPUT", "port": 65531}],
    "none": [],
    "set_vlan_vid": [{"type": "SET_VLAN_VID", "vlan_vid": 5}, {"type": "OUTPUT", "port": 2}],
    "set_vlan_pcp": [{"type": "SET_VLAN_PCP", "vlan_pcp": 3}, {"type": "OUTPUT", "port": 2}],
    "strip_vlan": [{"type": "STRIP_VLAN"}, {"type": "OUTPUT", "port": 2}],
    "set_dl_src": [{"type": "SET_DL_SRC", "dl_src": "aa:11:22:33:44:55"}],
    "set_dl_dst": [{"type": "SET_DL_DST", "dl_dst": "aa:11:22:33:44:55"}],
    "set_nw_src": [{"type": "SET_NW_SRC", "nw_src": "192.168.0.1"}],
    "set_nw_dst": [{"type": "SET_NW_DST", "nw_dst": "192.168.0.1"}],
    "set_nw_tos": [{"type": "SET_NW_TOS", "nw_tos": 184}],
    "set_tp_src": [{"type": "SET_TP_SRC", "tp_src": 8080}],
    "set_tp_dst": [{"type": "SET_TP_DST", "tp_dst": "8080"}],
    "enqueue": [{"type": "ENQUEUE", "port": 3, "queue_id": 1}],
}

# Values of a flow entry beside match and actions.
FLOW_KEYS = {
    "cookie": {"cookie": 1}, "cookie-hex": {"cookie": "0x10"},
    "cookie-large": {"cookie": 18446744073709551615},
    "idle_timeout": {"idle_timeout": 300}, "hard_timeout": {"hard_timeout": 300},
    "priority": {"priority": 1}, "priority-text": {"priority": "0x7fff"},
    "flags": {"flags": 1}, "buffer": {"buffer_id": "NO_BUFFER"},
    "out_port": {"out_port": "ANY"}, "nothing": {},
}


class Cases:
    """Collects cases; `steps` are (method, path, body), where a body that is no text is JSON."""

    def __init__(self):
        self.cases = []

    def add(self, name, *steps):
        done = []
        for method, path, *body in steps:
            text = body[0] if body else ""
            done.append((method, path, text if isinstance(text, str) else json.dumps(text)))
        self.cases.append((name, done))

    def flow(self, name, body, *between, command="add"):
        """A flow entry added, looked at, and deleted with all others."""
        body = {"dpid": 1, **body} if isinstance(body, dict) else body
        self.add(name, ("POST", f"/stats/flowentry/{command}", body), *between,
                 ("GET", "/stats/flow/1"), ("DELETE", "/stats/flowentry/clear/1"))


OUT = [{"type": "OUTPUT", "port": 2}]


def common(cases, version):
    """What both versions have."""
    for path in ["/stats/switches", "/stats/desc/1", "/stats/desc/0x1", "/stats/table/1",
                 "/stats/port/1", "/stats/port/1/1", "/stats/port/1/ALL", "/stats/portdesc/1",
                 "/stats/flow/1", "/stats/aggregateflow/1", "/stats/queue/1", "/stats/queue/1/1",
                 "/stats/queue/1/ALL", "/stats/queue/1/ALL/ALL", "/stats/queue/1/1/ALL",
                 "/stats/queueconfig/1/1", "/stats/role/1"]:
        cases.add("read" + path[6:], ("GET", path))
    cases.add("read/desc/no-such-switch", ("GET", "/stats/desc/99"))
    cases.add("read/desc/no-dpid", ("GET", "/stats/desc/one"))
    cases.add("read/no-such-path", ("GET", "/stats/nothing/1"))
    cases.add("read/port/no-such-port", ("GET", "/stats/port/1/77"))
    for path in ["queuedesc/1", "meterdesc/1", "flowdesc/1"]:
        cases.add("read/later-version/" + path.split("/")[0], ("GET", "/stats/" + path))
    cases.add("read/flow/post-empty", ("POST", "/stats/flow/1"))
    for name, keys in FLOW_KEYS.items():
        cases.flow("flow/keys/" + name, {"match": {"in_port": 1}, "actions": OUT, **keys})
    add = {"dpid": 1, "priority": 11, "match": {"in_port": 1}, "actions": OUT}
    other = {"dpid": 1, "priority": 12, "match": {"in_port": 2, "dl_type": ETH_IP},
             "actions": [{"type": "OUTPUT", "port": 1}], "cookie": 5}
    both = [("POST", "/stats/flowentry/add", add), ("POST", "/stats/flowentry/add", other)]
    read, clear = ("GET", "/stats/flow/1"), ("DELETE", "/stats/flowentry/clear/1")
    changed = {**add, "actions": [{"type": "OUTPUT", "port": 3}]}
    cases.add("flow/command/modify", *both, ("POST", "/stats/flowentry/modify", changed), read,
              clear)
    cases.add("flow/command/modify_strict", *both,
              ("POST", "/stats/flowentry/modify_strict", changed), read,
              ("POST", "/stats/flowentry/modify_strict", {**changed, "priority": 13}), read, clear)
    cases.add("flow/command/delete", *both,
              ("POST", "/stats/flowentry/delete", {"dpid": 1, "match": {"in_port": 1}}), read,
              clear, read)
    cases.add("flow/command/delete_strict", *both,
              ("POST", "/stats/flowentry/delete_strict", add), read, clear)
    cases.add("flow/command/delete-out_port", *both,
              ("POST", "/stats/flowentry/delete", {"dpid": 1, "out_port": 1}), read, clear)
    cases.add("flow/command/no-such", ("POST", "/stats/flowentry/replace", add), read)
    for name, body in {
            "match": {"match": {"in_port": 1}}, "priority": {"priority": 12},
            "priority-none": {"priority": 99}, "out_port": {"out_port": 2},
            "table": {"table_id": 0}, "table-all": {"table_id": "ALL"},
            "nothing": {}}.items():
        cases.add("flow/filter/" + name, *both, ("POST", "/stats/flow/1", body), clear)
        if not name.startswith("priority"):
            cases.add("flow/filter-sum/" + name, *both, ("POST", "/stats/aggregateflow/1", body),
                      clear)
    cases.flow("body/python", "{'dpid': 1, 'match': {'in_port': 0x1}, 'actions': "
               "[{'type': 'OUTPUT', 'port': 2,},], }")
    cases.flow("body/python-tuple", "{'dpid': 1, 'match': {}, 'actions': "
               "({'type': 'OUTPUT', 'port': 2},)}")
    cases.flow("body/json-null", '{"dpid": 1, "match": {"in_port": 1}, "actions": null}')
    cases.flow("body/dpid-text", {"dpid": "0x1", "match": {"in_port": 1}, "actions": OUT})
    cases.flow("body/broken", '{"dpid": 1, ')
    cases.flow("body/list", "[1, 2]")
    cases.flow("body/empty", "")
    cases.flow("body/no-dpid", '{"match": {}}')
    cases.flow("body/no-such-dpid", {"dpid": 9, "match": {}})
    cases.flow("body/odd-dpid", {"dpid": "nine", "match": {}})
    cases.flow("body/call", "__import__('os').getpid()")
    cases.flow("unknown-key/flow", {"match": {"in_port": 1}, "actions": OUT, "prio": 5})
    cases.flow("unknown-key/match", {"match": {"in_prot": 1}, "actions": OUT})
    cases.flow("unknown-key/action", {"match": {"in_port": 1},
                                      "actions": [{"type": "OUTPUT", "port": 2, "prot": 3}]})
    cases.flow("unknown-key/action-type", {"match": {"in_port": 1},
                                           "actions": [{"type": "OUTPUTT", "port": 2}]})
    cases.add("unknown-key/filter", ("POST", "/stats/flow/1", {"matches": {}}))
    cases.flow("refused/no-such-port", {"match": {}, "actions": [{"type": "OUTPUT", "port": 0}]})
    cases.flow("refused/overlap", {"match": {"dl_src": "02:00:00:00:00:01"}, "priority": 11,
                                   "actions": OUT, "flags": 2})
    cases.add("refused/overlap-2", ("POST", "/stats/flowentry/add", add),
              ("POST", "/stats/flowentry/add",
               {**add, "match": {"dl_src": "02:00:00:00:00:01"}, "flags": 2}), read, clear)
    for name, value in {"in_port-odd": {"in_port": "eth0"}, "in_port-float": {"in_port": 1.5},
                        "dl_src-odd": {"dl_src": "02:00"}, "dl_src-number": {"dl_src": 5},
                        "dl_type-odd": {"dl_type": "IPv4"}, "dl_type-large": {"dl_type": 65536},
                        "nw_src-odd": {"dl_type": ETH_IP, "nw_src": "10.0.0"},
                        "nw_src-prefix": {"dl_type": ETH_IP, "nw_src": "10.0.0.0/33"},
                        "in_port-null": {"in_port": None}, "list": {"in_port": [1]}}.items():
        body = json.dumps({"dpid": 1, "match": value, "actions": OUT}).replace("null", "None")
        cases.flow("odd-value/" + name, body)
    for name, keys in {"priority-large": {"priority": 65536}, "priority-minus": {"priority": -1},
                       "cookie-large": {"cookie": 18446744073709551616},
                       "timeout-text": {"idle_timeout": "long"},
                       "match-list": {"match": []}, "actions-object": {"actions": {}}}.items():
        cases.flow("odd-value/" + name, {"match": {}, "actions": OUT, **keys})
    for name, body in {
            "down": {"port_no": 1, "config": 1, "mask": 1},
            "up": {"port_no": 1, "config": 0, "mask": 1},
            "no_fwd": {"port_no": "2", "config": 32, "mask": 32},
            "fwd": {"port_no": 2, "config": 0, "mask": 32}}.items():
        cases.add("port/" + name, ("POST", "/stats/portdesc/modify", {"dpid": 1, **body}),
                  ("GET", "/stats/portdesc/1"))
    cases.add("port/no-such-port", ("POST", "/stats/portdesc/modify", {"dpid": 1, "port_no": 77}))
    cases.add("port/no-such-command", ("POST", "/stats/portdesc/drop", {"dpid": 1, "port_no": 1}))
    cases.add("port/no-port", ("POST", "/stats/portdesc/modify", {"dpid": 1}))
    cases.add("port/other-address", ("POST", "/stats/portdesc/modify",
                                     {"dpid": 1, "port_no": 1, "hw_addr": "02:00:00:00:00:99",
                                      "config": 1, "mask": 1}), ("GET", "/stats/portdesc/1"))
    for name, body in {"ascii": {"experimenter": 0x7FFFFFFF, "exp_type": 0, "data": "abc"},
                       "base64": {"experimenter": 0x7FFFFFFF, "data_type": "base64",
                                  "data": "YWJj"},
                       "odd": {"experimenter": 1, "data_type": "utf8", "data": "a"}}.items():
        cases.add("experimenter/" + name, ("POST", "/stats/experimenter/1", body))


def version_10(cases):
    for name, match in MATCHES_10.items():
        cases.flow("flow/match/" + name, {"match": match, "actions": OUT})
    for name, actions in ACTIONS_10.items():
        cases.flow("flow/action/" + name, {"match": {"dl_vlan": 3}, "actions": actions})
    for name, match in {"nw_src": {"nw_src": "10.0.0.1"}, "nw_proto": {"nw_proto": 6},
                        "tp_dst": {"tp_dst": 80}, "tp_dst-ip": {"dl_type": ETH_IP, "tp_dst": 80},
                        "nw_tos": {"nw_tos": 4}}.items():
        cases.flow("lacking/" + name, {"match": match, "actions": OUT})
    for name, actions in {"set_vlan_vid": [{"type": "SET_VLAN_VID"}],
                          "output": [{"type": "OUTPUT"}],
                          "set_dl_src": [{"type": "SET_DL_SRC"}],
                          "set_tp_dst": [{"type": "SET_TP_DST"}]}.items():
        cases.flow("no-argument/" + name, {"match": {}, "actions": actions})
    for path in ["meter", "meterconfig", "meterfeatures", "group", "groupdesc", "groupfeatures",
                 "tablefeatures"]:
        cases.add("later-version/" + path, ("GET", f"/stats/{path}/1"))
    cases.add("later-version/meterentry",
              ("POST", "/stats/meterentry/add", {"dpid": 1, "meter_id": 1}))
    cases.add("later-version/groupentry",
              ("POST", "/stats/groupentry/add", {"dpid": 1, "group_id": 1}))
    cases.add("later-version/role", ("POST", "/stats/role", {"dpid": 1, "role": "EQUAL"}))
    cases.flow("later-version/goto_table",
               {"match": {}, "actions": [{"type": "GOTO_TABLE", "table_id": 1}]})
    cases.flow("later-version/match", {"match": {"ipv6_src": "::1"}, "actions": OUT})
    cases.add("later-version/queueconfig", ("GET", "/stats/queueconfig/1"))


def version_13(cases):
    for name, match in MATCHES_13.items():
        cases.flow("flow/match/" + name, {"match": match, "actions": OUT})
    for name, (actions, match) in ACTIONS_13.items():
        cases.flow("flow/action/" + name, {"match": match, "actions": actions})
    for name, (value, match) in SET_FIELDS_13.items():
        action = {"type": "SET_FIELD", "field": name, "value": value}
        cases.flow("flow/set_field/" + name, {"match": match, "actions": [action]})
    for path in ["tablefeatures", "meter", "meterconfig", "meterfeatures", "group", "groupdesc",
                 "groupfeatures", "queueconfig"]:
        cases.add("read/" + path, ("GET", f"/stats/{path}/1"))
    cases.add("read/meter/all", ("GET", "/stats/meter/1/ALL"))
    cases.add("read/group/all", ("GET", "/stats/group/1/ALL"))
    cases.add("read/meter/no-such", ("GET", "/stats/meter/1/7"))
    cases.add("read/group/no-such", ("GET", "/stats/group/1/7"))
    for name, match in {"ipv4": {"ipv4_src": "10.0.0.1"}, "tcp": {"tcp_dst": 80},
                        "pcp": {"vlan_pcp": 3}, "arp": {"arp_op": 1}}.items():
        cases.flow("refused/lacking-" + name, {"match": match, "actions": OUT})
    for name, actions in {
            "no-such-group": [{"type": "GROUP", "group_id": 99}],
            "no-such-meter": [{"type": "METER", "meter_id": 99}],
            "goto-0": [{"type": "GOTO_TABLE", "table_id": 0}],
            "push-odd": [{"type": "PUSH_VLAN", "ethertype": 2048}],
            "experimenter": [{"type": "EXPERIMENTER", "experimenter": 1, "data": "abcd"}],
            "set-vid": [{"type": "SET_FIELD", "field": "vlan_vid", "value": 5}]}.items():
        cases.flow("refused/" + name, {"match": {}, "actions": actions})
    for name, actions in {"set_field": [{"type": "SET_FIELD", "field": "colour", "value": 1}],
                          "strip_vlan": [{"type": "STRIP_VLAN"}],
                          "write_actions": [{"type": "WRITE_ACTIONS",
                                             "actions": [{"type": "GOTO_TABLE", "table_id": 1}]}],
                          }.items():
        cases.flow("unknown-key/" + name, {"match": {}, "actions": actions})
    for name, actions in {"push_vlan": [{"type": "PUSH_VLAN"}], "output": [{"type": "OUTPUT"}],
                          "set_queue": [{"type": "SET_QUEUE"}],
                          "goto": [{"type": "GOTO_TABLE"}]}.items():
        cases.flow("no-argument/" + name, {"match": {}, "actions": actions})
    cases.flow("odd-value/tp_dst-alone", {"match": {"tp_dst": 80}, "actions": OUT})
    cases.flow("odd-value/tp_dst-sctp", {"match": {"eth_type": ETH_IP, "ip_proto": 132,
                                                   "tp_dst": 80}, "actions": OUT})
    cases.flow("flow/keys/table", {"table_id": 3, "match": {"in_port": 1}, "actions": OUT})
    cases.flow("refused/table", {"table_id": 255, "match": {"in_port": 1}, "actions": OUT})
    cases.flow("instructions", {"match": {"in_port": 1}, "instructions": [
        {"type": "APPLY_ACTIONS", "actions": OUT}]})
    meters(cases)
    groups(cases)
    for number, role in enumerate(["EQUAL", "MASTER", "SLAVE", "NOCHANGE", "EQUAL"]):
        cases.add(f"role/{number}-{role.lower()}",
                  ("POST", "/stats/role", {"dpid": 1, "role": role}), ("GET", "/stats/role/1"))
    cases.add("role/odd", ("POST", "/stats/role", {"dpid": 1, "role": "KING"}),
              ("GET", "/stats/role/1"))


def meters(cases):
    read = [("GET", "/stats/meterconfig/1"), ("GET", "/stats/meter/1"),
            ("GET", "/stats/meterconfig/1/1")]
    delete = ("POST", "/stats/meterentry/delete", {"dpid": 1, "meter_id": 1})
    drop = {"type": "DROP", "rate": 1000}
    for name, meter in {
            "kbps": {"flags": "KBPS", "bands": [drop]},
            "pktps": {"flags": ["PKTPS"], "bands": [drop]},
            "burst": {"flags": ["KBPS", "BURST"], "bands": [{**drop, "burst_size": 50}]},
            "stats": {"flags": ["PKTPS", "STATS", "BURST"], "bands": [{**drop, "burst_size": 5}]},
            "remark": {"flags": "KBPS", "bands": [{"type": "DSCP_REMARK", "rate": "0x3e8",
                                                   "prec_level": 1}]},
            "two": {"flags": "KBPS", "bands": [drop, {"type": "DROP", "rate": 2000}]},
            "none": {"flags": "KBPS", "bands": []}}.items():
        cases.add("meter/" + name,
                  ("POST", "/stats/meterentry/add", {"dpid": 1, "meter_id": 1, **meter}), *read,
                  delete)
    add = ("POST", "/stats/meterentry/add", {"dpid": 1, "meter_id": 1, "flags": "KBPS",
                                             "bands": [drop]})
    cases.add("meter/modify", add,
              ("POST", "/stats/meterentry/modify",
               {"dpid": 1, "meter_id": 1, "flags": "PKTPS", "bands": [{**drop, "rate": 5}]}),
              *read, delete)
    cases.add("meter/used", add, ("POST", "/stats/flowentry/add",
                                  {"dpid": 1, "match": {"in_port": 1},
                                   "actions": [{"type": "METER", "meter_id": 1}] + OUT}),
              ("GET", "/stats/flow/1"), *read, delete, ("GET", "/stats/flow/1"))
    cases.add("meter/delete-all", add,
              ("POST", "/stats/meterentry/delete", {"dpid": 1, "meter_id": "ALL"}),
              ("GET", "/stats/meterconfig/1"))
    for name, body in {"twice": add[2]}.items():
        cases.add("refused/meter-" + name, add, ("POST", "/stats/meterentry/add", body), *read,
                  delete)
    cases.add("refused/meter-no-such", ("POST", "/stats/meterentry/modify", add[2]))
    cases.add("refused/meter-zero", ("POST", "/stats/meterentry/add",
                                     {"dpid": 1, "flags": "KBPS", "bands": [drop]}))
    cases.add("unknown-key/meter-flag", ("POST", "/stats/meterentry/add",
                                         {"dpid": 1, "meter_id": 1, "flags": ["KBPS", "FAST"],
                                          "bands": [drop]}), read[0], delete)
    cases.add("unknown-key/meter-band", ("POST", "/stats/meterentry/add",
                                         {"dpid": 1, "meter_id": 1, "flags": ["KBPS"],
                                          "bands": [{"type": "SLOW", "rate": 1}]}), read[0],
              delete)
    cases.add("unknown-key/meter", ("POST", "/stats/meterentry/add",
                                    {"dpid": 1, "meter_id": 1, "flag": ["KBPS"],
                                     "bands": [drop]}), read[0], delete)
    cases.add("meter/no-such-command", ("POST", "/stats/meterentry/put", add[2]))


def groups(cases):
    read = [("GET", "/stats/groupdesc/1"), ("GET", "/stats/group/1"), ("GET", "/stats/group/1/1")]
    delete = ("POST", "/stats/groupentry/delete", {"dpid": 1, "group_id": 1})
    one = [{"actions": OUT}]
    two = [{"weight": 1, "actions": OUT}, {"weight": 2, "actions": [{"type": "OUTPUT", "port": 3}]}]
    for name, group in {
            "all": {"type": "ALL", "buckets": one}, "default-type": {"buckets": one},
            "select": {"type": "SELECT", "buckets": two},
            "indirect": {"type": "INDIRECT", "buckets": one},
            "ff": {"type": "FF", "buckets": [{"watch_port": 2, "actions": OUT}]},
            "none": {"type": "ALL", "buckets": []},
            "set": {"type": "ALL", "buckets": [{"actions": [
                {"type": "SET_FIELD", "field": "eth_dst", "value": "02:00:00:00:00:01"}] + OUT}]},
            }.items():
        cases.add("group/" + name,
                  ("POST", "/stats/groupentry/add", {"dpid": 1, "group_id": 1, **group}), *read,
                  delete)
    add = ("POST", "/stats/groupentry/add",
           {"dpid": 1, "group_id": 1, "type": "ALL", "buckets": one})
    cases.add("group/modify", add, ("POST", "/stats/groupentry/modify",
                                    {"dpid": 1, "group_id": 1, "type": "SELECT", "buckets": two}),
              *read, delete)
    cases.add("group/used", add, ("POST", "/stats/flowentry/add",
                                  {"dpid": 1, "match": {"in_port": 1},
                                   "actions": [{"type": "GROUP", "group_id": 1}]}),
              ("GET", "/stats/flow/1"), ("POST", "/stats/flow/1", {"out_group": 1}), *read, delete,
              ("GET", "/stats/flow/1"))
    cases.add("group/delete-all", add,
              ("POST", "/stats/groupentry/delete", {"dpid": 1, "group_id": "ALL"}), read[0])
    cases.add("refused/group-twice", add, add, read[0], delete)
    cases.add("refused/group-no-such", ("POST", "/stats/groupentry/modify", add[2]))
    cases.add("refused/group-indirect", ("POST", "/stats/groupentry/add",
                                         {"dpid": 1, "group_id": 1, "type": "INDIRECT",
                                          "buckets": two}), read[0], delete)
    cases.add("refused/group-number", ("POST", "/stats/groupentry/add",
                                       {"dpid": 1, "group_id": "ANY", "buckets": one}), read[0])
    cases.add("unknown-key/group-type", ("POST", "/stats/groupentry/add",
                                         {"dpid": 1, "group_id": 1, "type": "SOME",
                                          "buckets": one}), read[0], delete)
    cases.add("unknown-key/bucket", ("POST", "/stats/groupentry/add",
                                     {"dpid": 1, "group_id": 1, "buckets": [
                                         {"wait": 1, "actions": OUT}]}), read[0], delete)
    cases.add("unknown-key/bucket-action", ("POST", "/stats/groupentry/add",
                                            {"dpid": 1, "group_id": 1, "buckets": [
                                                {"actions": [{"type": "GOTO_TABLE",
                                                              "table_id": 1}]}]}), read[0], delete)
    cases.add("group/no-such-command", ("POST", "/stats/groupentry/put", add[2]))


def ofctl(version):
    """All cases of a version for ofctl_rest."""
    cases = Cases()
    common(cases, version)
    {"10": version_10, "13": version_13}[version](cases)
    return cases.cases


# Hosts of the router's networks: interface, Ethernet address, address.
A = ("p1", "04:00:00:00:00:01", "172.16.20.10")
B = ("p2", "04:00:00:00:00:02", "172.16.30.10")
GATEWAY = ("p3", "04:00:00:00:00:03", "192.168.10.2")
# The Ethernet addresses of the switch's ports, which are the router's.
OWN = {"p1": "02:00:00:00:01:01", "p2": "02:00:00:00:01:02", "p3": "02:00:00:00:01:03"}
NETWORKS = ["172.16.20.1/24", "172.16.30.1/24", "192.168.10.1/24"]


def frame(host, dst, packet, vlan):
    """A frame of a host, in hex."""
    tag = b"" if vlan is None else bytes.fromhex("8100") + vlan.to_bytes(2, "big")
    head = bytes.fromhex((dst + host[1]).replace(":", "")) + tag
    return (head + packet).ljust(64, b"\0").hex()


def arp(host, op, target, vlan=None):
    """A question for an address, or the answer to who has asked."""
    dst = "ff:ff:ff:ff:ff:ff" if op == 1 else OWN[host[0]]
    tha = bytes(6) if op == 1 else bytes.fromhex(dst.replace(":", ""))
    packet = bytes.fromhex("0806000108000604") + op.to_bytes(2, "big")
    packet += bytes.fromhex(host[1].replace(":", "")) + socket.inet_aton(host[2])
    return frame(host, dst, packet + tha + socket.inet_aton(target), vlan)


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def ipv4(host, target, protocol, payload, ttl=64, vlan=None, dst=None):
    head = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(payload), 1, 0, ttl, protocol)
    addresses = socket.inet_aton(host[2]) + socket.inet_aton(target)
    head += checksum(head + b"\0\0" + addresses) + addresses
    packet = b"\x08\x00" + head + payload
    return frame(host, dst or OWN[host[0]], packet, vlan)


def udp(host, target, **more):
    return ipv4(host, target, 17, struct.pack(">HHHH", 4000, 53, 16, 0) + b"payload!", **more)


def ping(host, target, **more):
    body = struct.pack(">HH", 7, 9) + b"payload!"
    return ipv4(host, target, 1, b"\x08\0" + checksum(b"\x08\0" + body) + body, **more)


def topology(version):
    """All cases for rest_topology: two switches with a link, and a host at each of two ports."""
    cases = Cases()
    two = "0000000000000002"
    cases.add("topology/second", ("UNTIL", "/v1.0/topology/switches", {"needles": {two: 2}}))
    cases.add("topology/link", ("UNTIL", "/v1.0/topology/links", {"needles": {two: 2}}))
    if version == "13":
        # In 1.0 packets that no entry matches come to the controller anyway.
        cases.add("topology/miss", ("POST", "/stats/flowentry/add", {
            "dpid": 1, "priority": 0, "actions": [{"type": "OUTPUT", "port": "CONTROLLER"}]}))
    hosts = {A[1]: ("p1", arp(A, 1, "172.16.20.1")), B[1]: ("p2", udp(B, A[2]))}
    for mac, sent in hosts.items():
        cases.add("topology/host/" + mac, ("UNTIL", "/v1.0/topology/hosts", {
            "needles": {mac: 1}, "frames": [sent]}))
    for path in ["switches", "links", "hosts"]:
        cases.add(f"topology/{path}/2", ("GET", f"/v1.0/topology/{path}/{two}"))
        cases.add("topology/" + path, ("GET", "/v1.0/topology/" + path))
        cases.add(f"topology/{path}/1", ("GET", f"/v1.0/topology/{path}/0000000000000001"))
        cases.add(f"topology/{path}/no-such", ("GET", f"/v1.0/topology/{path}/0000000000000009"))
        cases.add(f"topology/{path}/short", ("GET", f"/v1.0/topology/{path}/1"))
    cases.add("topology/no-such", ("GET", "/v1.0/topology/ports"))
    return cases.cases


ONE = "0000000000000001"

RULES = {
    "nw": {"nw_src": "10.0.0.1/32", "nw_dst": "10.0.0.2/32", "nw_proto": "ICMP"},
    "net": {"nw_src": "10.0.0.0/24"}, "mac": {"dl_type": "IPv4", "dl_src": "02:00:00:00:00:01"},
    "dst": {"dl_type": "IPv4", "dl_dst": "02:00:00:00:00:01", "in_port": 1},
    "arp": {"dl_type": "ARP"}, "tcp": {"dl_type": "IPv4", "nw_proto": "TCP", "tp_dst": 80},
    "udp": {"nw_dst": "10.1.0.0/16", "nw_proto": "UDP", "tp_src": "53"},
    "ipv6": {"ipv6_src": "fd00::/64", "nw_proto": "ICMPv6"},
    "ipv6-tcp": {"dl_type": "IPv6", "ipv6_dst": "fd00::1", "nw_proto": "TCP", "tp_dst": 80},
}

ODD_RULES = {
    "tcp-alone": {"nw_proto": "TCP"}, "nothing": {}, "port-alone": {"in_port": 1},
    "both": {"nw_src": "10.0.0.1", "ipv6_src": "::1"}, "arp-tcp": {"dl_type": "ARP",
                                                                   "nw_proto": "TCP"},
    "type": {"dl_type": "IPX"}, "proto": {"dl_type": "IPv4", "nw_proto": "SCTP"},
    "6-in-4": {"dl_type": "IPv4", "ipv6_dst": "::1"}, "4-in-6": {"dl_type": "IPv6",
                                                                 "nw_dst": "10.0.0.1"},
    "icmpv6": {"nw_src": "10.0.0.1", "nw_proto": "ICMPv6"},
    "address": {"nw_src": "10.0.0"}, "key": {"nw_src": "10.0.0.1", "nw_destination": "10.0.0.2"},
}


def firewall(version):
    """All cases for rest_firewall; each begins without rules, and with a firewall that logs."""
    cases = Cases()
    rules = f"/firewall/rules/{ONE}"
    read = ("GET", rules)
    for path in ["module/status", "log/status", "rules/" + ONE, "rules/all", f"rules/{ONE}/all",
                 f"rules/{ONE}/2", "rules/0000000000000009", f"rules/{ONE}/1", f"rules/{ONE}/5000",
                 "module/nothing"]:
        cases.add("firewall/read/" + path, ("GET", "/firewall/" + path))
    for app, words in [("module", "enable"), ("module", "disable"), ("log", "enable"),
                       ("log", "disable")]:
        for switch in [ONE, "all"]:
            cases.add(f"firewall/{app}/{words}/{switch}",
                      ("PUT", f"/firewall/{app}/{words}/{switch}"),
                      ("GET", f"/firewall/{app}/status"))
    four = [name for name in RULES if version == "13" or not name.startswith("ipv6")]
    for name in four:
        cases.add("firewall/rule/" + name, ("POST", rules, RULES[name]), read,
                  ("DELETE", rules, {"rule_id": "all"}), read)
    for name, keys in {"deny": {"actions": "DENY"}, "allow": {"actions": "ALLOW"},
                       "priority": {"priority": 10}, "priority-text": {"priority": "10"}}.items():
        cases.add("firewall/rule/" + name, ("POST", rules, {**RULES["net"], **keys}), read)
    for name in ODD_RULES:
        cases.add("firewall/odd/" + name, ("POST", rules, ODD_RULES[name]), read)
    for name, keys in {"action": {"actions": "DROP"}, "priority": {"priority": 65535},
                       "priority-0": {"priority": 0}}.items():
        cases.add("firewall/odd/" + name, ("POST", rules, {**RULES["net"], **keys}), read)
    cases.add("firewall/odd/body", ("POST", rules, "{"), read)
    cases.add("firewall/vlan/2", ("POST", rules + "/2", RULES["net"]), ("GET", rules + "/all"),
              ("GET", rules + "/2"), read, ("DELETE", rules + "/2", {"rule_id": "all"}),
              ("GET", rules + "/all"))
    cases.add("firewall/delete/no-such", ("DELETE", rules, {"rule_id": 77}))
    cases.add("firewall/delete/none", ("DELETE", rules, {"rule_id": "all"}))
    cases.add("firewall/delete/odd", ("DELETE", rules, {"rule_id": "some"}))
    cases.add("firewall/delete/no-body", ("DELETE", rules))
    cases.add("firewall/log-keeps-rules", ("POST", rules, RULES["net"]),
              ("POST", rules, {**RULES["arp"], "actions": "DENY"}),
              ("PUT", "/firewall/log/disable/" + ONE), read,
              ("PUT", "/firewall/log/enable/" + ONE), read)
    return cases.cases


def qos(version):
    """All cases for rest_qos; each begins without rules."""
    cases = Cases()
    rules = f"/qos/rules/{ONE}"
    read = ("GET", rules)
    for path in ["queue/" + ONE, "queue/status/" + ONE, "rules/" + ONE, "rules/all",
                 f"rules/{ONE}/all", f"rules/{ONE}/1", "meter/" + ONE,
                 "rules/0000000000000009"]:
        cases.add("qos/read/" + path, ("GET", "/qos/" + path))
    cases.add("qos/queue/set", ("POST", "/qos/queue/" + ONE,
                                {"type": "linux-htb", "max_rate": "1000000", "queues": [
                                    {"max_rate": "500000"}]}))
    cases.add("qos/queue/delete", ("DELETE", "/qos/queue/" + ONE))
    if version == "10":
        cases.add("qos/later-version/rule",
                  ("POST", rules, {"match": RULES["net"], "actions": {"queue": "1"}}))
        cases.add("qos/later-version/meter", ("POST", "/qos/meter/" + ONE,
                                              {"meter_id": 1, "flags": "KBPS"}))
        return cases.cases
    for name, match in RULES.items():
        cases.add("qos/match/" + name, ("POST", rules, {"match": match, "actions": {"queue": "1"}}),
                  read, ("DELETE", rules, {"qos_id": "all"}), read)
    cases.add("qos/match/dscp", ("POST", rules, {"match": {"ip_dscp": 26}}), read)
    for name, actions in {"queue": {"queue": 1}, "mark": {"mark": "10"},
                          "both": {"mark": 10, "queue": "0"}, "none": {}}.items():
        cases.add("qos/action/" + name,
                  ("POST", rules, {"match": RULES["net"], "actions": actions}), read)
    cases.add("qos/action/default", ("POST", rules, {"match": RULES["net"]}), read)
    cases.add("qos/action/priority", ("POST", rules, {"match": RULES["net"], "priority": 9}), read)
    cases.add("qos/refused/meter", ("POST", rules, {"match": RULES["net"],
                                                   "actions": {"meter": 9}}), read)
    for name, match in ODD_RULES.items():
        cases.add("qos/odd/" + name, ("POST", rules, {"match": match, "actions": {"queue": 1}}),
                  read)
    cases.add("qos/odd/action", ("POST", rules, {"match": RULES["net"], "actions": {"drop": 1}}),
              read)
    cases.add("qos/odd/no-match", ("POST", rules, {"actions": {"queue": 1}}), read)
    cases.add("qos/odd/mark", ("POST", rules, {"match": RULES["net"], "actions": {"mark": 64}}),
              read)
    cases.add("qos/vlan/2", ("POST", rules + "/2", {"match": RULES["net"]}),
              ("GET", rules + "/all"), ("GET", rules + "/2"), read)
    cases.add("qos/delete/no-such", ("DELETE", rules, {"qos_id": 77}))
    cases.add("qos/delete/odd", ("DELETE", rules, {"qos_id": "some"}))
    meter = {"meter_id": 1, "flags": "KBPS", "bands": [{"type": "DROP", "rate": 1000}]}
    cases.add("qos/meter/add", ("POST", "/qos/meter/" + ONE, meter), ("GET", "/qos/meter/" + ONE),
              ("POST", rules, {"match": RULES["net"], "actions": {"meter": "1"}}), read,
              ("DELETE", "/qos/meter/" + ONE, {"meter_id": 1}), ("GET", "/qos/meter/" + ONE))
    cases.add("qos/refused/meter-twice", ("POST", "/qos/meter/" + ONE, meter),
              ("POST", "/qos/meter/" + ONE, meter),
              ("DELETE", "/qos/meter/" + ONE, {"meter_id": 1}))
    return cases.cases


def router(version):
    """All cases for rest_router; each begins without addresses and routes."""
    cases = Cases()
    one = "/router/" + ONE
    read = ("GET", one)
    for path in [ONE, "all", ONE + "/all", ONE + "/2", ONE + "/0", "0000000000000009", "1",
                 ONE + "/1", ONE + "/5000", ONE + "/x"]:
        cases.add("router/read/" + path, ("GET", "/router/" + path))

    def address(text, path=one):
        return ("POST", path, {"address": text})

    def route(gateway, destination=None, path=one):
        keys = {"destination": destination} if destination else {}
        return ("POST", path, {"gateway": gateway, **keys})

    cases.add("router/address/one", address("172.16.20.1/24"), read, ("GET", "/router/all"),
              ("DELETE", one, {"address_id": "all"}), read)
    cases.add("router/address/three", *map(address, NETWORKS), read)
    cases.add("router/address/32", address("10.0.0.1"), address("10.0.0.2/32"), read)
    cases.add("router/address/30", address("10.0.0.1/30"), read)
    cases.add("router/address/overlaps", address("172.16.20.1/24"), address("172.16.20.2/24"),
              address("172.16.0.1/16"), address("172.16.20.129/25"), read)
    cases.add("router/address/all-switches", address("172.16.20.1/24", "/router/all"), read)
    cases.add("router/address/all-vlans", address("172.16.20.1/24", one + "/all"), read)
    cases.add("router/delete/none", ("DELETE", one, {"address_id": "all"}),
              ("DELETE", one, {"route_id": "all"}))
    cases.add("router/delete/no-such", address("172.16.20.1/24"),
              ("DELETE", one, {"address_id": 999}), ("DELETE", one, {"route_id": "999"}), read)
    cases.add("router/delete/no-vlan", ("DELETE", one + "/7", {"address_id": "all"}))
    cases.add("router/route/no-address", route("172.16.20.254"), read)
    cases.add("router/route/own", address("172.16.20.1/24"), route("172.16.20.1"), read)
    cases.add("router/route/default", address("192.168.10.1/24"), route("192.168.10.2"), read,
              ("DELETE", one, {"address_id": "all"}), ("DELETE", one, {"route_id": "all"}),
              ("DELETE", one, {"address_id": "all"}), read)
    cases.add("router/route/static", address("192.168.10.1/24"),
              route("192.168.10.2", "10.0.0.0/8"), route("192.168.10.3", "10.0.0.0/8"),
              route("192.168.10.3", "10.1.0.0/16"), route("192.168.10.2"), read)
    # Packets: what the router answers and where it sends.
    on = [address(text) for text in NETWORKS]
    quiet = ("DRAIN", "", "")
    cases.add("router/packets/arp", *on, quiet, ("FRAME", "p1/1", arp(A, 1, "172.16.20.1")),
              ("FRAME", "p1/0", arp(A, 1, "172.16.30.10")),
              ("FRAME", "p1/2", arp(A, 1, "172.16.20.99")),
              ("FRAME", "p1/0", arp(("p1", A[1], "10.9.9.9"), 1, "172.16.20.1")))
    cases.add("router/packets/own", *on, quiet, ("FRAME", "p1/1", ping(A, "172.16.20.1")),
              ("FRAME", "p1/1", ping(A, "172.16.30.1")), ("FRAME", "p1/1", udp(A, "172.16.20.1")))
    cases.add("router/packets/switched", *on, quiet,
              ("FRAME", "p1/2", udp(A, "172.16.20.99", dst="04:00:00:00:00:99")))
    cases.add("router/packets/routed", *on, quiet, ("FRAME", "p1/2", udp(A, B[2])),
              ("FRAME", "p2/1", arp(B, 2, "172.16.30.1")), ("FRAME", "p1/1", udp(A, B[2])),
              ("FRAME", "p1/1", ping(A, B[2])), ("FRAME", "p1/1", udp(A, B[2], ttl=1)),
              ("FRAME", "p2/2", udp(B, A[2])), ("FRAME", "p1/1", arp(A, 2, "172.16.20.1")),
              ("FRAME", "p2/1", udp(B, A[2])), ("FRAME", "p1/0", udp(A, "8.8.8.8")))
    cases.add("router/packets/gateway", *on, route(GATEWAY[2]), read, quiet,
              ("FRAME", "p3/0", arp(GATEWAY, 2, "192.168.10.1")), read,
              ("FRAME", "p1/1", udp(A, "8.8.8.8")), ("FRAME", "p1/1", ping(A, "8.8.4.4")),
              ("DELETE", one, {"route_id": "all"}), quiet,
              ("FRAME", "p1/0", udp(A, "8.8.8.8")), read)
    # VLANs: each has a router of its own.
    two = one + "/2"
    cases.add("router/vlan/2", address("172.16.20.1/24", two), ("GET", two),
              ("GET", one + "/all"), read, address("172.16.20.1/24"), ("GET", one + "/all"),
              address("172.16.30.1/24", one + "/all"), ("GET", one + "/all"),
              route("172.16.20.254", None, two), ("DELETE", two, {"address_id": "all"}),
              ("DELETE", two, {"route_id": "all"}), ("DELETE", two, {"address_id": "all"}),
              ("GET", one + "/all"))
    cases.add("router/vlan/packets", *[address(text, two) for text in NETWORKS], quiet,
              ("FRAME", "p1/1", arp(A, 1, "172.16.20.1", 2)), ("FRAME", "p1/0", arp(
                  A, 1, "172.16.20.1", 3)), ("FRAME", "p1/1", ping(A, "172.16.30.1", vlan=2)),
              ("FRAME", "p1/2", udp(A, B[2], vlan=2)),
              ("FRAME", "p2/1", arp(B, 2, "172.16.30.1", 2)),
              ("FRAME", "p1/1", udp(A, B[2], vlan=2)))
    # Wrong requests, on a VLAN whose router goes when it has nothing, and its ids with it.
    nine = one + "/9"
    for name, body in {
            "no-key": {}, "no-body": "", "text": "{", "key": {"adress": "10.0.0.1/24"},
            "address": {"address": "10.0.0/24"}, "mask": {"address": "10.0.0.1/33"},
            "mask-text": {"address": "10.0.0.1/255.255.255.0"}, "name": {"address": "x"},
            "number": {"address": 5}, "network": {"address": "10.0.0.0/24"},
            "group": {"address": "224.0.0.1/24"}, "gateway": {"gateway": "x"},
            "both": {"address": "10.0.0.1/24", "gateway": "10.0.0.2"},
            "destination-alone": {"destination": "10.0.0.0/8"}}.items():
        cases.add("router/odd/" + name, ("POST", nine, body), ("GET", nine),
                  ("DELETE", nine, {"address_id": "all"}))
    for name, body in {"id": {"address_id": "x"}, "nothing": {}, "route": {"route_id": "x"},
                       "negative": {"route_id": -1},
                       "both": {"route_id": 1, "address_id": 1}}.items():
        cases.add("router/odd-delete/" + name, address("10.0.0.1/24", nine),
                  ("DELETE", nine, body), ("GET", nine), ("DELETE", nine, {"address_id": "all"}))
    return cases.cases


SUITES = {"ofctl": ofctl, "topology": topology, "firewall": firewall, "qos": qos,
          "router": router}

# What makes each case begin alike, whatever became of the one before.
RESET = {
    "ofctl": [("DELETE", "/stats/flowentry/clear/1", "")],
    "firewall": [("DELETE", f"/firewall/rules/{ONE}/all", '{"rule_id": "all"}'),
                 ("PUT", "/firewall/module/disable/" + ONE, ""),
                 ("PUT", "/firewall/log/enable/" + ONE, "")],
    "qos": [("DELETE", f"/qos/rules/{ONE}/all", '{"qos_id": "all"}')],
    "router": [("DELETE", f"/router/{ONE}/all", '{"route_id": "all"}'),
               ("DELETE", f"/router/{ONE}/all", '{"address_id": "all"}')],
}
