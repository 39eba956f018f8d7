"""Matches, actions and instructions: text, keywords, Ryu's names, and what is refused."""

import ipaddress
import unittest
from typing import Any, Dict, List, Tuple

import weir
from weir import Action, Match, WordError, ryu
from weir._weir import Instruction


class MatchTest(unittest.TestCase):
    def test_text_keywords_and_ryu_mean_the_same(self) -> None:
        text = Match("in_port=1,tcp,nw_dst=10.0.0.0/8,tp_dst=80")
        for same in [
            Match(in_port=1, eth_type=0x800, ip_proto=6, ipv4_dst="10.0.0.0/8", tcp_dst=80),
            Match(in_port=1, tcp=True, ipv4_dst=("10.0.0.0", "255.0.0.0"), tp_dst=80),
            Match(in_port=1, tcp=True, nw_dst="10.0.0.0/255.0.0.0", tcp_dst="80"),
            ryu.OFPMatch(
                in_port=1,
                eth_type=0x800,
                ip_proto=6,
                ipv4_dst=(ipaddress.IPv4Address("10.0.0.0"), 0xFF000000),
                tcp_dst=80,
            ),
            Match({"in_port": 1, "tcp": True}, ipv4_dst="10.0.0.0/8", tcp_dst=80),
            Match(in_port=1, tcp=True, ip_dst="10.0.0.0/8", tp_dst=80),
        ]:
            self.assertEqual(same, text, f"{same} {text}")
            self.assertEqual(hash(same), hash(text))
        arp = Match(eth_type=0x806, ip_proto=1, ip_dst="10.0.0.1")
        self.assertEqual(str(arp), "arp,arp_tpa=10.0.0.1,arp_op=1")
        self.assertEqual(str(text), "tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80")
        self.assertEqual(Match(str(text)), text)

    def test_values_come_back_as_ryu_gives_them(self) -> None:
        mac = "02:00:00:00:00:01"
        match = Match(in_port=7, eth_src=mac, eth_type=0x86DD, ipv6_dst="2001:db8::/32")
        self.assertEqual(match["in_port"], 7)
        self.assertEqual(match["eth_src"], mac)
        self.assertEqual(match["ipv6_dst"], "2001:db8::/32")
        self.assertEqual(match.keys(), ["in_port", "eth_src", "eth_type", "ipv6_dst"])
        self.assertEqual(match.get("vlan_vid", 5), 5)
        self.assertIn("dl_src", match)
        self.assertNotIn("eth_dst", match)
        with self.assertRaises(KeyError):
            match["eth_dst"]
        self.assertEqual(Match(eth_src=b"\x02\0\0\0\0\x01"), Match(eth_src=mac))
        self.assertTrue(Match(in_port=7).covers(match))

    def test_what_is_wrong_is_an_exception_that_names_the_allowed(self) -> None:
        cases: List[Tuple[Dict[str, Any], str]] = [
            ({"in_prt": 1}, "unknown word `in_prt`; allowed are the fields in_port, "),
            ({"eth_src": "02:00:00"}, "not an Ethernet address"),
            ({"in_port": -1}, "out of range"),
            ({"in_port": 1 << 32}, "too large"),
            ({"in_port": True}, "a value, not a truth"),
            ({"ipv4_src": "10.0.0.1"}, "needs eth_type=0x0800 beside it: add ip"),
            ({"eth_type": 0x86DD, "ip_dst": "10.0.0.1"}, "ip_dst is no field of ipv6"),
            ({"eth_type": "0800"}, "write 0x0800 or 800"),
            ({"arp": True, "ipv4_dst": "10.0.0.1"}, "ipv4_dst is no field of arp"),
            ({"eth_type": (0x800, 0xFF00)}, "takes no mask"),
            ({"eth_type": 0x800, "ipv4_src": "10.0.0.256"}, "not an IPv4 address"),
            ({"vlan_vid": 5}, "dl_vlan=5 or vlan_vid=0x1005"),
            ({"tcp": 1}, "takes True"),
            ({"eth_src": "02:00:00:00:00:01", "dl_src": "02:00:00:00:00:02"}, "given twice"),
        ]
        for fields, said in cases:
            with self.assertRaisesRegex(WordError, said.replace("(", r"\(")):
                Match(**fields)
        with self.assertRaises(TypeError):
            Match(in_port=1.5)  # type: ignore[arg-type]
        with self.assertRaisesRegex(WordError, "column 1: unknown word `colour`"):
            Match("colour=1")


