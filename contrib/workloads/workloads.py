#!/usr/bin/env python3
"""Datapath workloads that any OpenFlow switch can be given: a trace and a flow file for each.

    workloads.py list
    workloads.py make NAME[,NAME..]|all DIR [--seed N] [--size BYTES]

writes DIR/NAME.pcap (Ethernet frames, classic pcap) and DIR/NAME.flows (ovs-ofctl syntax, one flow
entry a line). Packets enter port 1; a correct switch sends all of them out of port 2.
Deterministic for a given seed; standard library only.
The scenarios datapath-* of `weir lab run` measure them.
"""
import argparse
import os
import random
import struct

SMAC, DMAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(src, dst, sport, dport, proto=17, size=64, tag=b"", tos=0):
    """One frame of `size` bytes counting the 4-byte FCS, which a pcap does not hold."""
    length = size - 4 - 14 - len(tag)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, tos, length, 0, 0, 64, proto, 0,
                       src.to_bytes(4, "big"), dst.to_bytes(4, "big"))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    if proto == 17:
        l4 = struct.pack(">HHHH", sport, dport, length - 20, 0)
    else:
        l4 = struct.pack(">HHIIBBHHH", sport, dport, 1, 0, 0x50, 0x10, 8192, 0, 0)
    return (DMAC + SMAC + tag + b"\x08\x00" + head + l4).ljust(size - 4, b"\0")


def frame6(src, dst, sport, dport, size=64):
    """One UDP frame of IPv6; as short as it can be where `size` is shorter."""
    size = max(size, 14 + 40 + 8 + 4)
    length = size - 4 - 14 - 40
    head = struct.pack(">IHBB16s16s", 6 << 28, length, 17, 64, src.to_bytes(16, "big"),
                       dst.to_bytes(16, "big"))
    l4 = struct.pack(">HHHH", sport, dport, length, 0)
    return (DMAC + SMAC + b"\x86\xdd" + head + l4).ljust(size - 4, b"\0")


def pair(i):
    """The i-th source and destination address."""
    return 0x0A000000 | (i & 0xFFFFFF), 0x0A800000 | (i & 0x7FFFFF)


def pair6(i):
    """The i-th source and destination address of IPv6 (documentation prefix, RFC 3849)."""
    return 0x20010DB8 << 96 | i, 0x20010DB8 << 96 | 1 << 64 | i


def dotted(address):
    return ".".join(str(b) for b in address.to_bytes(4, "big"))


def coloned(address):
    return ":".join(f"{address >> 112 - 16 * n & 0xFFFF:x}" for n in range(8))


def flows_frames(n, rng, size, **kw):
    frames = [frame(*pair(i), 1000, 2000, size=size, **kw) for i in range(n)]
    rng.shuffle(frames)
    return frames


def port(rng, size):
    return ["in_port=1,actions=output:2"], flows_frames(1000, rng, size)


def l2l3(n, flows=100_000):
    def make(rng, size):
        entries = [
            f"ip,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src={dotted(s)},"
            f"nw_dst={dotted(d)},actions=output:2" for s, d in map(pair, range(n))]
        return entries, flows_frames(min(n, flows), rng, size)
    return make


def l3v6(n):
    """Entries of full IPv6 addresses."""
    def make(rng, size):
        entries = [f"ipv6,ipv6_src={coloned(s)},ipv6_dst={coloned(d)},actions=output:2"
                   for s, d in map(pair6, range(n))]
        frames = [frame6(*pair6(i), 1000, 2000, size=size) for i in range(min(n, 100_000))]
        rng.shuffle(frames)
        return entries, frames
    return make


def one_field_61k(rng, size):
    entries = [f"ip,nw_dst={dotted(pair(i)[1])},actions=output:2" for i in range(61_000)]
    return entries, flows_frames(1000, rng, size)


def twelve_tuple_61k(rng, size):
    entries = [
        f"in_port=1,udp,dl_vlan=7,dl_vlan_pcp=0,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,"
        f"nw_src={dotted(s)},nw_dst={dotted(d)},nw_tos=0,tp_src=1000,tp_dst=2000,actions=output:2"
        for s, d in map(pair, range(61_000))]
    return entries, flows_frames(1000, rng, size, tag=bytes.fromhex("81000007"))


