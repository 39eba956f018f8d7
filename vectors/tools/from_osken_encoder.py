#!/usr/bin/env python3
"""Writes messages that os-ken's encoder makes as vector files, with os-ken's own description.

It covers what Open vSwitch does not have (PBB, IPV6_EXTHDR, IN_PHY_PORT, copying the TTL), every
match field and set-field action of OpenFlow 1.3 once more, every action of 1.0, and the requests of
both versions.

usage: from_osken_encoder.py OUT_FOLDER    (run by a Python that has os-ken 4.2.2 installed)
"""

import json
import pathlib
import sys

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_0_parser as p10
from os_ken.ofproto import ofproto_v1_3_parser as p13

from from_osken import cap_counts, hex_lines, json_text, sort_match

ANY = 0xFFFFFFFF
MAC, V4, V6 = "02:00:00:00:00:0a", "10.0.0.1", "2001:db8::1"

# Prerequisites of fields, by name.
IP, IPV6 = {"eth_type": 0x0800}, {"eth_type": 0x86DD}
ARP, MPLS = {"eth_type": 0x0806}, {"eth_type": 0x8847}
ICMPV6 = {**IPV6, "ip_proto": 58}

# field: (value, mask or None, what else the match must hold, whether set-field may write it)
FIELDS = {
    "in_port": (7, None, {}, False),
    "in_phy_port": (8, None, {"in_port": 7}, False),
    "metadata": (0x1200, 0xFF00, {}, False),
    "eth_dst": (MAC, "ff:ff:ff:00:00:00", {}, True),
    "eth_src": (MAC, "ff:ff:ff:ff:ff:00", {}, True),
    "eth_type": (0x88CC, None, {}, True),
    "vlan_vid": (0x1000, 0x1000, {}, True),
    "vlan_pcp": (5, None, {"vlan_vid": 0x1001}, True),
    "ip_dscp": (46, None, IP, True),
    "ip_ecn": (3, None, IPV6, True),
    "ip_proto": (6, None, IP, True),
    "ipv4_src": ("10.1.0.0", "255.255.0.0", IP, True),
    "ipv4_dst": ("10.0.0.7", "255.0.0.255", IP, True),
    "tcp_src": (1, None, {**IP, "ip_proto": 6}, True),
    "tcp_dst": (2, None, {**IPV6, "ip_proto": 6}, True),
    "udp_src": (3, None, {**IP, "ip_proto": 17}, True),
    "udp_dst": (4, None, {**IPV6, "ip_proto": 17}, True),
    "sctp_src": (5, None, {**IP, "ip_proto": 132}, True),
    "sctp_dst": (6, None, {**IPV6, "ip_proto": 132}, True),
    "icmpv4_type": (8, None, {**IP, "ip_proto": 1}, True),
    "icmpv4_code": (9, None, {**IP, "ip_proto": 1}, True),
    "arp_op": (2, None, ARP, True),
    "arp_spa": ("10.0.0.0", "255.0.0.0", ARP, True),
    "arp_tpa": ("10.2.0.0", "255.255.0.0", ARP, True),
    "arp_sha": (MAC, "ff:ff:ff:00:00:0f", ARP, True),
    "arp_tha": (MAC, "ff:00:00:00:00:ff", ARP, True),
    "ipv6_src": ("2001:db8::", "ffff:ffff::", IPV6, True),
    "ipv6_dst": ("::5", "::ffff", IPV6, True),
    "ipv6_flabel": (0x12300, 0xFFF00, IPV6, True),
    "icmpv6_type": (128, None, ICMPV6, True),
    "icmpv6_code": (1, None, ICMPV6, True),
    "ipv6_nd_target": (V6, None, {**ICMPV6, "icmpv6_type": 135}, True),
    "ipv6_nd_sll": (MAC, None, {**ICMPV6, "icmpv6_type": 135}, True),
    "ipv6_nd_tll": (MAC, None, {**ICMPV6, "icmpv6_type": 136}, True),
    "mpls_label": (0xFFFFF, None, MPLS, True),
    "mpls_tc": (5, None, MPLS, True),
    "mpls_bos": (1, None, MPLS, True),
    "pbb_isid": (0xABC000, 0xFFF000, {"eth_type": 0x88E7}, True),
    "tunnel_id": (0x1100, 0xFF00, {}, True),
    "ipv6_exthdr": (0x1F0, 0x1FF - 0xF, IPV6, False),
}


