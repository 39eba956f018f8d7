"""Apps in the test kit: handlers, verbs, order, exceptions, coroutines, time."""

import asyncio
import functools
import importlib.util
import inspect
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List

import weir
import weir.errors
from weir.testing import Network, frame

#: All words by all commands; see the head of the file.
ENTRY_WORDS = Path(__file__).resolve().parents[3] / "crates/openflow/tests/data/entry-words.tsv"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Log(weir.App):
    """Notes what happens to it."""

    def __init__(self) -> None:
        self.seen: List[Any] = []

    def switch_ready(self, sw: weir.Switch) -> None:
        self.seen.append(("ready", sw.dpid))

    def switch_down(self, dpid: int) -> None:
        self.seen.append(("down", dpid))

    def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
        self.seen.append(("packet", pkt.in_port))

    def tick(self, sw: weir.Switch) -> None:
        self.seen.append(("tick", sw.dpid))


class ExamplesTest(unittest.TestCase):
    def test_the_hub_floods(self) -> None:
        for version in ["OpenFlow10", "OpenFlow13"]:
            sw = Network(example("hub").Hub).switch(ports=3, version=version)
            data = frame().build()
            [out] = sw.packet_in(data, in_port=2)
            self.assertEqual((out.name, out.actions), ("OFPT_PACKET_OUT", "FLOOD"))
            self.assertEqual(out.data, data)

    def test_the_learning_switch_learns(self) -> None:
        network = Network(example("learning_switch").LearningSwitch)
        sw = network.switch(ports=3)
        self.assertEqual([m.actions for m in sw.sent], ["drop", "CONTROLLER:65535"])
        [out] = sw.packet_in(frame(dst="02:00:00:00:00:02", src="02:00:00:00:00:01"), in_port=1)
        self.assertEqual(out.actions, "FLOOD")
        add, out = sw.packet_in(frame(dst="02:00:00:00:00:01", src="02:00:00:00:00:02"), in_port=2)
        assert add.match is not None
        self.assertEqual(add.match["in_port"], 2)
        self.assertEqual((add.actions, out.actions), ("output:1", "output:1"))
        self.assertEqual(sw.packet_in(frame(dst="01:80:c2:00:00:0e"), in_port=1), [])
        [delete] = sw.port_status(1, up=False)
        self.assertIn("out_port=1", str(delete))
        [out] = sw.packet_in(frame(dst="02:00:00:00:00:01", src="02:00:00:00:00:02"), in_port=2)
        self.assertEqual(out.actions, "FLOOD")


class TopologyTest(unittest.TestCase):
    def test_links_and_hosts_come_to_their_handlers(self) -> None:
        class Map(weir.App):
            def __init__(self) -> None:
                self.seen: List[Any] = []

            def link_add(self, link: weir.Link) -> None:
                self.seen.append(("link", str(link), len(self.controller.links())))

            def link_delete(self, link: weir.Link) -> None:
                self.seen.append(("no link", link.src.dpid))

            def host_add(self, host: weir.Host) -> None:
                self.seen.append(("host", host.mac, host.port.port_no))

            def host_move(self, host: weir.Host, before: weir.SwitchPort) -> None:
                self.seen.append(("moved", before.port_no, host.port.port_no))

            async def host_change(self, host: weir.Host) -> None:
                self.seen.append(("changed", host.ipv4))

            def host_delete(self, host: weir.Host) -> None:
                self.seen.append(("no host", self.controller.hosts()))

        network = Network(Map())
        [app] = network.apps
        assert isinstance(app, Map)
        one, other = weir.SwitchPort(1, 2), weir.SwitchPort(3, 4)
        mac = "02:00:00:00:00:01"
        network.link_add(weir.Link(one, other))
        network.link_delete(weir.Link(one, other))
        network.host_add(weir.Host(mac, one))
        network.host_move(mac, other)
        network.host_change(weir.Host(mac, other, ipv4=("10.0.0.1",)))
        network.host_delete(mac)
        self.assertEqual(
            app.seen,
            [
                ("link", "0000000000000001:2 -> 0000000000000003:4", 1),
                ("no link", 1),
                ("host", mac, 2),
                ("moved", 2, 4),
                ("changed", ("10.0.0.1",)),
                ("no host", []),
            ],
        )


