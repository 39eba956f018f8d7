#!/usr/bin/env python3
"""Writes the messages that ovs-ofctl sends for given texts as vector files.

A listener on a loopback port answers ovs-ofctl's hello, its barriers and its questions about ports,
and keeps every other message. Transaction numbers, which ovs-ofctl draws at random, become zero;
nothing else is changed. A record whose name ends in /canonical is how the message of the name
before it is encoded, where there is more than one way; all others are encoded as they are. The
first part of a record's name is the command of ovs-ofctl, its text is what the command was given.

usage: from_ovs_ofctl.py OUT_FOLDER
"""

import pathlib
import socket
import struct
import subprocess
import sys
import threading

from from_osken import hex_lines, sort_match

MAC = "02:00:00:00:00:0a"
V6 = "2001:db8::1"

# Fields of either version: (name, text of the match).
FIELDS = [
    ("any", ""),
    ("in_port", "in_port=1"),
    ("in_port_local", "in_port=LOCAL"),
    ("dl_src", f"dl_src={MAC}"),
    ("dl_dst", f"dl_dst={MAC}"),
    ("dl_type", "dl_type=0x88cc"),
    ("dl_vlan", "dl_vlan=5"),
    ("dl_vlan_none", "dl_vlan=0xffff"),
    ("dl_vlan_pcp", "dl_vlan=5,dl_vlan_pcp=3"),
    ("dl_vlan_pcp_any", "dl_vlan_pcp=3"),
    ("nw_tos", "ip,nw_tos=184"),
    ("nw_proto", "ip,nw_proto=47"),
    ("nw_src", "ip,nw_src=10.0.0.1"),
    ("nw_src_cidr", "ip,nw_src=10.1.0.0/16"),
    ("nw_dst", "ip,nw_dst=10.0.0.2"),
    ("nw_dst_cidr", "ip,nw_dst=192.168.4.0/23"),
    ("nw_dst_one_bit", "ip,nw_dst=128.0.0.0/1"),
    ("tcp_src", "tcp,tp_src=1024"),
    ("tcp_dst", "tcp,tp_dst=80"),
    ("udp_src", "udp,tp_src=53"),
    ("udp_dst", "udp,tp_dst=67"),
    ("sctp_src", "sctp,tp_src=7"),
    ("sctp_dst", "sctp,tp_dst=9"),
    ("icmp_type", "icmp,icmp_type=8"),
    ("icmp_code", "icmp,icmp_type=3,icmp_code=4"),
    ("arp_op", "arp,arp_op=2"),
    ("arp_spa", "arp,arp_spa=10.0.0.1"),
    ("arp_tpa", "arp,arp_tpa=10.0.0.0/8"),
    ("twelve", f"in_port=3,dl_src={MAC},dl_dst=ff:ff:ff:ff:ff:ff,dl_vlan=4095,dl_vlan_pcp=7,tcp,"
               "nw_tos=252,nw_src=1.2.3.4,nw_dst=5.6.7.8,tp_src=65535,tp_dst=1"),
]

FIELDS_V1_1 = [
    ("in_port_controller", "in_port=CONTROLLER"),
    ("metadata", "metadata=0x123456789abcdef0"),
    ("metadata_masked", "metadata=0x1200/0xff00"),
    ("dl_src_masked", "dl_src=02:00:00:00:00:00/ff:ff:00:00:00:00"),
    ("dl_dst_multicast", "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"),
    ("nw_src_masked", "ip,nw_src=10.0.0.5/255.0.0.255"),
    ("arp_spa_masked", "arp,arp_spa=0.0.0.7/0.0.0.255"),
    ("mpls_label", "mpls,mpls_label=1048575"),
    ("mpls_tc", "mplsm,mpls_tc=5"),
]