def flow(dp, match=None, actions=None, instructions=None):
    """A flow-mod that adds."""
    if instructions is None:
        instructions = [p13.OFPInstructionActions(dp.ofproto.OFPIT_APPLY_ACTIONS, actions or [])]
    return p13.OFPFlowMod(dp, table_id=1, priority=7, buffer_id=ANY, out_port=ANY, out_group=ANY,
                          match=match or p13.OFPMatch(), instructions=instructions)


def fields_v1_3(dp):
    for name, (value, mask, needs, settable) in FIELDS.items():
        exact = value if mask is None else {"vlan_vid": 0x1005}.get(name, value)
        yield f"match/{name}", flow(dp, p13.OFPMatch(**needs, **{name: exact}))
        if mask is not None:
            yield f"match/{name}_masked", flow(dp, p13.OFPMatch(**needs, **{name: (value, mask)}))
        if settable:
            yield f"set_field/{name}", flow(dp, actions=[p13.OFPActionSetField(**{name: exact})])


def actions_v1_3(dp):
    for name, action in {
        "output": p13.OFPActionOutput(3, 128),
        "copy_ttl_out": p13.OFPActionCopyTtlOut(),
        "copy_ttl_in": p13.OFPActionCopyTtlIn(),
        "set_mpls_ttl": p13.OFPActionSetMplsTtl(9),
        "dec_mpls_ttl": p13.OFPActionDecMplsTtl(),
        "push_vlan": p13.OFPActionPushVlan(0x88A8),
        "pop_vlan": p13.OFPActionPopVlan(),
        "push_mpls": p13.OFPActionPushMpls(0x8848),
        "pop_mpls": p13.OFPActionPopMpls(0x0800),
        "set_queue": p13.OFPActionSetQueue(77),
        "group": p13.OFPActionGroup(88),
        "set_nw_ttl": p13.OFPActionSetNwTtl(63),
        "dec_nw_ttl": p13.OFPActionDecNwTtl(),
        "push_pbb": p13.OFPActionPushPbb(0x88E7),
        "pop_pbb": p13.OFPActionPopPbb(),
    }.items():
        yield f"action/{name}", flow(dp, actions=[action])
    of = dp.ofproto
    for name, instruction in {
        "goto_table": p13.OFPInstructionGotoTable(9),
        "write_metadata": p13.OFPInstructionWriteMetadata(0x1234, 0xFFFF),
        "write_actions": p13.OFPInstructionActions(of.OFPIT_WRITE_ACTIONS,
                                                   [p13.OFPActionPopPbb()]),
        "clear_actions": p13.OFPInstructionActions(of.OFPIT_CLEAR_ACTIONS, []),
        "meter": p13.OFPInstructionMeter(5),
    }.items():
        yield f"instruction/{name}", flow(dp, instructions=[instruction])


