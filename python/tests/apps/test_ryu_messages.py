"""The classes of ``ryu.ofproto`` against os-ken: its messages, and what it makes of them."""

from __future__ import annotations

import json
import struct
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

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

#: Messages as os-ken 4.2.2 makes them.
FLOW_MOD = (
    "060e009800000009000000000000000000000000000000000000000000000001ffffffff0000000000000000"
    "000000000001001780000a02080080001401068000550400020002000004005000000000001d000800000007"
    "001c0018001000000020000080000c028000040800000000001900188000090c020000000000ff0000000000"
    "000000000000001000000001ffe5000000000000"
)
GROUP_MOD = (
    "060f004000000009000301000000000500280000fffffffe00280010000000030000001000000002ffe50000"
    "0000000000000008000900000001000800000004"
)
PACKET_OUT = (
    "060d003300000009ffffffff001000000001000c80000004000000030000000000000010fffffffbffe50000"
    "00000000616263"
)
BUNDLE_OPEN = (
    "06210028000000090000000100000001000100180000000000000000000000050000000600000000"
)
BUNDLE_ADD = (
    "06220028000000090000000100000001061800180000000900000002000200000000000000000001"
)
TABLE_FEATURES = (
    "0612007000000009000c00000000000000600100000000017800000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000004000000090016000c80005804"
    "00000000000000000014000c80000c028000550400000000"
)


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

    def keep(self, version: int, name: str, broken: Tuple[str, ...] = ()) -> List[str]:
        """Names of the messages that have no class; all others but ``broken`` keep their bytes."""
        switch = Switch(version)
        left_out = []
        for record in records(name):
            data = bytes.fromhex(record["hex"].replace(" ", ""))
            if record["name"] in broken:
                continue
            message = switch.ofproto_parser.parse(switch, data)
            if message is None:
                left_out.append(record["name"])
                continue
            with self.subTest(record["name"]):
                message.serialize()
                self.assertEqual(message.buf.hex(), data.hex())
                decoding = message.to_jsondict()
                self.compare_with_os_ken(record, json.loads(json.dumps(decoding)))
                ((kind, body),) = decoding.items()
                made = getattr(switch.ofproto_parser, kind).from_jsondict(body, datapath=switch)
                made.serialize()
                self.assertEqual(made.buf[8:].hex(), data[8:].hex())
        return left_out

    def compare_with_os_ken(self, record: Dict[str, str], decoding: Any) -> None:
        """The JSON that the tests of an installed os-ken have of a message."""
        folder, _, packet = record.get("source", "").partition("packet_data/")[2].partition("/")
        path = Path(aliases._installed("os_ken") or "", "tests/unit/ofproto/json", folder)
        path = path / f"{packet}.json"
        if not HAS_OS_KEN or not path.is_file():
            return
        wanted = json.loads(path.read_text())
        if '"Packet"' not in path.read_text() and '"data": null' not in path.read_text():
            self.assertEqual(decoding, wanted)

    def test_messages_of_openflow_1_4_keep_their_bytes(self) -> None:
        names = self.keep(5, "of14.vec")
        left_out = ["flow_monitor_request", "flow_monitor_reply"]
        self.assertEqual([name.partition("-ofp_")[2] for name in names], left_out)

    def test_messages_of_openflow_1_5_keep_their_bytes(self) -> None:
        # Their lengths are wrong: an instruction of 2,056 bytes, and 40 bytes called 32.
        broken = ("libofproto-OFP15-flow_desc_reply", "libofproto-OFP15-meter_features_reply")
        names = self.keep(6, "of15.vec", broken)
        left_out = [
            f"libofproto-OFP15-{kind}_{part}"
            for kind in ("bundle_features", "controller_status", "flow_monitor", "flow_stats")
            for part in ("reply", "request")
        ]
        self.assertEqual(names, left_out)

    def test_messages_of_openflow_1_5_are_made_as_os_ken_makes_them(self) -> None:
        switch: Any = Switch(6)
        ofproto, parser = switch.ofproto, switch.ofproto_parser
        actions = [
            parser.OFPActionMeter(7),
            parser.OFPActionCopyField(16, 0, 32, ["vlan_vid", "metadata"]),
            parser.OFPActionSetField(eth_src=("02:00:00:00:00:00", "ff:00:00:00:00:00")),
            parser.OFPActionOutput(1),
        ]
        match = parser.OFPMatch(tcp_flags=(2, 2), ip_proto=6, eth_type=0x800)
        apply = parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)
        properties = [
            parser.OFPGroupBucketPropWeight(weight=9),
            parser.OFPGroupBucketPropWatch(type_=ofproto.OFPGBPT_WATCH_PORT, watch=4),
        ]
        bucket = parser.OFPBucket(3, [parser.OFPActionOutput(2)], properties)
        command, last = ofproto.OFPGC_INSERT_BUCKET, ofproto.OFPG_BUCKET_LAST
        types = parser.OFPTableFeaturePropOxmValues(packet_type=0)
        ids = [parser.OFPOxmId("vlan_vid"), parser.OFPOxmId("tcp_flags", True)]
        copied = parser.OFPTableFeaturePropOxm(ofproto.OFPTFPT_APPLY_COPYFIELD, oxm_ids=ids)
        table = parser.OFPTableFeaturesStats(1, 0, 1, b"x", 0, 0, 4, 9, [types, copied])
        time = parser.OFPBundlePropTime(scheduled_time=parser.OFPTime(5, 6))
        open_, atomic = ofproto.OFPBCT_OPEN_REQUEST, ofproto.OFPBF_ATOMIC
        flood = [parser.OFPActionOutput(ofproto.OFPP_FLOOD)]
        place = parser.OFPMatch(in_port=3)
        role = parser.OFPRoleRequest(switch, ofproto.OFPCR_ROLE_MASTER, 2, 1)
        for message, wanted in [
            (parser.OFPFlowMod(switch, priority=1, match=match, instructions=[apply]), FLOW_MOD),
            (parser.OFPGroupMod(switch, command, 1, 5, last, [bucket]), GROUP_MOD),
            (parser.OFPPacketOut(switch, match=place, actions=flood, data=b"abc"), PACKET_OUT),
            (parser.OFPBundleCtrlMsg(switch, 1, open_, atomic, [time]), BUNDLE_OPEN),
            (parser.OFPBundleAddMsg(switch, 1, atomic, role, []), BUNDLE_ADD),
            (parser.OFPTableFeaturesStatsRequest(switch, body=[table]), TABLE_FEATURES),
        ]:
            with self.subTest(type(message).__name__):
                message.set_xid(9)
                message.serialize()
                self.assertEqual(message.buf.hex(), wanted)
                again = parser.parse(switch, message.buf)
                again.serialize()
                self.assertEqual(again.buf.hex(), wanted)
                self.assertIs(again.datapath, switch)
        self.assertEqual(role.xid, 9)
        # Inside of another: the same again, no known type, and wrong lengths.
        for inner in ("06220008", "06ff0008", "06020040", "06020004"):
            broken = bytes.fromhex(f"06220018000000090000000100000000{inner}00000000")
            with self.subTest(inner), self.assertRaises(struct.error):
                parser.parse(switch, broken)
        with self.assertRaisesRegex(AssertionError, "two oxm_ids: source and destination"):
            parser.OFPActionCopyField(16, 0, 32, ["vlan_vid"])
        with self.assertRaisesRegex(AssertionError, "a mask since OpenFlow 1.5"):
            Switch(5).ofproto_parser.OFPActionSetField(eth_src=("02:00:00:00:00:00", "ff::"))

    def test_statistics_of_openflow_1_5_are_read_by_their_names(self) -> None:
        parser: Any = Switch(6).ofproto_parser
        stats = parser.OFPStats(packet_count=3, duration=(1, 2))
        self.assertEqual(stats.items(), [("duration", (1, 2)), ("packet_count", 3)])
        self.assertEqual((stats["packet_count"], stats.get("byte_count")), (3, None))
        self.assertIn("duration", stats)
        data = bytes(stats.serialize())
        self.assertEqual(parser.OFPStats.parser(data).items(), stats.items())
        unknown = bytes.fromhex("0000000c8002fe04000000ff00000000")
        self.assertEqual(bytes(parser.OFPStats.parser(unknown).serialize()), unknown)
        for broken in ["0000000c80020604", "0000ffff00000000", "00000002", "0000000a800208040000"]:
            with self.subTest(broken), self.assertRaises(struct.error):
                parser.OFPStats.parser(bytes.fromhex(broken))

    def test_a_version_has_its_own_classes_and_says_why_others_are_not_there(self) -> None:
        for version in (5, 6):
            parser: Any = Switch(version).ofproto_parser
            # What an earlier version has made already is made again.
            self.assertEqual(parser.PacketInOf.version, version)
            self.assertEqual(parser.OFPBundleAddMsg.cls_version, version)
            self.assertEqual(parser.OFPErrorMsg.cls_version, version)
            made = parser.OFPAction.parser(bytes.fromhex("0015000800000001"))
            self.assertIs(type(made), parser.OFPActionSetQueue)
            self.assertIsInstance(parser.OFPActionSetField(vlan_pcp=1), parser.OFPAction)
        for name, words in [
            ("OFPFlowStatsRequest", "OFPFlowDescStatsRequest has entries and counts"),
            ("OFPMeterConfigStatsRequest", "OpenFlow 1.5 calls it OFPMeterDesc"),
            ("OFPInstructionStatTrigger", "no reports of counts at thresholds"),
            ("OFPBundleFeaturesStatsRequest", "no features of bundles"),
            ("OFPControllerStatusStatsRequest", "the status of other controllers"),
            ("OFPFlowMonitorRequest", "no flow monitors; OFPFF_SEND_FLOW_REM"),
            ("OFPActionCopyfield", "did you mean OFPActionCopyField?"),
        ]:
            with self.subTest(name), self.assertRaisesRegex(AttributeError, words):
                getattr(parser, name)

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