FIELDS_V1_3 = [
    ("in_port_controller", "in_port=CONTROLLER"),
    ("metadata", "metadata=0x123456789abcdef0"),
    ("metadata_masked", "metadata=0x1200/0xff00"),
    ("registers", "reg0=0x5,reg1=0x10/0xf0,reg15=0xffffffff"),
    ("xreg", "xreg0=0x500000006,xreg7=0x10/0xf0"),
    ("xxreg", "xxreg1=0x1000000020000000300000004"),
    ("pkt_mark", "pkt_mark=0x7"),
    ("pkt_mark_masked", "pkt_mark=0x1/0x3"),
    ("nw_ttl", "ip,nw_ttl=64"),
    ("nw_ttl_ipv6", "ipv6,nw_ttl=1"),
    ("ip_frag_no", "ip,ip_frag=no"),
    ("ip_frag_yes", "ip,ip_frag=yes"),
    ("ip_frag_first", "ip,ip_frag=first"),
    ("ip_frag_later", "ipv6,ip_frag=later"),
    ("ip_frag_not_later", "ip,ip_frag=not_later"),
    ("tcp_flags", "tcp,tcp_flags=0x012"),
    ("tcp_flags_masked", "tcp6,tcp_flags=+syn-ack"),
    ("tcp_src_masked", "tcp,tp_src=0x50/0xfff0"),
    ("udp_dst_masked", "udp6,tp_dst=0x8000/0x8000"),
    ("sctp_src_masked", "sctp,tp_src=0x1/0x1"),
    ("conj_id", "conj_id=4294967295"),
    ("conj_id_tcp", "conj_id=7,tcp,reg3=0x1,metadata=0x2,tp_dst=80"),
    ("dl_src_masked", "dl_src=02:00:00:00:00:00/ff:ff:00:00:00:00"),
    ("dl_dst_multicast", "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"),
    ("vlan_vid_any", "vlan_vid=0x1000/0x1000"),
    ("vlan_vid_masked", "vlan_vid=0x1004/0x1ffc"),
    ("ip_dscp", "ip,ip_dscp=46"),
    ("nw_ecn", "ip,nw_ecn=3"),
    ("nw_src_masked", "ip,nw_src=10.0.0.5/255.0.0.255"),
    ("arp_sha", f"arp,arp_sha={MAC}"),
    ("arp_tha", f"arp,arp_tha={MAC}"),
    ("arp_sha_masked", "arp,arp_sha=02:00:00:00:00:00/ff:00:00:00:00:00"),
    ("arp_spa_masked", "arp,arp_spa=0.0.0.7/0.0.0.255"),
    ("ipv6_src", f"ipv6,ipv6_src={V6}"),
    ("ipv6_dst", f"ipv6,ipv6_dst={V6}"),
    ("ipv6_src_prefix", "ipv6,ipv6_src=2001:db8::/32"),
    ("ipv6_dst_masked", "ipv6,ipv6_dst=::5/::ffff"),
    ("ipv6_label", "ipv6,ipv6_label=0x12345"),
    ("ipv6_label_masked", "ipv6,ipv6_label=0x12300/0xfff00"),
    ("ipv6_tos", "ipv6,nw_tos=32,nw_ecn=1"),
    ("tcp6", "tcp6,tp_src=1,tp_dst=2"),
    ("udp6", "udp6,tp_src=3,tp_dst=4"),
    ("sctp6", "sctp6,tp_src=5,tp_dst=6"),
    ("icmpv6_type", "icmp6,icmp_type=128"),
    ("icmpv6_code", "icmp6,icmp_type=1,icmp_code=4"),
    ("nd_target", f"icmp6,icmp_type=135,icmp_code=0,nd_target={V6}"),
    ("nd_sll", f"icmp6,icmp_type=135,icmp_code=0,nd_sll={MAC}"),
    ("nd_tll", f"icmp6,icmp_type=136,icmp_code=0,nd_tll={MAC}"),
    ("mpls_label", "mpls,mpls_label=1048575"),
    ("mpls_tc", "mpls,mpls_tc=5"),
    ("mpls_bos", "mplsm,mpls_bos=1"),
    ("tun_id", "tun_id=0x1122334455667788"),
    ("tun_id_masked", "tun_id=0x80/0xff"),
]

# Actions of either version: (name, text of the match, text of the actions).
# Entries that packets make: every kind of part.
LEARN = [
    ("learn", "", "learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])"),
    ("learn_all", "tcp", "learn(table=7,idle_timeout=5,hard_timeout=9,priority=77,send_flow_rem,"
                         "delete_learned,cookie=0x12,eth_type=0x800,nw_proto=6,ip_dst=10.0.0.9,"
                         "NXM_OF_VLAN_TCI[0..11],NXM_OF_IP_SRC[]=NXM_OF_IP_DST[],"
                         "NXM_OF_TCP_SRC[]=NXM_OF_TCP_DST[],NXM_NX_REG3[4..7]=0x5,"
                         "load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15],load:0x3->NXM_NX_REG1[8..11],"
                         "load:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],output:NXM_NX_REG2[0..15])"),
    ("learn_nothing", "", "learn(table=1)"),
]

