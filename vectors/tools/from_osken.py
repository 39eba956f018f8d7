#!/usr/bin/env python3
"""Writes the binary OpenFlow messages of the Python package os-ken as vector files.

os-ken 4.2.2 (Apache-2.0) ships messages of OpenFlow 1.0, 1.2, 1.3, 1.4 and 1.5 below
`os_ken/tests/packet_data`, made by LINC, by Open vSwitch and by its own tests, and for each what
its decoder makes of it below `os_ken/tests/unit/ofproto/json`. Here they become one file per
version in the format of `vectors/README.md`; decodings are kept of 1.0 and 1.3.

Two tables below hold what cannot be taken as it is: messages that must be refused, with the error,
and messages that no encoder would write byte for byte, each with the reason and the edit that makes
them canonical. The edits are made on os-ken's bytes; no encoder of ours takes part.

usage: from_osken.py SITE_PACKAGES OUT_FOLDER
"""

import json
import pathlib
import re
import sys

SPOKEN = ("of10", "of12", "of13", "of14", "of15")
# Decodings of 1.2, 1.4 and 1.5 are not compared, only its bytes.
DECODED = ("of10", "of13")
WIDTH = 96

def zero(*places):
    """An edit that zeroes (offset, length) places."""
    def edit(data):
        data = bytearray(data)
        for offset, length in places:
            data[offset:offset + length] = bytes(length)
        return bytes(data)
    return edit


