#!/usr/bin/env python3
"""Writes the OpenFlow 1.3 test cases of the Python package os-ken as case files, and those of 1.4
about fields that 1.3 lacks.

os-ken ships one JSON file per action and match field; its packets are written as calls of
os-ken's own packet classes. This program lets os-ken serialise them, so that ingress and egress
frames are bytes that Weir did not make, and writes each case in the format of
`vectors/README.md`. One mistake of os-ken is corrected: it makes the CRC32c of SCTP over the
text of the packet (`str(data)`), here it is made over the bytes (RFC 9260 appendix A).

usage: os_ken_cases.py OUT_FOLDER    (run by a Python that has os-ken installed)
"""
import glob
import importlib.metadata
import json
import os
import sys

from os_ken.lib.packet import sctp
from os_ken.tests.switch import tester

CASES = os.path.dirname(tester.__file__)
# The suites, each with the version that a case names where it is not the usual one.
SUITES = [("of13", None), ("of14", "1.4")]
CONTROLLER = 0xFFFFFFFD


def crc32c(_, data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return int.from_bytes((crc ^ 0xFFFFFFFF).to_bytes(4, "little"), "big")


def frame(lines):
    """The bytes of a packet that is written as a list of constructor calls."""
    packet = eval("/".join(lines), vars(tester))  # the text is os-ken's own
    packet.serialize()
    return bytes(packet.data).hex()


def value(number):
    return hex(number) if isinstance(number, int) else number


def field(tlv):
    text = value(tlv["value"])
    return text if tlv.get("mask") is None else f"{text}/{value(tlv['mask'])}"


def action(name, body):
    """One action in the syntax of ovs-ofctl."""
    simple = {
        "OFPActionCopyTtlOut": "copy_ttl_out",
        "OFPActionCopyTtlIn": "copy_ttl_in",
        "OFPActionDecMplsTtl": "dec_mpls_ttl",
        "OFPActionPopVlan": "pop_vlan",
        "OFPActionDecNwTtl": "dec_ttl",
        "OFPActionPopPbb": "pop_pbb",
    }
    typed = {
        "OFPActionPushVlan": "push_vlan",
        "OFPActionPushMpls": "push_mpls",
        "OFPActionPushPbb": "push_pbb",
        "OFPActionPopMpls": "pop_mpls",
    }
    if name in simple:
        return simple[name]
    if name in typed:
        return f"{typed[name]}:{body['ethertype']:#06x}"
    if name == "OFPActionOutput":
        return f"output:{body['port']}" if body["port"] != CONTROLLER else "output:CONTROLLER"
    if name == "OFPActionSetMplsTtl":
        return f"set_mpls_ttl:{body['mpls_ttl']}"
    if name == "OFPActionSetNwTtl":
        return f"mod_nw_ttl:{body['nw_ttl']}"
    if name == "OFPActionSetField":
        tlv = body["field"]["OXMTlv"]
        return f"set_field:{value(tlv['value'])}->{tlv['field']}"
    raise ValueError(f"unknown action {name}")


def instruction(name, body):
    if name == "OFPInstructionActions":
        assert body["type"] == 4, "only apply-actions are known"
        return [action(*item) for entry in body["actions"] for item in entry.items()]
    if name == "OFPInstructionGotoTable":
        return [f"goto_table:{body['table_id']}"]
    if name == "OFPInstructionWriteMetadata":
        return [f"write_metadata:{body['metadata']:#x}/{body['metadata_mask']:#x}"]
    raise ValueError(f"unknown instruction {name}")


def flow(mod):
    """A flow-mod in the syntax of ovs-ofctl; instructions in their order of execution."""
    order = ["OFPInstructionActions", "OFPInstructionWriteMetadata", "OFPInstructionGotoTable"]
    tlvs = [t["OXMTlv"] for t in mod["match"]["OFPMatch"]["oxm_fields"]] if "match" in mod else []
    match = [f"{tlv['field']}={field(tlv)}" for tlv in tlvs]
    items = [item for entry in mod.get("instructions", []) for item in entry.items()]
    items.sort(key=lambda item: order.index(item[0]))
    actions = [text for item in items for text in instruction(*item)]
    parts = [f"table={mod.get('table_id', 0)}"]
    if "priority" in mod:
        parts.append(f"priority={mod['priority']}")
    return ",".join(parts + match + ["actions=" + ",".join(actions)])


def case(name, suite, version, path, body):
    lines = [f"case: {name}", f"source: os-ken {VERSION}, tests/switch/{suite}/{path}"]
    lines.append(f"note: {body['description']}")
    if version:
        lines.append(f"version: {version}")
    for entry in body["prerequisite"]:
        assert list(entry) == ["OFPFlowMod"], "only flow-mods are known"
        lines.append("flow: " + flow(entry["OFPFlowMod"]))
    for test in body["tests"]:
        if "PACKET_IN" in test:
            return None  # the same match as the case before, to the controller
        lines.append(f"in: 1 {frame(test['ingress'])}")
        if "egress" in test:
            lines.append(f"out: 2 {frame(test['egress'])}")
    return "\n".join(lines) + "\n"


def files(suite):
    """The test files of a suite about actions and matches, by their paths below it."""
    folder = os.path.join(CASES, suite)
    found = sorted(glob.glob(folder + "/action/**/*.json", recursive=True))
    found += sorted(glob.glob(folder + "/match/*.json"))
    return [os.path.relpath(file, folder) for file in found]


def main(out):
    known = set()
    for suite, version in SUITES:
        new = [path for path in files(suite) if path not in known]
        known.update(new)
        for path in new:
            write(out, suite, version, path)


def write(out, suite, version, path):
    file = os.path.join(CASES, suite, path)
    stem = path[: -len(".json")].lower()
    with open(file) as text:
        bodies = [body for body in json.load(text) if isinstance(body, dict)]
    named = [
        (f"{stem}/{number}", suite, version, path, body) for number, body in enumerate(bodies)
    ]
    texts = [text for text in (case(*arguments) for arguments in named) if text]
    target = os.path.join(out, stem.replace("/25_set_field", "") + ".case")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    head = "# Written by vectors/tools/os_ken_cases.py; not edited by hand.\n\n"
    with open(target, "w") as made:
        made.write(head + "\n".join(texts))


sctp.sctp._checksum = crc32c
VERSION = importlib.metadata.version("os-ken")

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