ACTIONS = LEARN + [
    ("drop", "", "drop"),
    ("output", "", "output:2"),
    ("outputs", "", "output:1,output:2,output:3"),
    ("in_port", "", "IN_PORT"),
    ("normal", "", "NORMAL"),
    ("flood", "", "FLOOD"),
    ("all", "", "ALL"),
    ("local", "", "LOCAL"),
    ("controller", "", "CONTROLLER:65535"),
    ("controller_128", "", "CONTROLLER:128"),
    # Nicira's, of every version.
    ("resubmit", "", "resubmit:3,resubmit(3,7),resubmit(,7),resubmit:LOCAL"),
    ("exit", "", "output:1,exit"),
    ("to_controllers", "", "controller(id=5),controller(reason=no_match,max_len=77,id=65535)"),
    ("to_controllers_with_data", "",
     "controller(userdata=01.02.03.04.05,meter_id=9),"
     "controller(reason=invalid_ttl,max_len=64,id=7,userdata=ff,pause)"),
    ("note", "", "note:01.02.03.04.05.06.07,output:1,note:00.00.00.00.00.00"),
    ("dec_ttl_ids", "ip", "dec_ttl(1,2,3),output:1"),
    ("fin_timeout", "tcp", "fin_timeout(idle_timeout=5,hard_timeout=60),output:1"),
    ("fin_timeout_idle", "tcp", "output:1,fin_timeout(idle_timeout=5)"),
    ("stack", "ip", "push:NXM_NX_REG0[4..11],push:NXM_OF_IP_SRC[],push:NXM_NX_XXREG1[],"
                    "pop:NXM_NX_REG1[],pop:NXM_OF_ETH_DST[0..31],pop:NXM_NX_XXREG2[1..127]"),
    ("clone", "", "clone(push:NXM_NX_REG0[],resubmit(,3),clone(output:2,exit)),clone(drop),"
                  "output:1"),
    ("pop_queue", "", "output:1,pop_queue,output:2"),
    ("bundle", "", "bundle(eth_src,50,hrw,ofport,members:1,2,3),"
                   "bundle(symmetric_l3l4+udp,7,active_backup,ofport,members:4,LOCAL,ANY),"
                   "bundle(symmetric_l4,0,hrw,ofport,members:)"),
    ("bundle_load", "", "bundle_load(nw_src,1,hrw,ofport,NXM_NX_REG0[0..15],members:1,2),"
                        "bundle_load(nw_dst,2,active_backup,ofport,NXM_OF_ETH_SRC[0..15],"
                        "members:1)"),
    ("multipath", "", "multipath(symmetric_l3,1024,hash_threshold,64,0,NXM_NX_REG0[5..10]),"
                      "multipath(symmetric_l3l4,50,modulo_n,1,0,NXM_NX_REG1[]),"
                      "multipath(eth_src,0,iter_hash,5,7,NXM_NX_REG2[0..31]),"
                      "multipath(nw_dst,3,hrw,9,0,NXM_NX_REG3[4..7])"),
    ("check_pkt_larger", "", "check_pkt_larger(1000)->NXM_NX_REG0[15],"
                             "check_pkt_larger(65535)->NXM_NX_XXREG1[127],output:1"),
]

ACTIONS_V1_0 = [
    ("mod_vlan_vid", "", "mod_vlan_vid:100,output:1"),
    ("mod_vlan_pcp", "", "mod_vlan_pcp:6,output:1"),
    ("strip_vlan", "", "strip_vlan,output:1"),
    ("mod_dl_src", "", f"mod_dl_src:{MAC},output:1"),
    ("mod_dl_dst", "", f"mod_dl_dst:{MAC},output:1"),
    ("mod_nw_src", "ip", "mod_nw_src:10.9.8.7,output:1"),
    ("mod_nw_dst", "ip", "mod_nw_dst:10.9.8.7,output:1"),
    ("mod_nw_tos", "ip", "mod_nw_tos:184,output:1"),
    ("mod_tp_src", "tcp", "mod_tp_src:8080,output:1"),
    ("mod_tp_dst", "udp", "mod_tp_dst:8080,output:1"),
    ("enqueue", "", "enqueue:2:7"),
    # Nicira's, for what 1.0 itself cannot say.
    ("dec_ttl", "ip", "dec_ttl,output:1"),
    ("dec_ttl_mod_tp_src", "ip", "dec_ttl,mod_tp_src:77,output:2"),
    ("registers", "", "load:0x5->NXM_NX_REG0[0..15],"
                      "move:NXM_NX_REG0[0..15]->NXM_NX_REG1[16..31],output:NXM_NX_REG1[16..31]"),
    ("conjunctions", "ip,nw_src=10.0.0.1", "conjunction(7,1/2),conjunction(4294967295,64/64)"),
]