def put(offset, new):
    """An edit that overwrites bytes."""
    return lambda data: data[:offset] + bytes.fromhex(new) + data[offset + len(new) // 2:]


def cap_counts(offset):
    """An edit that writes at most 32 ignored bits for the addresses of 1.0's match at `offset`."""
    def edit(data):
        bits = int.from_bytes(data[offset:offset + 4], "big")
        for shift in (8, 14):
            count = min(bits >> shift & 0x3F, 32)
            bits = bits & ~(0x3F << shift) | count << shift
        return data[:offset] + bits.to_bytes(4, "big") + data[offset + 4:]
    return edit


def sort_match(offset):
    """An edit that orders the match at `offset` by field and keeps the fields of the version, and
    after them ONF's tcp_flags, the 16 registers of Nicira's and its other fields."""
    def edit(data):
        last = {3: 35, 5: 41, 6: 42}.get(data[0], 39)
        nicira = (*range(16), 26, 29, 33, 37)
        length = int.from_bytes(data[offset + 2:offset + 4], "big")
        end = offset + (length + 7) // 8 * 8
        fields, at = [], offset + 4
        while at < offset + length:
            size = 4 + data[at + 3]
            fields.append(data[at:at + size])
            at += size
        known = sorted(f for f in fields if f[:2] == b"\x80\0" and f[2] >> 1 <= last)
        known += [f for f in fields if f[:2] == b"\xff\xff" and f[2] >> 1 == 42]
        known += sorted(f for f in fields if f[:2] == b"\0\1" and f[2] >> 1 in nicira)
        match = b"".join(known)
        match = b"\0\1" + (4 + len(match)).to_bytes(2, "big") + match
        data = data[:offset] + match + bytes(-len(match) % 8) + data[end:]
        return data[:2] + len(data).to_bytes(2, "big") + data[4:]
    return edit


def cut(lengths, *ranges):
    """An edit that takes (from, to) ranges out, and counts off 16-bit lengths at offsets."""
    def edit(data):
        data = bytearray(data)
        for offset, count in lengths:
            data[offset:offset + 2] = (int.from_bytes(data[offset:offset + 2], "big")
                                       - count).to_bytes(2, "big")
        for start, end in reversed(ranges):
            del data[start:end]
        return bytes(data)
    return edit


def chain(*edits):
    """Edits one after the other."""
    def edit(data):
        for one in edits:
            data = one(data)
        return data
    return edit


MONITOR = "flow monitors are not there"
OTHERS = "properties of optical ports and of experimenters are left out"
FEATURES = "features of bundles are not there"
STATUS = "the status of other controllers is not there"
COUNTS = "counts without the entry are not there"
NUMBER = "numbers of controllers are not given"
NICIRA = "matches a field of Nicira's, which is not OpenFlow 1.3"

# name: (protocol error, why)
REFUSED = {
    "3-60-ofp_flow_mod": ("OFPBMC_BAD_PREREQ", "matches fields of several EtherTypes at once"),
    "4-2-ofp_flow_mod": ("OFPBAC_BAD_SET_TYPE", "sets PBB_UCA of 1.4"),
    "4-12-ofp_flow_stats_reply": ("OFPBAC_BAD_SET_TYPE", "sets PBB_UCA of 1.4"),
    "4-60-ofp_flow_mod": ("OFPBMC_BAD_FIELD", "matches PBB_UCA of 1.4"),
    "libofproto-OFP13-flow_mod": ("OFPBMC_BAD_FIELD", NICIRA),
    "libofproto-OFP13-flow_mod.truncated64": ("OFPBRC_BAD_LEN", "os-ken ships it empty"),
    "libofproto-OFP13-flow_mod_conjunction": ("OFPBMC_BAD_FIELD", NICIRA),
    "libofproto-OFP13-flow_removed": ("OFPBMC_BAD_FIELD", NICIRA),
    "ovs-ofctl-of13-action_conjunction": ("OFPBMC_BAD_FIELD", NICIRA),
    "ovs-ofctl-of13-action_ct": ("OFPBMC_BAD_FIELD", NICIRA),
    "ovs-ofctl-of13-action_ct_clear": ("OFPBMC_BAD_FIELD", NICIRA),
    "ovs-ofctl-of13-action_ct_exec": ("OFPBMC_BAD_FIELD", NICIRA),
    "ovs-ofctl-of13-action_learn": ("OFPBMC_BAD_FIELD", NICIRA),
    "ovs-ofctl-of13-action_resubmit": ("OFPBMC_BAD_FIELD", NICIRA),
    "5-58-ofp_flow_mod": ("OFPBMC_BAD_PREREQ", "matches fields of several EtherTypes at once"),
    "5-22-ofp_port_mod": ("OFPBPC_BAD_TYPE", "configures an optical port"),
    "5-23-ofp_table_mod": ("OFPBPC_BAD_EXPERIMENTER", "has properties of an experimenter"),
    "5-42-ofp_set_async": ("OFPBPC_BAD_EXPERIMENTER", "has properties of an experimenter"),
    "5-69-ofp_bundle_ctrl_msg": ("OFPBPC_BAD_EXPERIMENTER", "has properties of an experimenter"),
    "5-70-ofp_bundle_add_msg": ("OFPBPC_BAD_EXPERIMENTER", "has properties of an experimenter"),
    "5-66-ofp_flow_monitor_request": ("OFPBRC_BAD_MULTIPART", MONITOR),
    "5-67-ofp_flow_monitor_reply": ("OFPBRC_BAD_MULTIPART", MONITOR),
    "libofproto-OFP15-bundle_features_reply": ("OFPBRC_BAD_MULTIPART", FEATURES),
    "libofproto-OFP15-bundle_features_request": ("OFPBRC_BAD_MULTIPART", FEATURES),
    "libofproto-OFP15-controller_status_reply": ("OFPBRC_BAD_MULTIPART", STATUS),
    "libofproto-OFP15-controller_status_request": ("OFPBRC_BAD_MULTIPART", STATUS),
    "libofproto-OFP15-flow_monitor_reply": ("OFPBRC_BAD_MULTIPART", MONITOR),
    "libofproto-OFP15-flow_monitor_request": ("OFPBRC_BAD_MULTIPART", MONITOR),
    "libofproto-OFP15-flow_stats_reply": ("OFPBRC_BAD_MULTIPART", COUNTS),
    "libofproto-OFP15-flow_stats_request": ("OFPBRC_BAD_MULTIPART", COUNTS),
    "libofproto-OFP15-flow_mod": ("OFPBMC_BAD_FIELD", NICIRA),
    "libofproto-OFP15-flow_mod_conjunction": ("OFPBMC_BAD_FIELD", NICIRA),
    "libofproto-OFP15-flow_desc_reply":
        ("OFPBIC_BAD_LEN", "an instruction of 8 bytes that says it has 2056"),
    "libofproto-OFP15-port_mod": ("OFPBPC_BAD_TYPE", "configures an optical port"),
    "libofproto-OFP15-set_async": ("OFPBPC_BAD_EXPERIMENTER", "has properties of an experimenter"),
    "libofproto-OFP15-table_features_request":
        ("OFPTFFC_BAD_COMMAND", "changes the features of one table"),
    "libofproto-OFP15-meter_features_reply":
        ("OFPBRC_BAD_LEN", "40 bytes under a header that says 32"),
}

# name: (why, edit of the bytes)
CANONICAL = {
    "1-2-ofp_flow_mod":
        ("63 ignored bits of the addresses are written as 32", cap_counts(8)),
    "1-6-ofp_switch_features":
        ("1.0 does not know these bits of a port's state", zero((60, 4), (108, 4))),
    "3-4-ofp_packet_in": ("fields are written in the order of their numbers", sort_match(16)),
    "3-59-ofp_packet_in": ("fields are written in the order of their numbers", sort_match(16)),
    "4-4-ofp_packet_in": ("fields are written in the order of their numbers", sort_match(24)),
    "4-59-ofp_packet_in":
        ("a packet-in's unknown fields are left out, the others put in order", sort_match(24)),
    "libofproto-OFP13-packet_in":
        ("a packet-in's unknown fields are left out", sort_match(24)),
    "ovs-ofctl-of13-match_conj":
        ("fields are written in the order of their numbers", sort_match(48)),
    "5-4-ofp_packet_in": ("fields are written in the order of their numbers", sort_match(24)),
    "5-57-ofp_packet_in":
        ("a packet-in's unknown fields are left out, the others put in order", sort_match(24)),
    "5-30-ofp_port_stats_reply": (OTHERS, cut([(2, 104), (16, 104)], (136, 240))),
    "5-36-ofp_queue_stats_reply": (OTHERS, cut([(2, 56), (16, 56)], (64, 120))),
    "5-37-ofp_port_status": (OTHERS, cut([(2, 96), (20, 96)], (88, 184))),
    "5-41-ofp_get_async_reply": (OTHERS, cut([(2, 56)], (104, 160))),
    "5-52-ofp_port_desc_reply": (OTHERS, cut([(2, 96), (20, 96)], (88, 184))),
    "5-62-ofp_table_desc_reply":
        (OTHERS, cut([(2, 72), (16, 16), (40, 56)], (24, 40), (64, 120))),
    "5-65-ofp_role_status": (OTHERS, cut([(2, 56)], (24, 80))),
    "5-68-ofp_table_status": (OTHERS, cut([(2, 56), (16, 56)], (40, 96))),
    "libofproto-OFP15-controller_status":
        ("without the address of the controller", cut([(2, 32), (8, 32)], (24, 56))),
    "libofproto-OFP15-flow_removed":
        ("an entry has a duration and no number of entries",
         put(40, "00000010800200080000000000000000")),
    "libofproto-OFP15-get_async_reply": (OTHERS, cut([(2, 56)], (104, 160))),
    "libofproto-OFP15-packet_in":
        ("a packet-in's unknown fields are left out", sort_match(24)),
    "libofproto-OFP15-port_desc_reply": (OTHERS, cut([(2, 96), (20, 96)], (88, 184))),
    "libofproto-OFP15-port_stats_reply": (OTHERS, cut([(2, 104), (16, 104)], (136, 240))),
    "libofproto-OFP15-port_status": (OTHERS, cut([(2, 96), (20, 96)], (88, 184))),
    "libofproto-OFP15-queue_stats_reply": (OTHERS, cut([(2, 56), (16, 56)], (64, 120))),
    "libofproto-OFP15-role_reply": (NUMBER, zero((12, 2))),
    "libofproto-OFP15-role_request": (NUMBER, zero((12, 2))),
    "libofproto-OFP15-table_desc_reply":
        (OTHERS, cut([(2, 72), (16, 16), (40, 56)], (24, 40), (64, 120))),
    "libofproto-OFP15-table_features_reply":
        ("the command of a reply is zero, and a value that is no packet type is left out",
         chain(put(19, "00"), put(80, "0016000400000000"), cut([(2, 8), (16, 8)], (88, 96)))),
    "libofproto-OFP15-table_status": (OTHERS, cut([(2, 56), (16, 56)], (40, 96))),
}


def hex_lines(data):
    lines = [data[at:at + 32].hex(" ") for at in range(0, len(data), 32)]
    return "\n  ".join(lines)


def json_text(text):
    """JSON without insignificant blanks, broken between tokens."""
    text = json.dumps(json.loads(text), separators=(",", ":"))
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"[:,]?|[^"]+?(?=")|[^"]+$', text)
    pieces = [part for token in tokens for part in
              ([token] if token.startswith('"') else re.split(r"(?<=[,\]}])", token))]
    lines = [""]
    for piece in pieces:
        if len(lines[-1]) + len(piece) > WIDTH and lines[-1]:
            lines.append("")
        lines[-1] += piece
    joined = "\n  ".join(line for line in lines if line)
    assert json.loads(joined) == json.loads(text), text
    return joined