class EventsTest(unittest.TestCase):
    def test_a_method_that_is_nearly_a_handler_is_warned_of(self) -> None:
        class Misspelt(weir.App):
            def packet_inn(self, sw: weir.Switch, pkt: weir.PacketIn) -> None: ...
            def learn(self) -> None: ...
            def switch_ready(self, sw: weir.Switch) -> None:
                self.logger.warning("%s is ready", sw.dpid)

        with self.assertLogs("weir", "WARNING") as logged:
            Network(Misspelt).switch(dpid=7)
        self.assertEqual(
            [record.getMessage() for record in logged.records],
            ["Misspelt.packet_inn is no handler; did you mean packet_in?", "7 is ready"],
        )

    def test_apps_see_events_in_order_until_one_stops_them(self) -> None:
        class First(Log):
            def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
                super().packet_in(sw, pkt)
                if pkt.in_port == 2:
                    sw.stop()

        first, second = First(), Log()
        sw = Network(first, second).switch(5)
        sw.packet_in(in_port=1)
        sw.packet_in(in_port=2)
        sw.packet_in(in_port=3)
        sw.disconnect()
        packets = [("packet", 1), ("packet", 2), ("packet", 3)]
        self.assertEqual(first.seen, [("ready", 5), *packets, ("down", 5)])
        del packets[1]
        self.assertEqual(second.seen, [("ready", 5), *packets, ("down", 5)])

    def test_after_an_exception_the_next_event_goes_on(self) -> None:
        class Bad(Log):
            def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
                if pkt.in_port == 1:
                    raise ValueError("port one")
                if pkt.in_port == 2:
                    raise SystemExit(3)
                if pkt.in_port == 3:
                    raise asyncio.CancelledError
                super().packet_in(sw, pkt)

        bad = Bad()
        network = Network(bad, keep_going=True)
        sw = network.switch()
        with self.assertLogs("weir", "ERROR") as logged:
            for port in [1, 2, 3, 4]:
                sw.packet_in(in_port=port)
        self.assertEqual(bad.seen, [("ready", 1), ("packet", 4)])
        text = "\n".join(logged.output)
        self.assertIn('raise ValueError("port one")', text, "the traceback is there")
        self.assertIn("controller.stop()", text, "how an app ends the program")
        self.assertEqual(network.stats()["exceptions"], 3)
        with self.assertRaisesRegex(ValueError, "port one"):
            Network(Bad).switch().packet_in(in_port=1)

    def test_a_batch_goes_on_behind_an_exception(self) -> None:
        class Odd(Log):
            def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
                super().packet_in(sw, pkt)
                if pkt.in_port is not None and pkt.in_port % 2:
                    raise ValueError("odd")

        odd = Odd()
        network = Network(odd, keep_going=True)
        sw = network.switch()
        packets = [sw._test.packet_in(b"", port) for port in range(1, 100)]
        with self.assertLogs("weir", "ERROR") as logged:
            network.dispatcher.packet_ins(sw.sw, packets)
        self.assertEqual(len(odd.seen), 100)
        self.assertEqual(network.stats()["exceptions"], 50)
        self.assertLessEqual(len(logged.output), 10, "a flood of tracebacks is cut")

    def test_time_passes_without_waiting(self) -> None:
        app = Log()
        network = Network(app)
        network.switch(9)
        calls: List[str] = []
        network.call_later(30, calls.append, "later")
        every = network.call_every(60, calls.append, "every")
        network.run(3600)
        self.assertEqual(calls.count("later"), 1)
        self.assertIn(calls.count("every"), [59, 60])
        self.assertIn(app.seen.count(("tick", 9)), [3599, 3600])
        every.cancel()
        calls.clear()
        network.run(600)
        self.assertEqual(calls, [])

    def test_other_events_come_with_what_they_say(self) -> None:
        class Other(weir.App):
            def __init__(self) -> None:
                self.seen: List[Any] = []

            def port_status(self, sw: weir.Switch, status: weir.PortStatus) -> None:
                self.seen.append((status.reason, status.port.number, sorted(sw.ports)))

            def flow_removed(self, sw: weir.Switch, removed: weir.FlowRemoved) -> None:
                self.seen.append((removed.reason, removed.match["in_port"], removed.packet_count))

            def error(self, sw: weir.Switch, error: Any) -> None:
                self.seen.append((error.name, error.type, error.code))

            def role_changed(self, sw: weir.Switch, change: weir.RoleChange) -> None:
                self.seen.append((change.role, change.generation_id, change.reason))
                if change.role == "slave":
                    sw.packet_out(bytes(60), actions="output:1")

            def message(self, sw: weir.Switch, message: weir.Message) -> None:
                self.seen.append((message.name, message.xid))

        other = Other()
        sw = Network(other).switch(ports=2)
        sw.port_status(3, "add")
        sw.port_status(1, "delete")
        sw.flow_removed(in_port=2, reason="hard", packet_count=7)
        sw.error("OFPFMFC_TABLE_FULL")
        expected: List[Any] = [("add", 3, [1, 2, 3]), ("delete", 1, [2, 3]), ("hard", 2, 7)]
        expected = [*expected, ("OFPFMFC_TABLE_FULL", 5, 1)]
        self.assertEqual(sw.role_changed("master", 7, reason="requested"), [])
        self.assertEqual(sw.role_changed("master", 7), [], "it is one already")
        [out] = sw.role_changed("slave", 9)
        self.assertEqual(out.name, "OFPT_PACKET_OUT")
        expected += [("master", 7, "requested"), ("slave", 9, "master_request")]
        sw.message(bytes([4, 21, 0, 8, 0, 0, 0, 5]))
        sw.message(out)
        expected += [("OFPT_BARRIER_REPLY", 5), ("OFPT_PACKET_OUT", 0)]
        self.assertEqual(other.seen, expected)

    def test_what_cannot_be_an_event_is_refused(self) -> None:
        sw = Network(Log()).switch(ports=1)
        packet_in = bytes([4, 10, 0, 34]) + bytes(4) + bytes([255] * 4) + bytes(12)
        packet_in += bytes([0, 1, 0, 4]) + bytes(6)
        for message, what in [
            (bytes([1, 19, 0, 8, 0, 0, 0, 5]), "of OpenFlow10, and the switch speaks OpenFlow13"),
            (b"nonsense", "no message"),
            (packet_in, "OFPT_PACKET_IN has an event of its own"),
        ]:
            with self.assertRaisesRegex(weir.WordError, what):
                sw.message(message)
        with self.assertRaisesRegex(weir.WordError, "allowed are equal, master, slave"):
            sw.role_changed("king")
        with self.assertRaisesRegex(weir.WordError, "allowed are requested, master_request"):
            sw.role_changed("slave", reason="mood")


