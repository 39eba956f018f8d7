#!/usr/bin/env python3
"""os-ken's codec as a peer: one request a line on standard input, one answer a line on output.

request  {"version": 1 or 4, "hex": "...", "json": {...}, "xid": N}
answer   {"parsed": {...} or null, "again": "..." or null, "built": "..." or null, "why": "..."}

parsed: what os-ken's decoder makes of `hex`; again: what its encoder makes of that; built: what its
encoder makes of `json`, a message in its own words.  null: os-ken has no decoder, or no encoder,
for this message; `why` says what it said.
"""
import json
import logging
import os
import sys

from os_ken.ofproto import ofproto_parser, ofproto_protocol

HEADER_LEN = 8
DATAPATHS = {
    version: ofproto_protocol.ProtocolDesc(version=version) for version in (1, 4)
}


def serialized(message, length):
    """The bytes, or None of a class that writes nothing but a header where more belongs."""
    message.buf = None
    message.serialize()
    data = bytes(message.buf)
    return None if len(data) == HEADER_LEN < length else data.hex()


def buildable(version, message):
    """The message without what os-ken's constructors do not take."""
    [(name, members)] = message.items()
    members = dict(members)
    if version == 1 and name.endswith("StatsRequest"):
        del members["type"]
    if version == 1 and name == "OFPExperimenterStatsRequest":
        del members["exp_type"]
        members["vendor"] = members.pop("experimenter")
        members["specific_data"] = members.pop("data")
        name = "OFPVendorStatsRequest"
    if name == "OFPPacketOut" and not members["data"]:
        members["data"] = None
    return {name: members}


def parse(datapath, data):
    version, kind, length, xid = ofproto_parser.header(data)
    return ofproto_parser.msg(datapath, version, kind, length, xid, data)


def answer(request):
    datapath = DATAPATHS[request["version"]]
    data = bytes.fromhex(request["hex"])
    said = dict(parsed=None, again=None, built=None, why=[])
    message = None
    try:
        message = parse(datapath, data)
        said["parsed"] = message.to_jsondict()
    except Exception as error:  # whatever os-ken stumbles over, the test judges
        said["why"].append(f"decoding: {error!r}")
    if message is not None:
        try:
            said["again"] = serialized(message, len(data))
        except Exception as error:
            said["why"].append(f"encoding what was decoded: {error!r}")
    try:
        words = buildable(request["version"], request["json"])
        built = ofproto_parser.ofp_msg_from_jsondict(datapath, words)
        built.set_xid(request["xid"])
        said["built"] = serialized(built, len(data))
    except Exception as error:
        said["why"].append(f"encoding: {error!r}")
    return said


def main():
    logging.disable(logging.CRITICAL)
    # os-ken prints what it cannot build.
    answers, sys.stdout = sys.stdout, open(os.devnull, "w")
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


main()