def requests_v1_3(dp):
    of, match = dp.ofproto, p13.OFPMatch(in_port=1)
    yield "role", p13.OFPRoleRequest(dp, of.OFPCR_ROLE_SLAVE, 0x123456789ABCDEF0)
    yield "get_async", p13.OFPGetAsyncRequest(dp)
    yield "set_async", p13.OFPSetAsync(dp, [7, 1], [5, 2], [15, 8])
    yield "barrier", p13.OFPBarrierRequest(dp)
    yield "features", p13.OFPFeaturesRequest(dp)
    yield "get_config", p13.OFPGetConfigRequest(dp)
    yield "set_config", p13.OFPSetConfig(dp, 1, 0xFFFF)
    yield "echo", p13.OFPEchoRequest(dp, b"echo")
    yield "experimenter", p13.OFPExperimenter(dp, 0x00D0BEEF, 17, b"body")
    yield "table_mod", p13.OFPTableMod(dp, 3, 3)
    yield "queue_get_config", p13.OFPQueueGetConfigRequest(dp, 4)
    yield "port_mod", p13.OFPPortMod(dp, 3, MAC, 0x65, 0x65, 0x2040)
    yield "packet_out", p13.OFPPacketOut(dp, ANY, 9, [p13.OFPActionOutput(2, 0)], b"\1\2\3")
    yield "meter_mod", p13.OFPMeterMod(dp, 1, 5, 12, [
        p13.OFPMeterBandDrop(1, 2), p13.OFPMeterBandDscpRemark(3, 4, 5),
        p13.OFPMeterBandExperimenter(6, 7, 8)])
    buckets = [p13.OFPBucket(5, 1, ANY, [p13.OFPActionOutput(1)]), p13.OFPBucket(6, ANY, 2, [])]
    yield "group_mod", p13.OFPGroupMod(dp, of.OFPGC_MODIFY, of.OFPGT_FF, 99, buckets)
    yield "multipart/desc", p13.OFPDescStatsRequest(dp, 0)
    yield "multipart/flow", p13.OFPFlowStatsRequest(dp, 0, 1, 2, 3, 4, 5, match)
    yield "multipart/aggregate", p13.OFPAggregateStatsRequest(dp, 0, 1, 2, 3, 4, 5, match)
    yield "multipart/table", p13.OFPTableStatsRequest(dp, 0)
    yield "multipart/port", p13.OFPPortStatsRequest(dp, 0, 6)
    yield "multipart/queue", p13.OFPQueueStatsRequest(dp, 0, 6, 7)
    yield "multipart/group", p13.OFPGroupStatsRequest(dp, 0, 8)
    yield "multipart/group_desc", p13.OFPGroupDescStatsRequest(dp, 0)
    yield "multipart/group_features", p13.OFPGroupFeaturesStatsRequest(dp, 0)
    yield "multipart/meter", p13.OFPMeterStatsRequest(dp, 0, 9)
    yield "multipart/meter_config", p13.OFPMeterConfigStatsRequest(dp, 0, 10)
    yield "multipart/meter_features", p13.OFPMeterFeaturesStatsRequest(dp, 0)
    yield "multipart/table_features", p13.OFPTableFeaturesStatsRequest(dp, 0, [])
    yield "multipart/port_desc", p13.OFPPortDescStatsRequest(dp, 0)


def flow_v1_0(dp, actions, **match):
    """A flow-mod of 1.0 that adds."""
    return p10.OFPFlowMod(dp, p10.OFPMatch(**match), 5, dp.ofproto.OFPFC_ADD, 1, 2, 3, ANY,
                          dp.ofproto.OFPP_NONE, 3, actions)


def actions_v1_0(dp):
    for name, action in {
        "output": p10.OFPActionOutput(3, 128),
        "set_vlan_vid": p10.OFPActionVlanVid(4095),
        "set_vlan_pcp": p10.OFPActionVlanPcp(7),
        "strip_vlan": p10.OFPActionStripVlan(),
        "set_dl_src": p10.OFPActionSetDlSrc(MAC),
        "set_dl_dst": p10.OFPActionSetDlDst(MAC),
        "set_nw_src": p10.OFPActionSetNwSrc("10.0.0.1"),
        "set_nw_dst": p10.OFPActionSetNwDst("10.0.0.2"),
        "set_nw_tos": p10.OFPActionSetNwTos(0xB8),
        "set_tp_src": p10.OFPActionSetTpSrc(80),
        "set_tp_dst": p10.OFPActionSetTpDst(443),
        "enqueue": p10.OFPActionEnqueue(2, 9),
    }.items():
        yield f"action/{name}", flow_v1_0(dp, [action])
    tcp = {"dl_type": 0x0800, "nw_proto": 6}
    for name, match in {
        "in_port": {"in_port": 0xFFFE},
        "dl_src": {"dl_src": MAC},
        "dl_dst": {"dl_dst": MAC},
        "dl_vlan": {"dl_vlan": 5},
        "dl_vlan_none": {"dl_vlan": 0xFFFF},
        "dl_vlan_pcp": {"dl_vlan": 5, "dl_vlan_pcp": 3},
        "dl_vlan_pcp_alone": {"dl_vlan_pcp": 3},
        "dl_type": {"dl_type": 0x05FF},
        "nw_tos": {"dl_type": 0x0800, "nw_tos": 0xFC},
        "nw_proto": tcp,
        "nw_src": {"dl_type": 0x0800, "nw_src": "10.0.0.1"},
        "nw_dst_prefix": {"dl_type": 0x0800, "nw_dst": "10.1.0.0", "nw_dst_mask": 16},
        "arp": {"dl_type": 0x0806, "nw_proto": 2, "nw_src": "10.0.0.1", "nw_dst": "10.0.0.2"},
        "tp": {**tcp, "tp_src": 1, "tp_dst": 2},
        "icmp": {"dl_type": 0x0800, "nw_proto": 1, "tp_src": 8, "tp_dst": 0},
    }.items():
        yield f"match/{name}", flow_v1_0(dp, [], **match)


