#!/usr/bin/env python3
"""Writes `packets/scapy.vec`: frames that scapy makes, with the match fields a reader of the
specification expects of them.

The bytes and checksums are scapy's; the fields are written here by hand, as text in the syntax of
a match, and never come from Weir. All fields that a frame has stand there, except those of its
ingress port.

usage: scapy_packets.py OUT_FILE    (run by a Python that has scapy installed)
"""
import importlib.metadata
import sys

from scapy.all import (ARP, AH, Dot1AD, Dot1Q, Dot3, ESP, Ether, GRE, ICMP,
                       ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                       ICMPv6NDOptDstLLAddr, ICMPv6NDOptMTU, ICMPv6NDOptSrcLLAddr, IP, IPv6,
                       IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                       IPv6ExtHdrRouting, LLC, PadN, Raw, SCTP, SCTPChunkInit, SNAP, STP, TCP,
                       UDP)
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IPOption_RR

E = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
ETH = "eth_dst=02:00:00:00:00:02,eth_src=02:00:00:00:00:01"
I4 = IP(src="10.0.0.1", dst="10.0.0.2", tos=0xBA, ttl=64, id=1)
T4 = ETH + ",eth_type=0x800,ip_dscp=46,ip_ecn=2,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2"
I6 = IPv6(src="fe80::1", dst="2001:db8::2", tc=0xBA, fl=0x12345, hlim=64)
T6 = (ETH + ",eth_type=0x86dd,ip_dscp=46,ip_ecn=2,ipv6_src=fe80::1,ipv6_dst=2001:db8::2"
      ",ipv6_flabel=0x12345")
PAD = PadN(optdata=b"\0\0\0\0")
HOP, DEST = IPv6ExtHdrHopByHop(options=[PAD]), IPv6ExtHdrDestOpt(options=[PAD])
ROUTE = IPv6ExtHdrRouting(addresses=["2001:db8::9"], segleft=0)
FRAG = IPv6ExtHdrFragment
U = UDP(sport=1000, dport=2000)
TU = ",ip_proto=17,udp_src=1000,udp_dst=2000"
LL = "02:00:00:00:00:aa"


def exthdr(bits):
    return f",ipv6_exthdr={bits:#x}"


NONEXT, ESPB, AUTH, DESTB, FRAGB, ROUTER, HOPB, UNREP, UNSEQ = (1 << n for n in range(9))