ACTIONS_V1_1 = [
    ("set_vlan_vid", "dl_vlan=1", "set_vlan_vid:100,output:1"),
    ("set_vlan_pcp", "dl_vlan=1", "set_vlan_pcp:6,output:1"),
    ("push_vlan_set", "", "push_vlan:0x88a8,set_vlan_vid:100,output:1"),
    ("pop_vlan", "dl_vlan=1", "pop_vlan,output:1"),
    ("mod_dl_src", "", f"mod_dl_src:{MAC},output:1"),
    ("mod_dl_dst", "", f"mod_dl_dst:{MAC},output:1"),
    ("mod_nw_src", "ip", "mod_nw_src:10.9.8.7,output:1"),
    ("mod_nw_dst", "ip", "mod_nw_dst:10.9.8.7,output:1"),
    ("mod_nw_tos", "ip", "mod_nw_tos:184,output:1"),
    ("mod_nw_ecn", "ip", "mod_nw_ecn:2,output:1"),
    ("mod_tp_src", "tcp", "mod_tp_src:8080,output:1"),
    ("mod_tp_dst", "sctp", "mod_tp_dst:8080,output:1"),
    ("set_mpls_label", "mpls", "set_mpls_label(1000),output:1"),
    ("set_mpls_tc", "mpls", "set_mpls_tc(3),output:1"),
    ("set_mpls_ttl", "mpls", "set_mpls_ttl(64),output:1"),
    ("dec_mpls_ttl", "mpls", "dec_mpls_ttl,output:1"),
    ("push_mpls", "ip", "push_mpls:0x8847,output:1"),
    ("pop_mpls", "mpls", "pop_mpls:0x0800,output:1"),
    ("set_queue", "", "set_queue:9,output:1"),
    ("group", "", "group:77"),
    ("mod_nw_ttl", "ip", "mod_nw_ttl:10,output:1"),
    ("dec_ttl", "ip", "dec_ttl,output:1"),
    ("load_reg", "", "load:0x5->NXM_NX_REG0[],load:0x3->NXM_NX_REG1[4..7],output:1"),
    ("move", "ip", "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],output:NXM_NX_REG0[0..15]"),
    ("conjunctions", "ip,nw_src=10.0.0.1", "conjunction(7,1/2),conjunction(4294967295,64/64)"),
    ("goto_table", "table=1", "goto_table:7"),
    ("write_metadata", "", "write_metadata:0x5a00/0xff00,goto_table:1"),
    ("write_actions", "dl_vlan=1", f"write_actions(set_vlan_vid:5,mod_dl_src:{MAC},output:4)"),
    ("clear_actions", "", "clear_actions,goto_table:2"),
    ("everything", "ip", "dec_ttl,output:1,clear_actions,write_actions(group:5),"
                         "write_metadata:0x1/0x1,goto_table:9"),
]

