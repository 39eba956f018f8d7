"""The classes of ``ryu.ofproto`` against os-ken: its messages, and what it makes of them."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

from weir.ryu.controller import ofp_event
from weir.ryu.ofproto import get_ofp_module

VECTORS = Path(__file__).resolve().parents[3] / "vectors" / "os-ken"

#: Of what is decoded only as bytes: extensions of Nicira and ONF, and objects of packet libraries.
BYTES_ONLY = ("NXAction", "ONF", '"Packet"')


class Switch:
    """What a message needs of a datapath."""

    def __init__(self, version: int) -> None:
        self.ofproto, self.ofproto_parser = get_ofp_module(version)


def records(name: str) -> Iterator[Dict[str, str]]:
    """The records of a file of vectors."""
    record: Dict[str, str] = {}
    key = ""
    for line in (VECTORS / name).read_text().split("\n"):
        if line.startswith("  "):
            record[key] += line[2:] if key == "json" else line
        elif not line:
            if "hex" in record:
                yield record
            record = {}
        elif not line.startswith("#"):
            key, _, value = line.partition(": ")
            record[key] = value


class MessagesTest(unittest.TestCase):
    def check(self, names: Tuple[str, ...], least: int) -> None:
        count = 0
        for record in (record for name in names for record in records(name)):
            if "json" not in record or "error" in record:
                continue
            data = bytes.fromhex(record["hex"].replace(" ", ""))
            switch = Switch(data[0])
            message = switch.ofproto_parser.parse(switch, data)
            with self.subTest(record["name"]):
                message.serialize()
                self.assertEqual(message.buf.hex(), data.hex())
                if not any(word in record["json"] for word in BYTES_ONLY):
                    self.compare(switch, message, data, json.loads(record["json"]))
                    count += 1
        self.assertGreater(count, least)

    def compare(self, switch: Switch, message: Any, data: bytes, decoding: Any) -> None:
        self.assertEqual(message.to_jsondict(), decoding)
        self.assertEqual(message.xid, int.from_bytes(data[4:8], "big"))
        ((kind, body),) = decoding.items()
        self.assertIn(f"{kind}(", str(message))
        made = getattr(switch.ofproto_parser, kind).from_jsondict(body, datapath=switch)
        made.serialize()
        if not isinstance(body.get("ports"), dict):
            # A dict of JSON has lost the order in which the ports came.
            self.assertEqual(made.buf[8:].hex(), data[8:].hex())
        self.assertEqual(made.to_jsondict(), decoding)
        self.assertEqual(ofp_event.ofp_msg_to_ev_cls(type(made)).__name__, f"Event{kind}")

    def test_messages_of_openflow_1_0_are_as_os_ken_has_them(self) -> None:
        self.check(("of10.vec", "encoded10.vec"), 35)

    def test_messages_of_openflow_1_3_are_as_os_ken_has_them(self) -> None:
        self.check(("of13.vec", "encoded13.vec"), 200)

    def test_addresses_are_texts_numbers_or_whole_bytes(self) -> None:
        parser: Any = Switch(4).ofproto_parser
        for field, value, text in [
            ("eth_dst", 5, "00:00:00:00:00:05"),
            ("eth_dst", b"\x02\0\0\0\0\1", "02:00:00:00:00:01"),
            ("ipv4_src", 0x0A000001, "10.0.0.1"),
            ("ipv6_dst", 1, "::1"),
        ]:
            with self.subTest(field, value=value):
                made = bytearray()
                parser.OFPMatch(**{field: value}).serialize(made, 0)
                wanted = bytearray()
                parser.OFPMatch(**{field: text}).serialize(wanted, 0)
                self.assertEqual(made.hex(), wanted.hex())
        for value in [b"\0\1", 1 << 48, -1, "00:00"]:
            with self.subTest(value), self.assertRaises(Exception):
                parser.OFPMatch(eth_dst=value).serialize(bytearray(), 0)


if __name__ == "__main__":
    unittest.main()