class CoroutineTest(unittest.TestCase):
    def test_handlers_may_wait(self) -> None:
        class Waiting(weir.App):
            def __init__(self) -> None:
                self.seen: List[Any] = []

            async def switch_ready(self, sw: weir.Switch) -> None:
                await sw.checked.add_flow("in_port=1,actions=output:2")
                await sw.barrier()
                self.seen += [len(await sw.port_stats()), await sw.flow_stats(in_port=1)]
                self.seen.append((await sw.aggregate_stats()).flow_count)
                self.seen.append(await sw.echo(b"hello"))
                self.seen.append((await sw.role("master", 7)).role)
                await asyncio.sleep(5)
                self.seen.append("slept")

        app = Waiting()
        network = Network(app)
        sw = network.switch(ports=3)
        self.assertEqual(app.seen, [3, [], 0, b"hello", "master"])
        self.assertEqual(sw.sent[0].name, "OFPT_FLOW_MOD")
        network.run(6)
        self.assertEqual(app.seen[-1], "slept")

    def test_a_role_that_is_asked_for_is_told(self) -> None:
        class Asking(weir.App):
            def __init__(self) -> None:
                self.seen: List[Any] = []

            async def switch_ready(self, sw: weir.Switch) -> None:
                for _ in range(2):
                    answer = await sw.role("master", 5)
                    self.seen.append((answer.role, answer.generation_id))
                self.seen.append((await sw.role()).role)

            def role_changed(self, sw: weir.Switch, change: weir.RoleChange) -> None:
                self.seen.append(f"{change.role} {change.generation_id} {change.reason}")

        app = Asking()
        Network(app).switch()
        self.assertEqual(app.seen.count("master 5 requested"), 1, app.seen)
        app.seen.remove("master 5 requested")
        self.assertEqual(app.seen, [("master", 5), ("master", 5), "master"])

    def test_an_error_is_an_exception_of_its_name(self) -> None:
        class Checking(weir.App):
            caught: Any = None

            async def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
                try:
                    await sw.checked.add_flow(in_port=1, actions="output:2")
                except weir.errors.OFPFMFC_TABLE_FULL as error:
                    self.caught = error

        app = Checking()
        sw = Network(app).switch()
        sw.refuse_next("OFPFMFC_TABLE_FULL")
        sw.packet_in()
        self.assertIsInstance(app.caught, weir.OpenFlowError)
        self.assertEqual((app.caught.name, app.caught.error_type), ("OFPFMFC_TABLE_FULL", 5))
        self.assertIn("the table is full", app.caught.advice)
        self.assertIn(app.caught.advice, str(app.caught))
        sw.refuse_next("OFPFMFC_OVERLAP")
        with self.assertRaises(weir.errors.OFPFMFC_OVERLAP):
            sw.packet_in()

    def test_who_waits_for_a_switch_that_goes_is_told(self) -> None:
        class Late(weir.App):
            async def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
                await asyncio.sleep(10)
                await sw.barrier()

        network = Network(Late)
        sw = network.switch()
        sw.packet_in()
        sw._test.end()
        with self.assertRaises(weir.NotConnected):
            network.run(11)