ACTIONS_V1_3 = [
    ("set_mpls_ttl", "mpls", "set_mpls_ttl(64),output:1"),
    ("dec_mpls_ttl", "mpls", "dec_mpls_ttl,output:1"),
    ("push_vlan", "", "push_vlan:0x8100,output:1"),
    ("push_vlan_service", "", "push_vlan:0x88a8,output:1"),
    ("pop_vlan", "vlan_vid=0x1000/0x1000", "pop_vlan,output:1"),
    ("push_mpls", "ip", "push_mpls:0x8847,output:1"),
    ("pop_mpls", "mpls,mpls_bos=1", "pop_mpls:0x0800,output:1"),
    ("set_queue", "", "set_queue:9,output:1"),
    ("group", "", "group:77"),
    ("mod_nw_ttl", "ip", "mod_nw_ttl:10,output:1"),
    ("dec_ttl", "ip", "dec_ttl,output:1"),
    ("set_metadata", "", "set_field:0x7->metadata,output:1"),
    ("set_reg7", "", "set_field:0x7->reg7,output:1"),
    ("set_xreg0", "", "set_field:0x7->xreg0,output:1"),
    ("set_xxreg3", "", "set_field:0x70000000000000008->xxreg3,output:1"),
    ("load_xreg", "", "load:0x1->OXM_OF_PKT_REG1[0..3],load:0x5->NXM_NX_XXREG0[64..71],output:1"),
    ("move_xreg", "", "move:NXM_NX_XXREG0[0..63]->OXM_OF_PKT_REG3[],output:OXM_OF_PKT_REG2[]"),
    ("set_nw_ttl_field", "ip", "set_field:64->nw_ttl,output:1"),
    ("set_pkt_mark", "", "set_field:0x5->pkt_mark,output:1"),
    ("load_ttl_and_mark", "ip", "load:0x5->NXM_NX_IP_TTL[],"
                                "load:0x1->NXM_NX_PKT_MARK[3..5],output:1"),
    ("move_read_only", "tcp", "move:NXM_NX_TCP_FLAGS[]->NXM_NX_REG0[0..11],"
                              "move:NXM_NX_IP_FRAG[]->NXM_NX_REG1[0..1],output:1"),
    ("load_reg", "", "load:0x5->NXM_NX_REG0[],load:0x3->NXM_NX_REG1[4..7],"
                     "load:0x1->NXM_NX_REG15[31],output:1"),
    ("load_fields", "tcp", "load:0x20000000a->NXM_OF_ETH_SRC[],load:0xa000001->NXM_OF_IP_DST[],"
                           "load:0x50->NXM_OF_TCP_DST[],load:0x7->NXM_NX_TUN_ID[0..31],output:1"),
    ("move", "ip", "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],"
                   "move:NXM_OF_IP_SRC[0..15]->NXM_NX_REG3[16..31],"
                   "move:OXM_OF_METADATA[40]->NXM_NX_REG0[0],output:1"),
    ("output_reg", "", "output:NXM_NX_REG0[0..15],output:NXM_NX_REG1[]"),
    ("conjunctions", "ip,nw_src=10.0.0.1", "conjunction(7,1/2),conjunction(4294967295,64/64)"),
    ("move_conj_id", "", "move:NXM_NX_CONJ_ID[]->NXM_NX_REG0[],output:1"),
    ("set_eth_dst", "", f"set_field:{MAC}->eth_dst,output:1"),
    ("set_eth_src", "", f"set_field:{MAC}->eth_src,output:1"),
    ("set_vlan_vid", "dl_vlan=1", "set_field:4101->vlan_vid,output:1"),
    ("set_vlan_pcp", "dl_vlan=1", "set_field:5->vlan_pcp,output:1"),
    ("set_ip_dscp", "ip", "set_field:46->ip_dscp,output:1"),
    ("set_nw_ecn", "ip", "set_field:2->nw_ecn,output:1"),
    ("set_ip_src", "ip", "set_field:10.0.0.9->ip_src,output:1"),
    ("set_ip_dst", "ip", "set_field:10.0.0.8->ip_dst,output:1"),
    ("set_tcp_src", "tcp", "set_field:1->tcp_src,output:1"),
    ("set_tcp_dst", "tcp", "set_field:2->tcp_dst,output:1"),
    ("set_udp_src", "udp", "set_field:3->udp_src,output:1"),
    ("set_udp_dst", "udp", "set_field:4->udp_dst,output:1"),
    ("set_sctp_src", "sctp", "set_field:5->sctp_src,output:1"),
    ("set_sctp_dst", "sctp", "set_field:6->sctp_dst,output:1"),
    ("set_icmp_type", "icmp", "set_field:0->icmp_type,output:1"),
    ("set_icmp_code", "icmp", "set_field:1->icmp_code,output:1"),
    ("set_arp_op", "arp", "set_field:2->arp_op,output:1"),
    ("set_arp_spa", "arp", "set_field:10.0.0.7->arp_spa,output:1"),
    ("set_arp_tpa", "arp", "set_field:10.0.0.6->arp_tpa,output:1"),
    ("set_arp_sha", "arp", f"set_field:{MAC}->arp_sha,output:1"),
    ("set_arp_tha", "arp", f"set_field:{MAC}->arp_tha,output:1"),
    ("set_ipv6_src", "ipv6", f"set_field:{V6}->ipv6_src,output:1"),
    ("set_ipv6_dst", "ipv6", f"set_field:{V6}->ipv6_dst,output:1"),
    ("set_ipv6_label", "ipv6", "set_field:0x54321->ipv6_label,output:1"),
    ("set_icmpv6_type", "icmp6", "set_field:129->icmpv6_type,output:1"),
    ("set_icmpv6_code", "icmp6", "set_field:3->icmpv6_code,output:1"),
    ("set_nd_target", "icmp6,icmp_type=135,icmp_code=0", f"set_field:{V6}->nd_target,output:1"),
    ("set_nd_sll", "icmp6,icmp_type=135,icmp_code=0", f"set_field:{MAC}->nd_sll,output:1"),
    ("set_nd_tll", "icmp6,icmp_type=136,icmp_code=0", f"set_field:{MAC}->nd_tll,output:1"),
    ("set_mpls_label", "mpls", "set_field:1000->mpls_label,output:1"),
    ("set_mpls_tc", "mpls", "set_field:3->mpls_tc,output:1"),
    ("set_tun_id", "", "set_field:0x99->tun_id,output:1"),
    ("goto_table", "table=1", "goto_table:7"),
    ("write_metadata", "", "write_metadata:0x5a,goto_table:1"),
    ("write_metadata_masked", "", "write_metadata:0x5a00/0xff00,goto_table:1"),
    ("write_actions", "dl_vlan=1", "write_actions(set_field:4101->vlan_vid,output:4)"),
    ("clear_actions", "", "clear_actions,goto_table:2"),
    ("meter", "", "meter:3,output:1"),
    ("everything", "ip", "meter:3,dec_ttl,output:1,clear_actions,write_actions(group:5),"
                         "write_metadata:0x1/0x1,goto_table:9"),
]

# (name, command and options, text)
FLOWS = [
    ("add-flow/timeouts", ["add-flow"], "idle_timeout=60,hard_timeout=300,actions=output:1"),
    ("add-flow/priority", ["add-flow"], "priority=0,actions=output:1"),
    ("add-flow/cookie", ["add-flow"], "cookie=0xfedcba9876543210,actions=output:1"),
    ("add-flow/send_flow_rem", ["add-flow"], "send_flow_rem,actions=output:1"),
    ("add-flow/check_overlap", ["add-flow"], "check_overlap,actions=output:1"),
    ("mod-flows/tcp", ["mod-flows"], "tcp,actions=output:9"),
    ("mod-flows-strict/tcp", ["--strict", "mod-flows"], "priority=7,tcp,actions=output:9"),
    ("del-flows/all", ["del-flows"], ""),
    ("del-flows/in_port", ["del-flows"], "in_port=4"),
    ("del-flows/out_port", ["del-flows"], "ip,out_port=3"),
    ("del-flows-strict/in_port", ["--strict", "del-flows"], "priority=9,in_port=4"),
]