def tables64(rng, size):
    """61,000 entries over 64 tables; a packet visits all 64, a different field in each of them."""
    entries = []
    for t in range(64):
        go = f"goto_table:{t + 1}" if t < 63 else "output:2"
        what = t % 4
        for i in range(61_000 // 64):
            s, d = pair(i)
            match = (f"ip,nw_dst={dotted(d)}", f"ip,nw_src={dotted(s)}",
                     f"udp,nw_dst={dotted(d)},tp_dst=2000",
                     f"udp,nw_src={dotted(s)},tp_src=1000")[what]
            entries.append(f"table={t},{match},actions={go}")
    return entries, flows_frames(61_000 // 64, rng, size)


def rewrite(rng, size):
    entries = [
        f"ip,nw_dst={dotted(pair(i)[1])},actions=dec_ttl,mod_dl_src:02:00:00:00:00:aa,"
        f"mod_dl_dst:02:00:00:00:00:bb,mod_nw_src:192.0.2.1,mod_tp_src:77,output:2"
        for i in range(1000)]
    return entries, flows_frames(1000, rng, size)


def nat(n):
    """Five-tuples, each with addresses and ports of its own to be sent on with."""
    def make(rng, size):
        entries, frames = [], []
        for i in range(n):
            (s, d), sport, dport = pair(i), 1024 + i * 7 % 60_000, 53 + i % 11
            entries.append(
                f"udp,nw_src={dotted(s)},nw_dst={dotted(d)},tp_src={sport},tp_dst={dport},"
                f"actions=mod_nw_src:{dotted(0xC6120000 | i)},mod_nw_dst:{dotted(0xCB007100 ^ i)},"
                f"mod_tp_src:{65_535 - i % 60_000},mod_tp_dst:{1024 + i % 60_000},output:2")
            frames.append(frame(s, d, sport, dport, size=size))
        rng.shuffle(frames)
        return entries, frames
    return make


def vlan_to_mpls(rng, size):
    entries = [
        f"dl_vlan={v},actions=pop_vlan,push_mpls:0x8847,set_field:{v}->mpls_label,output:2"
        for v in range(1, 4001)]
    frames = [frame(*pair(i), 1000, 2000, size=size, tag=struct.pack(">HH", 0x8100, 1 + i % 4000))
              for i in range(8000)]
    return entries, frames


def lpm100k(rng, size):
    """100,000 IPv4 prefixes with the lengths of an Internet table; random destinations inside."""
    weights = [1, 1, 2, 4, 8, 12, 20, 40, 300, 150, 250, 450, 700, 900, 1800, 1700, 10000, 30, 40,
               40, 40, 50, 60, 60, 80]
    lengths = rng.choices(range(8, 33), weights=weights, k=130_000)
    prefixes = {}
    for length in lengths:
        base = (rng.getrandbits(32) >> (32 - length)) << (32 - length)
        prefixes[(base, length)] = None
        if len(prefixes) == 100_000:
            break
    entries = [f"priority={length},ip,nw_dst={dotted(base)}/{length},actions=output:2"
               for base, length in prefixes]
    picks = rng.choices(list(prefixes), k=100_000)
    frames = []
    for i, (base, length) in enumerate(picks):
        inside = base | rng.getrandbits(32 - length) if length < 32 else base
        frames.append(frame(0x0A000001 + i % 999, inside, 1000, 2000, size=size))
    return entries, frames


KINDS = ["ipv4", "arp", "mpls", "qinq", "ipv6"]


def kinds(weights):
    """Frames of several kinds, drawn by these weights in the order of KINDS; the same 5,000
    entries, 1,000 for each kind, whatever the weights. Labels and tags make frames longer."""
    def make(rng, size):
        entries, frames = [], {kind: [] for kind in KINDS}
        for i in range(1000):
            (s, d), (s6, d6), label, vlan = pair(i), pair6(i), 16 + i, 1 + i
            entries += [f"ip,vlan_tci=0,nw_dst={dotted(d)},actions=output:2",
                        f"arp,arp_tpa={dotted(d)},actions=output:2",
                        f"mpls,mpls_label={label},actions=output:2",
                        f"dl_vlan={vlan},actions=output:2",
                        f"ipv6,ipv6_dst={coloned(d6)},actions=output:2"]
            plain = frame(s, d, 1000, 2000, size=size)
            arp = struct.pack(">HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, SMAC, s.to_bytes(4, "big"),
                              bytes(6), d.to_bytes(4, "big"))
            stack = struct.pack(">I", label << 12 | 1 << 8 | 64)
            tags = struct.pack(">HHHH", 0x88A8, vlan, 0x8100, 7)
            frames["ipv4"].append(plain)
            frames["arp"].append((DMAC + SMAC + b"\x08\x06" + arp).ljust(size - 4, b"\0"))
            frames["mpls"].append(DMAC + SMAC + b"\x88\x47" + stack + plain[14:])
            frames["qinq"].append(frame(s, d, 1000, 2000, size=size + 8, tag=tags))
            frames["ipv6"].append(frame6(s6, d6, 1000, 2000, size=size))
        picks = rng.choices(KINDS, weights=weights, k=20_000)
        return entries, [rng.choice(frames[kind]) for kind in picks]
    return make


PORTS = [22, 25, 53, 80, 110, 123, 143, 443, 993, 3306, 8080]


def acl(n):
    """n five-tuple entries in the manner of firewall lists: prefix pairs of many lengths, port
    values or wildcards, distinct priorities; packets drawn from inside them."""
    def make(rng, size):
        lengths = [0, 8, 16, 20, 22, 24, 26, 28, 29, 30, 31, 32]
        weights = [6, 2, 8, 4, 4, 20, 4, 6, 4, 6, 4, 40]
        entries, frames = [], []
        for i in range(n):
            sl, dl = rng.choices(lengths, weights, k=2)
            sb = (rng.getrandbits(32) >> (32 - sl)) << (32 - sl) if sl else 0
            db = (rng.getrandbits(32) >> (32 - dl)) << (32 - dl) if dl else 0
            proto = rng.choice([6, 17, 6])
            name = "tcp" if proto == 6 else "udp"
            sp = None if rng.random() < .85 else rng.randrange(1, 65535)
            dp = None if rng.random() < .30 else rng.choice(PORTS)
            match = [f"priority={65000 - i % 60000}", name]
            if sl:
                match.append(f"nw_src={dotted(sb)}/{sl}")
            if dl:
                match.append(f"nw_dst={dotted(db)}/{dl}")
            if sp is not None:
                match.append(f"tp_src={sp}")
            if dp is not None:
                match.append(f"tp_dst={dp}")
            entries.append(",".join(match) + ",actions=output:2")
            for _ in range(max(1, 50_000 // n)):
                frames.append(frame(sb | (rng.getrandbits(32 - sl) if sl < 32 else 0),
                                    db | (rng.getrandbits(32 - dl) if dl < 32 else 0),
                                    sp or rng.randrange(1, 65535), dp or rng.randrange(1, 65535),
                                    proto=proto, size=size))
        rng.shuffle(frames)
        return entries, frames[:100_000]
    return make


POLICIES = 13


def policies(is_conjunctive):
    """Policies of 100 sources, 100 destinations and 100 ports each as conjunctive matches; or as
    many entries, each of one source, destination and port. One more entry looks at the Ethernet
    address of the source, so that frames with numbers there begin flows."""
    def triple(i):
        policy, net = i % POLICIES, i % POLICIES << 16
        return (0x0A000000 | net | i // POLICIES % 100,
                0x64000000 | net | (i // (POLICIES * 100) + i * 7) % 100,
                1000 + policy * 100 + i * 31 % 100)

    def make(rng, size):
        entries = ["priority=1,dl_src=06:00:00:00:00:01,actions=drop"]
        for policy in range(POLICIES if is_conjunctive else 0):
            for i in range(100):
                src, dst = (dotted(net | policy << 16 | i) for net in (0x0A000000, 0x64000000))
                parts = f"nw_src={src}", f"nw_dst={dst}", f"tp_dst={1000 + policy * 100 + i}"
                entries += [f"udp,{part},actions=conjunction({policy + 1},{n}/3)"
                            for n, part in enumerate(parts, 1)]
            entries.append(f"udp,conj_id={policy + 1},actions=output:2")
        for i in range(0 if is_conjunctive else POLICIES * 301):
            src, dst, dport = triple(i)
            entries.append(f"udp,nw_src={dotted(src)},nw_dst={dotted(dst)},tp_dst={dport},"
                           "actions=output:2")
        frames = [frame(src, dst, 1000, dport, size=size)
                  for src, dst, dport in map(triple, range(POLICIES * 100))]
        rng.shuffle(frames)
        return entries, frames
    return make


def mask_flood(rng, size):
    """The tuple-space attack: a small whitelist, and packets each of which differs from it at
    another bit, so that a wildcard cache has to make a mask for each pair of prefix lengths."""
    entries = ["priority=9,tcp,nw_src=10.0.0.10,actions=output:2",
               "priority=8,tcp,tp_dst=80,actions=output:2",
               "priority=7,tcp,tp_src=12345,actions=output:2", "priority=1,actions=output:2"]
    frames = []
    for a in range(32):
        for b in range(16):
            for c in range(16):
                frames.append(frame(0x0A00000A ^ (1 << a), 0x0A800001, 12345 ^ (1 << c),
                                    80 ^ (1 << b), proto=6, size=size))
    rng.shuffle(frames)
    return entries, frames


WORKLOADS = {
    "port": port, "l2l3-1k": l2l3(1000), "l2l3-10k": l2l3(10_000), "l2l3-100k": l2l3(100_000),
    "l2l3-1m": l2l3(1_000_000), "l2l3-1m-flows": l2l3(1_000_000, 1_000_000),
    "one-field-61k": one_field_61k, "twelve-tuple-61k": twelve_tuple_61k,
    "tables64": tables64, "rewrite": rewrite, "nat-20k": nat(20_000),
    "vlan-to-mpls": vlan_to_mpls, "lpm-100k": lpm100k,
    "acl-1k": acl(1000), "acl-10k": acl(10_000), "mask-flood": mask_flood,
    "l3v6-10k": l3v6(10_000),
    "conjunctive-4k": policies(True), "triples-4k": policies(False),
    "kinds-ipv4": kinds([1, 0, 0, 0, 0]), "kinds-arp": kinds([0, 1, 0, 0, 0]),
    "kinds-mpls": kinds([0, 0, 1, 0, 0]), "kinds-qinq": kinds([0, 0, 0, 1, 0]),
    "kinds-ipv6": kinds([0, 0, 0, 0, 1]), "kinds-mixed": kinds([92, 2, 2, 2, 2]),
}


def write_pcap(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for data in frames:
            out.write(struct.pack("<IIII", 0, 0, len(data), len(data)) + data)


def make(name, folder, seed, size):
    entries, frames = WORKLOADS[name](random.Random(seed), size)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{name}.flows", "w") as out:
        out.writelines(line + "\n" for line in entries)
    write_pcap(f"{folder}/{name}.pcap", frames)
    print(f"{name}: {len(entries)} flow entries, {len(frames)} frames of {size} bytes")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="verb", required=True)
    sub.add_parser("list")
    verb = sub.add_parser("make")
    verb.add_argument("name", help="names with commas between them, or all")
    verb.add_argument("dir")
    verb.add_argument("--seed", type=int, default=1)
    verb.add_argument("--size", type=int, default=64, help="frame size in bytes, FCS counted")
    args = parser.parse_args()
    if args.verb == "list":
        print("\n".join(WORKLOADS))
        return
    names = list(WORKLOADS) if args.name == "all" else args.name.split(",")
    for name in names:
        if name not in WORKLOADS:
            parser.error(f"no workload {name!r}; there is {', '.join(WORKLOADS)}")
    for name in names:
        make(name, args.dir, args.seed, args.size)


if __name__ == "__main__":
    main()