def record(version, path, decoding):
    data = path.read_bytes()
    name = path.name.removesuffix(".packet")
    lines = [f"name: {name}", f"source: os-ken 4.2.2, packet_data/{version}/{path.name}"]
    note = None
    if version not in SPOKEN:
        if name in REFUSED:
            error, note = REFUSED[name]
            lines.append(f"error: {error}")
        elif data[1] != 0:
            lines.append("error: OFPBRC_BAD_VERSION")
    elif name in REFUSED:
        error, note = REFUSED[name]
        lines.append(f"error: {error}")
    elif name in CANONICAL:
        note = CANONICAL[name][0]
    if note:
        lines.append(f"note: {note}")
    if version in DECODED and decoding.exists():
        lines.append(f"json: {json_text(decoding.read_text())}")
    lines.append(f"hex: {hex_lines(data)}")
    if version in SPOKEN and name in CANONICAL:
        canonical = CANONICAL[name][1](data)
        lines += ["", f"name: {name}/canonical", f"note: how {name} is written",
                  f"hex: {hex_lines(canonical)}"]
    return "\n".join(lines)


def main(site_packages, out):
    tests = pathlib.Path(site_packages) / "os_ken" / "tests"
    used = set()
    for folder in sorted((tests / "packet_data").glob("of1*")):
        version = folder.name
        decodings = tests / "unit" / "ofproto" / "json" / version
        head = [
            f"# Messages of OpenFlow {version[2]}.{version[3]} from os-ken 4.2.2 (Apache-2.0),",
            "# written by vectors/tools/from_osken.py. A record whose name ends in /canonical is",
            "# how the message before it is encoded; all others are encoded as they are.",
        ]
        records = []
        for path in sorted(folder.iterdir()):
            used.add(path.name.removesuffix(".packet"))
            records.append(record(version, path, decodings / (path.name + ".json")))
        text = "\n".join(head) + "\n\n" + "\n\n".join(records) + "\n"
        (pathlib.Path(out) / f"{version}.vec").write_text(text)
        print(version, len(records))
    unknown = (REFUSED.keys() | CANONICAL.keys()) - used
    assert not unknown, f"not in os-ken: {unknown}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