def requests_v1_0(dp):
    match, none = p10.OFPMatch(in_port=1), dp.ofproto.OFPP_NONE
    yield "barrier", p10.OFPBarrierRequest(dp)
    yield "get_config", p10.OFPGetConfigRequest(dp)
    yield "set_config", p10.OFPSetConfig(dp, 1, 0xFFFF)
    yield "echo", p10.OFPEchoRequest(dp, b"echo")
    yield "queue_get_config", p10.OFPQueueGetConfigRequest(dp, 4)
    yield "port_mod", p10.OFPPortMod(dp, 3, MAC, 0x71, 0x71, 0x040)
    yield "packet_out", p10.OFPPacketOut(dp, ANY, 9, [p10.OFPActionOutput(2, 0)], b"\1\2\3")
    yield "stats/desc", p10.OFPDescStatsRequest(dp, 0)
    yield "stats/flow", p10.OFPFlowStatsRequest(dp, 0, match, 0xFF, none)
    yield "stats/aggregate", p10.OFPAggregateStatsRequest(dp, 0, match, 3, 2)
    yield "stats/table", p10.OFPTableStatsRequest(dp, 0)
    yield "stats/port", p10.OFPPortStatsRequest(dp, 0, none)
    yield "stats/queue", p10.OFPQueueStatsRequest(dp, 0, 6, 7)


def record(name, message):
    message.set_xid(1)
    message.serialize()
    data = bytes(message.buf)
    lines = [f"name: {name}", "source: os-ken 4.2.2, its encoder"]
    described = json.dumps(message.to_jsondict())
    lines += [f"json: {json_text(described)}", f"hex: {hex_lines(data)}"]
    written, note = canonical(data)
    if written != data:
        lines += ["", f"name: {name}/canonical", f"note: {note}", f"hex: {hex_lines(written)}"]
    return "\n".join(lines)


def canonical(data):
    """How the message is written by an encoder that has no taste of its own, and why."""
    counts = "63 ignored bits of the addresses are written as 32"
    if data[:2] == b"\4\x0e":
        return sort_match(48)(data), "fields are written in the order of their numbers"
    if data[:2] == b"\1\x0e":
        return cap_counts(8)(data), counts
    if data[:2] == b"\1\x10" and data[8:10] in (b"\0\1", b"\0\2"):
        return cap_counts(12)(data), counts
    return data, None


def main(out):
    for number, file, makers in (
        (1, "encoded10.vec", (actions_v1_0, requests_v1_0)),
        (4, "encoded13.vec", (fields_v1_3, actions_v1_3, requests_v1_3)),
    ):
        dp = ofproto_protocol.ProtocolDesc(number)
        records = [record(name, message) for maker in makers for name, message in maker(dp)]
        head = ("# Messages that os-ken 4.2.2 (Apache-2.0) encodes, written by\n"
                "# vectors/tools/from_osken_encoder.py.\n\n")
        pathlib.Path(out, file).write_text(head + "\n\n".join(records) + "\n")
        print(file, len(records))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