PACKETS = [
    ("udp", E / I4 / U / b"weir", T4 + TU, ""),
    ("padded", E / I4 / TCP(sport=80, dport=443, flags="S") / Raw() / b"",
     T4 + ",ip_proto=6,tcp_src=80,tcp_dst=443", "padded to 60 bytes"),
    ("ip_options", E / IP(src="10.0.0.1", dst="10.0.0.2", tos=0xBA,
                          options=[IPOption_RR(routers=["1.2.3.4"])]) / U / b"x",
     T4 + TU, "record route"),
    ("sctp", E / I4 / SCTP(sport=5, dport=6, tag=7) / SCTPChunkInit(),
     T4 + ",ip_proto=132,sctp_src=5,sctp_dst=6", ""),
    ("ping", E / I4 / ICMP(type=8, id=1, seq=2) / b"abcdefgh",
     T4 + ",ip_proto=1,icmpv4_type=8,icmpv4_code=0", ""),
    ("port_unreachable", E / I4 / ICMP(type=3, code=3) / IP(dst="10.0.0.9") / UDP(),
     T4 + ",ip_proto=1,icmpv4_type=3,icmpv4_code=3", ""),
    ("first_fragment", E / IP(src="10.0.0.1", dst="10.0.0.2", tos=0xBA, flags="MF", proto=17)
     / U / (b"f" * 24), T4 + TU, "the transport header is here"),
    ("later_fragment", E / IP(src="10.0.0.1", dst="10.0.0.2", tos=0xBA, frag=3, proto=17)
     / Raw(bytes(range(32))), T4 + ",ip_proto=17", "no transport header, whatever it looks like"),
    ("gre", E / I4 / GRE() / IP() / UDP(), T4 + ",ip_proto=47", "not looked into"),
    ("arp", E / ARP(op=2, hwsrc=LL, psrc="10.0.0.1", hwdst="02:00:00:00:00:bb", pdst="10.0.0.2"),
     ETH + ",eth_type=0x806,arp_op=2,arp_spa=10.0.0.1,arp_tpa=10.0.0.2"
     f",arp_sha={LL},arp_tha=02:00:00:00:00:bb", ""),
    ("arp_for_another_medium", E / ARP(hwtype=6, hwsrc=LL, psrc="1.2.3.4"), ETH
     + ",eth_type=0x806", "hardware type IEEE 802: the fields are for Ethernet only"),
    ("vlan", E / Dot1Q(vlan=100, prio=3) / I4 / U, T4 + TU + ",vlan_vid=0x1064,vlan_pcp=3", ""),
    ("priority_tag", E / Dot1Q(vlan=0, prio=7) / I4 / U,
     T4 + TU + ",vlan_vid=0x1000,vlan_pcp=7", "VLAN id 0 is a tag"),
    ("qinq", E / Dot1AD(vlan=200, prio=5) / Dot1Q(vlan=100, prio=3) / I4 / U,
     T4 + TU + ",vlan_vid=0x10c8,vlan_pcp=5", "the outermost tag; the type behind all"),
    ("three_tags", E / Dot1Q(vlan=1, type=0x88A8) / Dot1AD(vlan=2) / Dot1Q(vlan=3) / I4 / U,
     T4 + TU + ",vlan_vid=0x1001,vlan_pcp=0", ""),
    ("mpls", E / MPLS(label=0xABCDE, cos=5, s=0, ttl=9) / MPLS(label=3, s=1) / I4 / U,
     ETH + ",eth_type=0x8847,mpls_label=0xabcde,mpls_tc=5,mpls_bos=0", "nothing behind MPLS"),
    ("pbb", E / Raw(b"\x88\xe7\x60\x12\x34\x56" + bytes(12) + b"\x08\x00" + bytes(20)),
     ETH + ",eth_type=0x88e7,pbb_isid=0x123456", ""),
    ("spanning_tree", Dot3(dst="01:80:c2:00:00:00", src="02:00:00:00:00:01") / LLC() / STP(),
     "eth_dst=01:80:c2:00:00:00,eth_src=02:00:00:00:00:01,eth_type=0x5ff", "802.2 without SNAP"),
    ("snap", Dot3(dst=E.dst, src=E.src) / LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(code=0x800)
     / I4 / U, T4 + TU, ""),
    ("snap_of_a_vendor", Dot3(dst=E.dst, src=E.src) / LLC(dsap=0xAA, ssap=0xAA, ctrl=3)
     / SNAP(OUI=0x00000C, code=0x2000) / b"cdp", ETH + ",eth_type=0x5ff", "another OUI"),
    ("udp6", E / I6 / U / b"weir", T6 + TU + exthdr(0), ""),
    ("ping6", E / I6 / ICMPv6EchoRequest(id=1, seq=2),
     T6 + ",ip_proto=58,icmpv6_type=128,icmpv6_code=0" + exthdr(0), ""),
    ("unreachable6", E / I6 / ICMPv6DestUnreach(code=4) / IPv6() / UDP(),
     T6 + ",ip_proto=58,icmpv6_type=1,icmpv6_code=4" + exthdr(0), ""),
    ("solicit", E / I6 / ICMPv6ND_NS(tgt="fe80::2") / ICMPv6NDOptSrcLLAddr(lladdr=LL),
     T6 + ",ip_proto=58,icmpv6_type=135,icmpv6_code=0,ipv6_nd_target=fe80::2"
     f",ipv6_nd_sll={LL}" + exthdr(0), ""),
    ("solicit_without_option", E / I6 / ICMPv6ND_NS(tgt="fe80::2"),
     T6 + ",ip_proto=58,icmpv6_type=135,icmpv6_code=0,ipv6_nd_target=fe80::2" + exthdr(0), ""),
    ("advert", E / I6 / ICMPv6ND_NA(tgt="fe80::3") / ICMPv6NDOptMTU()
     / ICMPv6NDOptDstLLAddr(lladdr=LL),
     T6 + ",ip_proto=58,icmpv6_type=136,icmpv6_code=0,ipv6_nd_target=fe80::3"
     f",ipv6_nd_tll={LL}" + exthdr(0), "the option is the second one"),
    ("ordered_chain", E / I6 / HOP / DEST / ROUTE / FRAG(id=1) / DEST / U, T6 + TU
     + exthdr(HOPB | DESTB | ROUTER | FRAGB), "an atomic fragment is whole"),
    ("chain_out_of_order", E / I6 / ROUTE / HOP / U, T6 + TU + exthdr(ROUTER | UNSEQ),
     "hop-by-hop options count in the first place only"),
    ("repeated_header", E / I6 / ROUTE / ROUTE / U, T6 + TU + exthdr(ROUTER | UNREP), ""),
    ("three_destination_options", E / I6 / DEST / DEST / DEST / U,
     T6 + TU + exthdr(DESTB | UNREP), "two are expected"),
    ("authenticated", E / I6 / AH(nh=17, payloadlen=4, spi=1, seq=2, icv=b"\0" * 12) / U,
     T6 + TU + exthdr(AUTH), ""),
    ("encrypted", E / I6 / HOP / ESP(spi=1, seq=2, data=b"\0" * 24),
     T6 + ",ip_proto=50" + exthdr(HOPB | ESPB), ""),
    ("no_next_header", E / I6 / DEST / Raw(), T6 + ",ip_proto=59" + exthdr(DESTB | NONEXT), ""),
    ("later_fragment6", E / I6 / FRAG(offset=8, nh=17, id=1) / Raw(bytes(16)),
     T6 + ",ip_proto=17" + exthdr(FRAGB), ""),
    ("first_fragment6", E / I6 / FRAG(offset=0, m=1, id=1) / U / Raw(bytes(16)),
     T6 + TU + exthdr(FRAGB), ""),
]