# ovs-ofctl sends changes of all tables one by one in 1.1, which has no number for them.
FLOWS_V1_1 = FLOWS[:5] + [
    ("add-flow/table", ["add-flow"], "table=200,in_port=1,actions=output:1"),
    ("mod-flows/tcp", ["mod-flows"], "table=0,tcp,actions=output:9"),
    ("mod-flows/cookie", ["mod-flows"], "table=0,cookie=0x10/0xf0,actions=drop"),
    ("mod-flows-strict/tcp", ["--strict", "mod-flows"], "table=0,priority=7,tcp,actions=output:9"),
    ("del-flows/table", ["del-flows"], "table=3"),
    ("del-flows/cookie", ["del-flows"], "table=0,cookie=0x10/-1"),
    ("del-flows/out_port", ["del-flows"], "table=0,ip,out_port=3"),
    ("del-flows/out_group", ["del-flows"], "table=0,out_group=12"),
    ("del-flows-strict/in_port", ["--strict", "del-flows"], "table=0,priority=9,in_port=4"),
]

FLOWS_V1_3 = [
    ("add-flow/table", ["add-flow"], "table=200,in_port=1,actions=output:1"),
    ("add-flow/reset_counts", ["add-flow"], "reset_counts,actions=output:1"),
    ("add-flow/no_packet_counts", ["add-flow"], "no_packet_counts,actions=output:1"),
    ("add-flow/no_byte_counts", ["add-flow"], "no_byte_counts,actions=output:1"),
    ("mod-flows/cookie", ["mod-flows"], "cookie=0x10/0xf0,actions=drop"),
    ("del-flows/cookie", ["del-flows"], "cookie=0x10/-1"),
    ("del-flows/table", ["del-flows"], "table=3"),
    ("del-flows/out_group", ["del-flows"], "out_group=12"),
]

GROUPS = [
    ("add-group/all", ["add-group"], "group_id=1,type=all,bucket=actions=output:1,"
                                     "bucket=actions=output:2"),
    ("add-group/select", ["add-group"], "group_id=2,type=select,bucket=weight:10,actions=output:1,"
                                        "bucket=weight:20,actions=output:2"),
    ("add-group/indirect", ["add-group"], "group_id=3,type=indirect,bucket=actions="
                                          f"set_field:{MAC}->eth_dst,output:1"),
    ("add-group/fast_failover", ["add-group"],
     "group_id=4294967040,type=fast_failover,bucket=watch_port:1,actions=output:1,"
     "bucket=watch_group:3,actions=group:3"),
    ("add-group/empty", ["add-group"], "group_id=5,type=all"),
    ("mod-group/select", ["mod-group"], "group_id=2,type=select,bucket=weight:1,actions=output:9"),
    ("del-groups/one", ["del-groups"], "group_id=2"),
    ("del-groups/all", ["del-groups"], ""),
]

GROUPS_V1_1 = [group for group in GROUPS if group[0] != "add-group/indirect"] + [
    ("add-group/indirect", ["add-group"],
     f"group_id=3,type=indirect,bucket=actions=mod_dl_dst:{MAC},mod_tp_dst:7,output:1"),
]

GROUPS_V1_5 = [
    ("add-group/bucket_ids", ["add-group"],
     "group_id=6,type=select,bucket=bucket_id:7,weight:3,actions=output:1,"
     "bucket=bucket_id:2,weight:1,watch_port:2,actions=output:2"),
    ("insert-buckets/first", ["insert-buckets"],
     "group_id=6,command_bucket_id=first,bucket=bucket_id:1,weight:1,actions=output:3"),
    ("insert-buckets/after", ["insert-buckets"],
     "group_id=6,command_bucket_id=7,bucket=bucket_id:8,weight:1,actions=output:3"),
    ("add-group/selection_hash", ["add-group"],
     "group_id=7,type=select,selection_method=hash,selection_method_param=9,"
     "fields(reg1,eth_dst=00:00:00:00:00:ff,ip_src,nw_proto,tcp_dst=0xff00),"
     "bucket=bucket_id:0,weight:1,actions=output:1"),
    ("add-group/selection_of_parts_of_bytes", ["add-group"],
     "group_id=7,type=select,selection_method=hash,fields(vlan_vid,ip_dscp),"
     "bucket=bucket_id:0,weight:1,actions=output:1"),
    ("add-group/selection_dp_hash", ["add-group"],
     "group_id=8,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:1,"
     "actions=output:1"),
    ("mod-group/selection_of_one", ["mod-group"],
     "group_id=7,type=select,selection_method=hash,fields=ip_dst,"
     "bucket=bucket_id:0,weight:1,actions=output:1"),
    ("remove-buckets/one", ["remove-buckets"], "group_id=6,command_bucket_id=7"),
    ("remove-buckets/last", ["remove-buckets"], "group_id=6,command_bucket_id=last"),
    ("remove-buckets/all", ["remove-buckets"], "group_id=6,command_bucket_id=all"),
]