class VerbsTest(unittest.TestCase):
    def messages(self, verb: Any, version: str = "OpenFlow13") -> List[weir.Message]:
        class Once(weir.App):
            def switch_ready(self, sw: weir.Switch) -> None:
                verb(sw)

        return list(Network(Once).switch(version=version).sent)

    def sent(self, verb: Any, version: str = "OpenFlow13") -> List[str]:
        return [str(message) for message in self.messages(verb, version)]

    def test_a_flow_is_text_or_keywords_or_both(self) -> None:
        mac = "02:00:00:00:00:01"
        text = f"priority=5,in_port=1,dl_src={mac} actions=output:2"
        [expected] = self.sent(lambda sw: sw.add_flow(text))
        for verb in [
            lambda sw: sw.add_flow(in_port=1, eth_src=mac, priority=5, actions="output:2"),
            lambda sw: sw.add_flow(f"priority=5,in_port=1,dl_src={mac}", actions=["output:2"]),
            lambda sw: sw.add_flow(
                match=weir.Match(in_port=1, eth_src=mac), priority=5, actions=weir.Action("2")
            ),
            lambda sw: sw.add_flow(match=f"in_port=1,dl_src={mac}", priority=5, actions="2"),
            lambda sw: sw.add_flow("priority=5", in_port=1, dl_src=mac, actions="output:2"),
        ]:
            self.assertEqual(self.sent(verb), [expected])

    def test_verbs_make_their_messages(self) -> None:
        for verb, said in [
            (lambda sw: sw.clear_flows(), "flow_mod del"),
            (lambda sw: sw.delete_flows(in_port=1, strict=True, priority=3), "flow_mod del_strict"),
            (lambda sw: sw.modify_flows(in_port=1, actions="drop"), "flow_mod mod"),
            (lambda sw: sw.add_flow(in_port=1, actions="meter:1,output:2,goto_table:1"), "meter:1"),
            (lambda sw: sw.add_group("group_id=1,type=all,bucket=output:1"), "GROUP_MOD"),
            (lambda sw: sw.delete_group(), "GROUP_MOD"),
            (lambda sw: sw.add_meter("meter=1,kbps,band=type=drop,rate=5"), "METER_MOD"),
            (lambda sw: sw.set_port(1, up=False), "PORT_MOD"),
            (lambda sw: sw.set_config(miss_send_len=128), "SET_CONFIG"),
            (lambda sw: sw.packet_out(b"\0" * 60, actions="output:1"), "in_port=CONTROLLER"),
            (lambda sw: sw.packet_out(b"\0" * 60, actions=[], in_port=3), "in_port=3"),
        ]:
            [message] = self.sent(verb)
            self.assertIn(said, message)

    def test_flags_timeouts_and_cookies_are_kept(self) -> None:
        [flow] = self.sent(
            lambda sw: sw.add_flow(
                in_port=1,
                actions="output:2",
                idle_timeout=5,
                hard_timeout=6,
                cookie=7,
                table_id=8,
                flags=["send_flow_rem", "check_overlap"],
            )
        )
        for word in ["idle_timeout=5", "hard_timeout=6", "cookie=0x7", "table=8", "send_flow_rem"]:
            self.assertIn(word, flow)

    def test_actions_are_said_in_the_words_of_the_version(self) -> None:
        def verb(sw: weir.Switch) -> None:
            sw.add_flow("dl_vlan=5,actions=mod_dl_src:02:00:00:00:00:01,output:2")

        [old] = self.sent(verb, "OpenFlow10")
        [new] = self.sent(verb)
        self.assertIn("mod_dl_src", old)
        self.assertIn("set_field:02:00:00:00:00:01->eth_src", new)

    def test_names_that_fields_share_are_those_of_the_match(self) -> None:
        for verb in [
            lambda sw: sw.add_flow("tcp", actions="set_field:80->tp_dst"),
            lambda sw: sw.add_flow(tcp=True, actions="set_field:80->tp_dst"),
            lambda sw: sw.add_flow(tcp=True, actions=["set_field:80->tp_dst"]),
        ]:
            [flow] = self.sent(verb)
            self.assertIn("set_field:80->tcp_dst", flow)

    def test_what_cannot_be_sent_is_an_exception_at_once(self) -> None:
        for verb, said, version in [
            (lambda sw: sw.add_flow(in_port=1), "actions are missing", "OpenFlow13"),
            (lambda sw: sw.add_flow(in_prt=1, actions="1"), "match, actions, pri", "OpenFlow13"),
            (lambda sw: sw.add_flow("in_port=1,colour=2,actions=1"), "unknown word", "OpenFlow13"),
            (lambda sw: sw.add_flow("in_port=1,actions=1", in_port=2), "given twice", "OpenFlow13"),
            (lambda sw: sw.add_flow("actions=1", actions="2"), "given twice", "OpenFlow13"),
            (
                lambda sw: sw.add_flow("priority=5,in_port=1,actions=1", priority=6),
                "priority is given twice",
                "OpenFlow13",
            ),
            (
                lambda sw: sw.delete_flows("cookie=5", cookie=6),
                "cookie is given twice",
                "OpenFlow13",
            ),
            (
                lambda sw: sw.flow_stats("table=1", table_id=2),
                "table_id is given twice",
                "OpenFlow13",
            ),
            (lambda sw: sw.add_flow(actions="1", flags="often"), "unknown flag", "OpenFlow13"),
            (lambda sw: sw.delete_flows(priority=1), "strict=True", "OpenFlow13"),
            (lambda sw: sw.set_port(99, up=True), "no port 99", "OpenFlow13"),
            (lambda sw: sw.set_config(fragments="glue"), "reassemble", "OpenFlow13"),
            (lambda sw: sw.role("king"), "equal, master, slave", "OpenFlow13"),
            (
                lambda sw: sw.add_group("group_id=1,type=all,bucket=output:1"),
                "OpenFlow10 cannot say",
                "OpenFlow10",
            ),
            (lambda sw: sw.add_flow(actions="goto_table:1"), "OpenFlow10", "OpenFlow10"),
        ]:
            with self.assertRaisesRegex(weir.WordError, said):
                self.sent(verb, version)

    def call(self, verb: Any, args: Any, words: Dict[str, Any], sw: weir.Switch) -> None:
        verb(sw, *args, **words)

    def test_a_word_without_effect_is_refused_by_every_verb(self) -> None:
        verbs: Dict[str, Any] = {
            "add": lambda sw, *a, **k: sw.add_flow(*a, **k),
            "modify": lambda sw, *a, **k: sw.modify_flows(*a, **k),
            "modify_strict": lambda sw, *a, **k: sw.modify_flows(*a, strict=True, **k),
            "delete": lambda sw, *a, **k: sw.delete_flows(*a, **k),
            "delete_strict": lambda sw, *a, **k: sw.delete_flows(*a, strict=True, **k),
            "dump": lambda sw, *a, **k: sw.flow_stats(*a, **k),
        }
        tried = 0
        for row in ENTRY_WORDS.read_text().splitlines():
            if row.startswith("#"):
                continue
            text, keyword, taken = row.split("\t")
            for name, verb in verbs.items():
                writes = name in ("add", "modify", "modify_strict")
                needs: Dict[str, Any] = {"actions": "drop"} if writes else {}
                calls: List[Any] = []
                if text:
                    calls.append(((text,), {} if text.startswith("actions") else needs))
                if keyword:
                    calls.append(((), {**needs, **eval(f"dict({keyword})")}))
                for args, words in calls:
                    tried += 1
                    ask = functools.partial(self.call, verb, args, words)
                    if name in taken.split():
                        self.sent(ask)
                        continue
                    with self.assertRaises(weir.WordError, msg=f"{name} {args} {words}"):
                        self.sent(ask)
        self.assertGreater(tried, 180)

    def test_the_words_that_are_offered_are_those_of_the_verb(self) -> None:
        for verb in ["add_flow", "modify_flows", "delete_flows", "flow_stats", "aggregate_stats"]:
            signature = inspect.signature(getattr(weir.Switch, verb))
            own = [word for word in signature.parameters if word not in ("self", "flow", "fields")]
            words: Dict[str, Any] = {"actions": "drop"} if "actions" in own else {}
            with self.assertRaisesRegex(weir.WordError, f"allowed are {', '.join(own)}; the field"):
                self.sent(lambda sw, verb=verb, words=words: getattr(sw, verb)(colour=1, **words))

    def test_buckets_of_a_select_group_have_equal_shares(self) -> None:
        equal = "group_id=1,type=select,bucket=weight:1,output:1,bucket=weight:1,output:2"
        plain = "group_id=1,type=select,bucket=output:1,bucket=output:2"
        for verb in ["add_group", "modify_group"]:
            sent = []
            for text in [equal, plain]:
                [message] = self.messages(lambda sw, v=verb, text=text: getattr(sw, v)(text))
                sent.append(message.encode()[8:])
            self.assertEqual(sent[0], sent[1])

    def test_a_packet_that_is_not_whole_cannot_be_flooded(self) -> None:
        sw = Network(example("hub").Hub).switch()
        with self.assertRaisesRegex(weir.WeirError, "neither keeps the packet nor sent all"):
            sw.packet_in(b"\0" * 20, total_len=60)
        [out] = sw.packet_in(b"", total_len=60, buffer_id=5)
        self.assertEqual((out.data, "buffer_id=5" in str(out)), (b"", True))