class ActionTest(unittest.TestCase):
    def test_ryus_names_make_the_same_actions(self) -> None:
        mac = "02:00:00:00:00:01"
        for action, text in [
            (ryu.OFPActionOutput(2), "output:2"),
            (ryu.OFPActionOutput(ryu.OFPP_CONTROLLER, 128), "CONTROLLER:128"),
            (ryu.OFPActionOutput(ryu.OFPP_FLOOD), "FLOOD"),
            (ryu.OFPActionSetField(eth_src=mac), f"set_field:{mac}->eth_src"),
            (ryu.OFPActionSetField(vlan_vid=0x1005), "set_field:4101->vlan_vid"),
            (ryu.OFPActionPushVlan(), "push_vlan:0x8100"),
            (ryu.OFPActionPopVlan(), "pop_vlan"),
            (ryu.OFPActionPushMpls(), "push_mpls:0x8847"),
            (ryu.OFPActionPopMpls(), "pop_mpls:0x0800"),
            (ryu.OFPActionPushPbb(), "push_pbb:0x88e7"),
            (ryu.OFPActionPopPbb(), "pop_pbb"),
            (ryu.OFPActionGroup(3), "group:3"),
            (ryu.OFPActionSetQueue(1), "set_queue:1"),
            (ryu.OFPActionSetNwTtl(9), "mod_nw_ttl:9"),
            (ryu.OFPActionDecNwTtl(), "dec_ttl"),
            (ryu.OFPActionSetMplsTtl(9), "set_mpls_ttl(9)"),
            (ryu.OFPActionDecMplsTtl(), "dec_mpls_ttl"),
            (ryu.OFPActionCopyTtlOut(), "copy_ttl_out"),
            (ryu.OFPActionCopyTtlIn(), "copy_ttl_in"),
        ]:
            self.assertEqual(str(action), text)
            self.assertEqual(Action(text), action)

    def test_ryus_instructions(self) -> None:
        output = ryu.OFPActionOutput(2)
        for instruction, text in [
            (ryu.OFPInstructionActions(ryu.OFPIT_APPLY_ACTIONS, [output]), "output:2"),
            (
                ryu.OFPInstructionActions(ryu.OFPIT_WRITE_ACTIONS, [output]),
                "write_actions(output:2)",
            ),
            (ryu.OFPInstructionActions(ryu.OFPIT_CLEAR_ACTIONS), "clear_actions"),
            (ryu.OFPInstructionGotoTable(3), "goto_table:3"),
            (ryu.OFPInstructionWriteMetadata(1, 0xFF), "write_metadata:0x1/0xff"),
            (ryu.OFPInstructionMeter(4), "meter:4"),
        ]:
            self.assertEqual(str(instruction), text)
            self.assertEqual(Instruction(text), instruction)

    def test_a_name_of_ryu_s_that_is_not_there_says_what_is(self) -> None:
        for name, words in [
            ("OFPFlowMod", "sw.add_flow(..), sw.modify_flows(..) and sw.delete_flows(..)"),
            ("OFPMeterBandDrop", "sw.add_meter("),
            ("OFPFlowStatsRequest", "await sw.flow_stats(..)"),
            ("OFPGroupDescStatsReply", "await sw.group_desc(..)"),
            ("OFPBarrierRequest", "await sw.barrier(..)"),
            ("OFPHello", "a whole app of Ryu has it in ryu.ofproto"),
            ("OFPActionOuput", "did you mean OFPActionOutput?"),
        ]:
            with self.subTest(name):
                with self.assertRaises(AttributeError) as raised:
                    getattr(ryu, name)
                with self.assertRaises(ImportError) as refused:
                    exec(f"from weir.ryu import {name}")
                self.assertIn(words, str(raised.exception))
                self.assertEqual(str(refused.exception), str(raised.exception))
        self.assertEqual((ryu.OFPG_ANY, ryu.OFPFC_DELETE), (0xFFFFFFFF, 3))

    def test_a_wrong_text_is_refused(self) -> None:
        with self.assertRaisesRegex(WordError, "unknown action `outptu`"):
            Action("outptu:2")
        with self.assertRaisesRegex(WordError, "write 4196 .0x1064."):
            ryu.OFPActionSetField(vlan_vid=100)
        with self.assertRaisesRegex(WordError, "takes one field"):
            ryu.OFPActionSetField(eth_src="02:00:00:00:00:01", eth_dst="02:00:00:00:00:02")


if __name__ == "__main__":
    unittest.main()
