"""The classes of ``ryu.ofproto`` against os-ken: its messages, and what it makes of them."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

from weir import aliases
from weir.ryu.controller import ofp_event
from weir.ryu.ofproto import get_ofp_module, nicira

VECTORS = Path(__file__).resolve().parents[3] / "vectors" / "os-ken"

#: Whether Nicira's actions have classes, which are os-ken's.
HAS_OS_KEN = aliases._installed("os_ken") is not None

#: Of what is decoded only as bytes: extensions of Nicira and ONF, and objects of packet libraries.
BYTES_ONLY = ("ONF", '"Packet"', *(() if HAS_OS_KEN else ("NXAction",)))


#: The JSON of an action of Nicira's, by the version.
MADE: Dict[int, Any] = {
    version: {"NXActionResubmitTable": {"in_port": 1, "subtype": 14, "table_id": 2, **others}}
    for version, others in {
        1: {"vendor": 8992},
        4: {"experimenter": 8992, "len": 16, "type": 0xFFFF},
    }.items()
}


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
            is_nicira = HAS_OS_KEN and "NXAction" in record.get("json", "")
            if "json" not in record or "error" in record and not is_nicira:
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

    def test_messages_of_openflow_1_4_keep_their_bytes(self) -> None:
        names = []
        for record in records("of14.vec"):
            data = bytes.fromhex(record["hex"].replace(" ", ""))
            message = Switch(5).ofproto_parser.parse(Switch(5), data)
            if message is None:
                names.append(record["name"])
                continue
            with self.subTest(record["name"]):
                message.serialize()
                self.assertEqual(message.buf.hex(), data.hex())
                ((kind, body),) = message.to_jsondict().items()
                cls = getattr(Switch(5).ofproto_parser, kind)
                made = cls.from_jsondict(body, datapath=Switch(5))
                made.serialize()
                self.assertEqual(made.buf[8:].hex(), data[8:].hex())
        left_out = ["flow_monitor_request", "flow_monitor_reply"]
        self.assertEqual([name.partition("-ofp_")[2] for name in names], left_out)

    @unittest.skipIf(HAS_OS_KEN, "os-ken is there")
    def test_an_action_of_nicira_s_names_the_way_to_it(self) -> None:
        for version, name, words in [
            (4, "NXActionResubmitTable", "OpenFlow 1.3 has OFPInstructionGotoTable"),
            (4, "NXActionRegLoad2", "OpenFlow 1.3 has OFPActionSetField, and OFPInstruction"),
            (4, "NXActionSetMplsTtl", "OpenFlow 1.3 has OFPActionSetMplsTtl"),
            (1, "NXActionSetTunnel64", "OpenFlow 1.3 has OFPActionSetField(tunnel_id=..)"),
            (1, "NXFlowSpecMatch", "Nicira's actions are os-ken's: `pip install os-ken`"),
        ]:
            with self.subTest(name), self.assertRaises(AttributeError) as raised:
                getattr(Switch(version).ofproto_parser, name)
            text = str(raised.exception)
            self.assertIn(words, text)
            self.assertIn(f"has no {name}: Nicira's actions are os-ken's", text)

    @unittest.skipUnless(HAS_OS_KEN, "os-ken is not there")
    def test_actions_of_nicira_s_are_read_from_any_bytes(self) -> None:
        for version in (1, 4):
            parser: Any = Switch(version).ofproto_parser
            self.assertTrue(issubclass(parser.NXActionResubmit, parser.OFPAction))
            made = parser.NXActionResubmitTable(1, 2)
            self.assertEqual((made.data, made.to_jsondict()), (b"\0\1\2\0\0\0", MADE[version]))
            with self.assertRaisesRegex(AttributeError, "did you mean NXActionResubmit"):
                parser.NXActionResubmitt
            user_data = b"\0\x25" + bytes(6) + b"\0\3\0\0" + bytes(4)
            tails = [bytes(size) for size in range(40)] + [b"\xff" * size for size in range(40)]
            bodies = [bytes([0, kind]) + tail for kind in range(50) for tail in tails]
            for body in (b"", b"\0", user_data, *bodies):
                body += bytes(-len(body) % 8)
                head = b"\xff\xff" + (8 + len(body)).to_bytes(2, "big") + b"\0\0\x23\x20"
                action = parser.OFPAction.parser(head + body, 0)
                self.assertEqual(action.len, 8 + len(body))
                self.assertIsInstance(str(action), str)
        self.assertIsNone(nicira.action_of(parser, 7, b""))

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