class PacketTest(unittest.TestCase):
    def parsed(self, data: Any) -> weir.PacketIn:
        from weir._weir import TestSwitch

        return TestSwitch().packet_in(data if isinstance(data, bytes) else data.build(), 3)

    def test_headers_are_read_by_their_names(self) -> None:
        base = frame(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
        tcp = self.parsed(base.vlan(5, 3).ipv4("10.0.0.1", "10.0.0.2", ttl=9).tcp(1000, 80))
        assert tcp.eth and tcp.vlan and tcp.ipv4 and tcp.tcp
        self.assertEqual((tcp.eth.src, tcp.eth.type), ("02:00:00:00:00:01", 0x800))
        self.assertEqual((tcp.vlan.vid, tcp.vlan.pcp), (5, 3))
        self.assertEqual((tcp.ipv4.src, tcp.ipv4.ttl, tcp.ipv4.proto), ("10.0.0.1", 9, 6))
        self.assertEqual((tcp.tcp.dst, tcp.tcp.flags), (80, 2))
        self.assertTrue(tcp.is_tcp and tcp.is_ipv4 and tcp.is_vlan)
        self.assertFalse(tcp.is_udp or tcp.is_arp or tcp.is_ipv6)
        self.assertIsNone(tcp.udp)
        self.assertIn("dst='10.0.0.2'", repr(tcp.ipv4))
        mac = "02:00:00:00:00:01"
        arp = self.parsed(base.arp(1, mac, "10.0.0.1", "00:00:00:00:00:00", "10.0.0.2"))
        assert arp.arp
        self.assertEqual((arp.arp.op, arp.arp.spa, arp.arp.tpa), (1, "10.0.0.1", "10.0.0.2"))
        ping = self.parsed(base.ipv4("10.0.0.1", "10.0.0.2").echo_request(7, 8))
        assert ping.icmpv4
        self.assertEqual((ping.icmpv4.type, ping.icmpv4.id, ping.icmpv4.seq), (8, 7, 8))
        udp = self.parsed(base.ipv6("2001:db8::1", "2001:db8::2").udp(53, 54).payload(b"abc"))
        assert udp.ipv6 and udp.udp
        self.assertEqual((udp.ipv6.dst, udp.udp.src), ("2001:db8::2", 53))
        self.assertTrue(udp.exact_match.covers(udp.exact_match))
        self.assertEqual(udp.exact_match["udp_dst"], 54)

    def test_any_bytes_are_a_packet(self) -> None:
        whole = frame().vlan(5).ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).payload(b"x" * 9).build()
        names = [name for name in dir(weir.PacketIn) if not name.startswith("_")]
        for length in range(len(whole)):
            packet = self.parsed(whole[:length])
            for name in names:
                repr(getattr(packet, name))
        self.assertTrue(self.parsed(bytes.fromhex("0180c200000e")).is_link_local)


if __name__ == "__main__":
    unittest.main()