METERS = [
    ("add-meter/drop", ["add-meter"], "meter=1,kbps,band=type=drop,rate=1000"),
    ("add-meter/burst", ["add-meter"], "meter=2,pktps,burst,band=type=drop,rate=50,burst_size=5"),
    ("add-meter/stats", ["add-meter"], "meter=3,kbps,stats,band=type=drop,rate=1"),
    ("add-meter/dscp_remark", ["add-meter"],
     "meter=4,kbps,band=type=dscp_remark,rate=100,prec_level=2"),
    ("add-meter/two", ["add-meter"], "meter=5,pktps,bands=type=dscp_remark,rate=10,prec_level=1,"
                                     "type=drop,rate=20"),
    ("mod-meter/drop", ["mod-meter"], "meter=1,pktps,band=type=drop,rate=7"),
    ("del-meter/one", ["del-meter"], "meter=1"),
    ("del-meters/all", ["del-meters"], None),
]

# Commands that take something else than a flow, a group or a meter: (name, arguments behind the
# switch). The text of these records is the command line.
OTHERS = [
    ("show", ["show"]),
    ("dump-tables", ["dump-tables"]),
    ("dump-ports", ["dump-ports"]),
    ("dump-ports-one", ["dump-ports", "3"]),
    ("dump-flows", ["dump-flows"]),
    ("dump-flows-filter", ["dump-flows", "tcp,in_port=1,out_port=2"]),
    ("dump-aggregate", ["dump-aggregate", "table=0,ip"]),
    ("queue-stats", ["queue-stats"]),
    ("queue-stats-one", ["queue-stats", "2", "7"]),
    ("queue-get-config", ["queue-get-config", "2"]),
    ("mod-port-down", ["mod-port", "1", "down"]),
    ("mod-port-no-flood", ["mod-port", "1", "no-forward"]),
    ("set-frags", ["set-frags", "drop"]),
    ("packet-out", ["packet-out", "in_port=1,packet=0102030405060708090a0b0c0800,"
                                  "actions=output:2"]),
    ("packet-out-controller", ["packet-out", "in_port=CONTROLLER,"
                               "packet=ffffffffffff0200000000010806,actions=FLOOD"]),
]

OTHERS_V1_1 = [
    ("dump-ports-desc", ["dump-ports-desc"]),
    ("dump-flows-cookie", ["dump-flows", "cookie=0x5/0xff,table=2,out_group=4"]),
    ("dump-groups", ["dump-groups"]),
    ("dump-group-stats", ["dump-group-stats", "group_id=3"]),
]

OTHERS_V1_3 = [
    ("dump-ports-desc", ["dump-ports-desc"]),
    ("dump-flows-cookie", ["dump-flows", "cookie=0x5/0xff,table=2,out_group=4"]),
    ("dump-table-features", ["dump-table-features"]),
    ("dump-groups", ["dump-groups"]),
    ("dump-group-stats", ["dump-group-stats", "group_id=3"]),
    ("dump-group-features", ["dump-group-features"]),
    ("dump-meters", ["dump-meters"]),
    ("meter-stats", ["meter-stats", "meter=3"]),
    ("meter-features", ["meter-features"]),
]


class Listener:
    """Answers one ovs-ofctl and keeps what it sends."""

    def __init__(self, version):
        self.version = version
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.messages = []

    def target(self):
        return f"tcp:127.0.0.1:{self.socket.getsockname()[1]}"

    def run(self):
        peer, _ = self.socket.accept()
        with peer, peer.makefile("rb") as stream:
            while header := stream.read(8):
                _, number, length, xid = struct.unpack("!BBHI", header)
                body = stream.read(length - 8)
                answer = self.answer(number, body)
                if number not in (0, self.barrier()):
                    self.messages.append(header[:4] + bytes(4) + body)
                if answer is None:
                    if number != 0:
                        continue
                    answer = (0, b"")
                number, body = answer
                head = struct.pack("!BBHI", self.version, number, 8 + len(body), xid)
                try:
                    peer.sendall(head + body)
                except OSError:
                    return

    def barrier(self):
        return 18 if self.version == 1 else 20

    def answer(self, number, body):
        """(type, body) of the reply, for what ovs-ofctl waits for."""
        mac, name = bytes.fromhex("02000000000a"), b"p1".ljust(16, b"\0")
        if number == self.barrier():
            return (number + 1, b"")
        if number == 5:
            features = struct.pack("!QIBBHII", 1, 0, 1, 0, 0, 7, 0)
            port = {1: struct.pack("!H6s16s6I", 1, mac, name, 0, 0, 0, 0, 0, 0),
                    2: struct.pack("!I4x6s2x16s8I", 1, mac, name, 0, 0, 0, 0, 0, 0, 0, 0)}
            return (6, features + port.get(self.version, b""))
        if number == 7:
            return (8, struct.pack("!HH", 0, 128))
        if (self.version, number, body[:2]) == (4, 18, b"\0\r"):
            port = struct.pack("!I4x6s2x16s8I", 1, mac, name, 0, 0, 0, 0, 0, 0, 0, 0)
            return (19, struct.pack("!HH4x", 13, 0) + port)
        if (self.version, number, body[:2]) == (6, 18, b"\0\r"):
            port = struct.pack("!IH2x6s2x16s2I", 1, 40, mac, name, 0, 0)
            return (19, struct.pack("!HH4x", 13, 0) + port)
        return None