CUTS = [
    ("cut_in_ethernet", "udp", 13, ""),
    ("cut_in_ipv4", "udp", 33, ETH + ",eth_type=0x800"),
    ("cut_in_udp", "udp", 41, T4 + ",ip_proto=17"),
    ("cut_in_tag", "vlan", 17, ETH + ",eth_type=0x8100"),
    ("cut_in_tcp", "padded", 53, T4 + ",ip_proto=6"),
    ("cut_in_option", "solicit", 85, T6
     + ",ip_proto=58,icmpv6_type=135,icmpv6_code=0,ipv6_nd_target=fe80::2" + exthdr(0)),
    ("cut_in_target", "solicit", 77, T6 + ",ip_proto=58,icmpv6_type=135,icmpv6_code=0"
     + exthdr(0)),
    ("cut_in_chain", "ordered_chain", 65, T6 + exthdr(HOPB)),
]


def record(name, frame, text, note):
    lines = [f"name: {name}", f"source: scapy {VERSION}, fields by hand", f"text: {text}"]
    if note:
        lines.append(f"note: {note}")
    pairs = [frame[at:at + 32].hex(" ") for at in range(0, len(frame), 32)]
    return "\n".join(lines) + "\nhex: " + "\n  ".join(pairs) + "\n"


def main(out):
    frames = {name: bytes(packet) for name, packet, _, _ in PACKETS}
    frames["padded"] = frames["padded"].ljust(60, b"\0")
    frames["no_next_header"] = mend_next_header(frames["no_next_header"])
    frames["pbb"] = bytes(E)[:12] + frames["pbb"][14:]
    texts = [record(name, frames[name], text, note) for name, _, text, note in PACKETS]
    for name, whole, length, text in CUTS:
        texts.append(record(name, frames[whole][:length], text, f"{whole}, cut off"))
    with open(out, "w") as made:
        made.write("# Written by vectors/tools/scapy_packets.py; not edited by hand.\n\n")
        made.write("\n".join(texts))


def mend_next_header(frame):
    """Says "no next header" in the destination options, which scapy fills in by guess."""
    return frame[:54] + bytes([59]) + frame[55:]


VERSION = importlib.metadata.version("scapy")

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