def capture(version, before, behind):
    """The messages of `ovs-ofctl BEFORE switch BEHIND`."""
    listener = Listener(version)
    thread = threading.Thread(target=listener.run, daemon=True)
    thread.start()
    flag = {1: ["-O", "OpenFlow10", "-F", "OpenFlow10"], 2: ["-O", "OpenFlow11"],
            4: ["-O", "OpenFlow13"], 6: ["-O", "OpenFlow15"]}[version]
    command = ["ovs-ofctl", "-t", "1", "--no-names", *flag, *before, listener.target(), *behind]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    thread.join(3)
    assert listener.messages, f"{command}: {result.stderr}"
    return listener.messages


def record(name, text, data):
    program = subprocess.run(["ovs-ofctl", "--version"], capture_output=True, text=True, check=True)
    source = program.stdout.splitlines()[0].replace("(Open vSwitch) ", "")
    lines = [f"name: {name}", f"source: {source}", f"text: {text}".rstrip()]
    lines.append(f"hex: {hex_lines(data)}")
    written, note = canonical(data)
    if written != data:
        lines += ["", f"name: {name}/canonical", f"note: {note}", f"hex: {hex_lines(written)}"]
    return "\n".join(lines)


def canonical(data):
    """How the message is written by an encoder that has no taste of its own, and why."""
    if data[:2] in (b"\4\x0e", b"\6\x0e"):
        data = split_registers(data, 48)
        return sort_match(48)(data), "fields are written in the order of their numbers"
    return data, None


def split_registers(data, offset):
    """Registers of 64 bits in the match at `offset` as the two of 32 bits that each is."""
    length = int.from_bytes(data[offset + 2:offset + 4], "big")
    end, fields, at = offset + (length + 7) // 8 * 8, b"", offset + 4
    while at < offset + length:
        field = data[at:at + 4 + data[at + 3]]
        at += len(field)
        if field[:2] != b"\x80\1":
            fields += field
            continue
        mask = field[12:] or b"\xff" * 8
        for half, number in ((0, field[2] // 2 * 2), (4, field[2] // 2 * 2 + 1)):
            value, bits = field[4 + half:8 + half], mask[half:half + 4]
            if bits == b"\xff" * 4:
                fields += bytes([0, 1, number << 1, 4]) + value
            elif any(bits):
                fields += bytes([0, 1, number << 1 | 1, 8]) + value + bits
    match = b"\0\1" + (4 + len(fields)).to_bytes(2, "big") + fields
    data = data[:offset] + match + bytes(-len(match) % 8) + data[end:]
    return data[:2] + len(data).to_bytes(2, "big") + data[4:]


def flow_text(match, actions):
    return ",".join(part for part in (match, f"actions={actions}") if part)


def given(version):
    """(name, options and command, text) of all flows, groups and meters."""
    newer = version >= 4
    if version == 2:
        for name, match in FIELDS + FIELDS_V1_1:
            yield f"add-flow/match_{name}", ["add-flow"], flow_text(match, "output:1")
        for name, match, actions in ACTIONS + ACTIONS_V1_1:
            yield f"add-flow/action_{name}", ["add-flow"], flow_text(match, actions)
        yield from FLOWS_V1_1 + GROUPS_V1_1
        return
    for name, match in FIELDS + (FIELDS_V1_3 if newer else []):
        yield f"add-flow/match_{name}", ["add-flow"], flow_text(match, "output:1")
    for name, match, actions in ACTIONS + (ACTIONS_V1_3 if newer else ACTIONS_V1_0):
        yield f"add-flow/action_{name}", ["add-flow"], flow_text(match, actions)
    yield from FLOWS
    if newer:
        yield from FLOWS_V1_3 + GROUPS + METERS
    if version >= 6:
        yield from GROUPS_V1_5


def main(out):
    others = {1: [], 2: OTHERS_V1_1, 4: OTHERS_V1_3, 6: OTHERS_V1_3}
    for version in others:
        file = f"of1{version - 1}.vec"
        records = [f"# What ovs-ofctl sends in OpenFlow 1.{version - 1}, "
                   "captured by vectors/tools/from_ovs_ofctl.py; xids are zeroed."]
        for name, command, text in given(version):
            messages = capture(version, command, [] if text is None else [text])
            assert len(messages) == 1, name
            records.append(record(name, text or "", messages[0]))
        for name, command in OTHERS + others[version]:
            messages = capture(version, command[:1], command[1:])
            for at, message in enumerate(messages):
                suffix = f"/{at}" if len(messages) > 1 else ""
                records.append(record(f"command/{name}{suffix}", " ".join(command), message))
        pathlib.Path(out, file).write_text("\n\n".join(records) + "\n")
        print(file, len(records) - 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
