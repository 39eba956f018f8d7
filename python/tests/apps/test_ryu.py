"""Apps of Ryu, unmodified, by ``weir run`` and ``weir ryu-manager``; apps that misbehave."""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from fake_switch import (
    BARRIER_REPLY,
    BARRIER_REQUEST,
    ERROR,
    FLOW_MOD,
    PACKET_OUT,
    FakeSwitch,
    Process,
    controller,
)
from weir import aliases

WEIR = os.environ.get("WEIR", "weir")

PORT_STATUS, STATS_REQUEST, STATS_REPLY = 12, 16, 17

PACKET = bytes.fromhex("020000000002020000000001 88b5") + bytes(46)

HEAD = """
from {name}.base import app_manager
from {name}.controller import ofp_event
from {name}.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER
from {name}.controller.handler import HANDSHAKE_DISPATCHER, set_ev_cls
from {name}.lib import hub
from {name}.ofproto import ofproto_v1_0
"""

HUB = """
class Hub(app_manager.{base}):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in_handler(self, ev):
        msg = ev.msg
        dp, ofp, parser = msg.datapath, msg.datapath.ofproto, msg.datapath.ofproto_parser
        actions = [parser.OFPActionOutput(ofp.OFPP_FLOOD)]
        data = msg.data if msg.buffer_id == ofp.OFP_NO_BUFFER else None
        dp.send_msg(parser.OFPPacketOut(
            datapath=dp, buffer_id=msg.buffer_id, in_port=msg.in_port, actions=actions, data=data))
"""

#: The start of another app, with one handler of packet-ins.
OTHER = """
class Other(app_manager.RyuApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def handle(self, ev):
        dp, parser, ofp = ev.msg.datapath, ev.msg.datapath.ofproto_parser, ev.msg.datapath.ofproto
"""

#: Apps that misbehave: the body of a handler, and the line that says so.
BAD = [
    ("raise ValueError('on purpose')", "Other: handler handle of EventOFPPacketIn raised"),
    ("import sys; sys.exit(3)", "Other: handler handle of EventOFPPacketIn raised"),
    ("raise hub.Timeout()", "Other: handler handle of EventOFPPacketIn raised"),
    ("import time; time.sleep(3600)", "Other: handler handle does not return; other apps go on"),
    ("hub.patch(); self.logger.info('patched')", "hub.patch is left out"),
    ("hub.spawn(lambda: 1 / 0)", "hub: uncaught exception"),
    ("parser.OFPActionOutput('nowhere')._pack()", "raised"),
    ("dp.send_msg(parser.OFPPacketOut(dp, 1, 70000, []))", "raised"),
    ("while True: pass", "Other: handler handle neither returns nor waits in ryu.lib.hub"),
    ("self.handle(ev)", "RecursionError"),
    ("import os; os._exit(3)", "os._exit(3) of an app does not end the program"),
    ("import asyncio; raise asyncio.CancelledError", "handler handle of EventOFPPacketIn raised"),
    ("hub.kill(hub.getcurrent())", "Other: hub.kill has ended the thread of its handlers"),
    ("hub.Timeout(0.001)", "Other: handler handle has left a hub.Timeout running"),
    ("q = hub.Queue(1); q.put(1); q.put_nowait(2)", "handler handle of EventOFPPacketIn raised"),
    ("q = hub.Queue(1); q.put(1); q.put(2)", "Other: handler handle does not return"),
    ("import eventlet; eventlet.monkey_patch()", "eventlet.monkey_patch is left out"),
    ("from eventlet.patcher import monkey_patch; monkey_patch()", "monkey_patch is left out"),
    *(
        []
        if aliases._installed("os_ken")
        else [("parser.NXActionLearn", "has no NXActionLearn: Nicira's actions are os-ken's")]
    ),
    ("parser.NXTFlowMod", "Nicira's messages are not there"),
    ("dp.socket", "Datapath has no socket: connections are Weir's"),
    ("ofp.OFP_FLOW_MOD_SIZE", "sizes and formats of structures are not there"),
    ("ofp.OFPP_FLOD", "ofproto_v1_0 has no OFPP_FLOD: did you mean OFPP_FLOOD?"),
    ("parser.OFPActionOuput(1)", "has no OFPActionOuput: did you mean OFPActionOutput?"),
    ("dp.send_mesg(None)", "Datapath has no send_mesg: did you mean send_msg?"),
    ("ev.msg.inport", "OFPPacketIn has no inport: did you mean in_port?"),
    ("hub.spwan(None)", "ryu.lib.hub has no spwan: did you mean spawn?"),
    ("from ryu.lib.mac import to_text", "ryu.lib.mac has no to_text: it has haddr_bitand, "),
]

#: A library that patches others where it is let.
EVENTLET = {
    "__init__.py": "from eventlet import patcher\nmonkey_patch = patcher.monkey_patch\n",
    "patcher.py": "import os\ndef monkey_patch(**_):\n    os.abort()\n",
}

#: Files that are refused, and what is said then.
REFUSED = [
    ("import ryu.services.protocols.bgp.bgpspeaker", "Weir speaks no BGP"),
    (
        "from ryu.ofproto.ofproto_v1_3 import OFPP_FLOD",
        "ImportError: ryu.ofproto.ofproto_v1_3 has no OFPP_FLOD: did you mean OFPP_FLOOD?",
    ),
    (
        "from ryu.ofproto.ofproto_v1_3_parser import OFPActionOuput",
        "ofproto_v1_3_parser has no OFPActionOuput: did you mean OFPActionOutput?",
    ),
    (
        "from ryu.ofproto.ofproto_v1_2_parser import OFPFlowMod",
        "has no OFPFlowMod: apps of Ryu run over OpenFlow 1.0, 1.3, 1.4 and 1.5, not 1.2",
    ),
    (
        "from ryu.ofproto.ofproto_v1_5_parser import OFPInstructionMeter",
        "has no OFPInstructionMeter: a meter is an action of OpenFlow 1.5, OFPActionMeter",
    ),
    (
        "from ryu.lib import nothing_of_the_kind",
        "No module named 'ryu.lib.nothing_of_the_kind': Weir does not have it",
    ),
    (
        "from os_ken.services import protocols",
        "No module named 'os_ken.services': Weir does not have it (Weir speaks no BGP",
    ),
    (
        "ofp_event.EventOFPNonsense",
        "no message of OpenFlow 1.0, 1.3, 1.4 and 1.5 is called OFPNonsense",
    ),
    (
        "class App(app_manager.RyuApp):\n    OFP_VERSIONS = [2]",
        "App needs OpenFlow 1.1 (0x2); apps of Ryu run over 1.0 (0x1), 1.3 (0x4), 1.4 (0x5) and",
    ),
    (
        "from ryu.ofproto import ofproto_v1_2\n"
        "class App(app_manager.RyuApp):\n    OFP_VERSIONS = [ofproto_v1_2.OFP_VERSION]",
        "App needs OpenFlow 1.2 (0x3); apps of Ryu run over 1.0 (0x1), 1.3 (0x4), 1.4 (0x5) and",
    ),
    ("import os; os._exit(3)", "SystemExit: 3"),
    (
        "class App(app_manager.RyuApp):\n    def __init__(self, **_):\n        pass",
        "App.__init__ does not call the __init__ of RyuApp",
    ),
    ("ofp_event.EventOFPPaketIn", "has no EventOFPPaketIn: did you mean EventOFPPacketIn?"),
    *(
        (f"class App(app_manager.RyuApp):\n    {body}", line)
        for body, line in [
            ("OFP_VERSIONS = 4", "App.OFP_VERSIONS = 4: a list of versions is needed, such as"),
            ("OFP_VERSIONS = '1.3'", "App.OFP_VERSIONS = '1.3': a list of versions is needed"),
            ("OFP_VERSIONS = ['1.3']", "App.OFP_VERSIONS = ['1.3']: a list of versions is needed"),
            ("_CONTEXTS = {'x': 5}", "App._CONTEXTS['x'] = 5: a class is needed"),
            (
                "@set_ev_cls('EventOFPPacketIn')\n    def packet(self, ev): pass",
                "set_ev_cls('EventOFPPacketIn'): a class of events is needed, such as ofp_event.",
            ),
            (
                "@set_ev_cls(ofp_event.EventOFPPacketIn, 'MAIN')\n    def packet(self, ev): pass",
                "set_ev_cls(EventOFPPacketIn, 'MAIN'): a phase is one of HANDSHAKE_DISPATCHER, ",
            ),
            (
                "@set_ev_cls(ofp_event.EventOFPPacketIn)\n    async def packet(self, ev): pass",
                "set_ev_cls on App.packet: a handler is no `async def`",
            ),
            ("def packet(self ev): pass", "app.py\", line 9"),
        ]
    ),
    ("class App: pass", "app.py: no app in it: write `class App(app_manager.RyuApp)`"),
    ("raise RuntimeError('not today')", "RuntimeError: not today"),
    ("import sys; sys.exit(4)", "SystemExit: 4"),
]


class RyuTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, text: str, name: str = "app.py", package: str = "ryu") -> Path:
        path = self.folder / name
        path.write_text(HEAD.format(name=package) + textwrap.dedent(text))
        return path

    def manager(self, *words: str) -> Process:
        """``python3 -m weir ryu-manager`` on a port that the system chooses."""
        command = [sys.executable, "-m", "weir", "ryu-manager", *words]
        listen = ["--listen", "tcp:127.0.0.1:0", "--probe-interval", "0"]
        return Process([*command, *listen], self.folder)

    def test_an_app_answers_packets_however_it_is_started(self) -> None:
        ours = str(self.file(HUB.format(base="RyuApp")))
        fork = str(self.file(HUB.format(base="OSKenApp"), "fork.py", "os_ken"))
        listen = ["--listen", "tcp:127.0.0.1:0"]
        for command in [
            [sys.executable, "-m", "weir", "run", ours],
            [sys.executable, "-m", "weir", "run", fork],
            [sys.executable, "-m", "weir", "ryu-manager", "--verbose", ours],
            [WEIR, "ryu-manager", "--python", sys.executable, fork],
            [WEIR, "run", "--python", sys.executable, ours],
        ]:
            with Process([*command, *listen], self.folder) as running:
                with FakeSwitch(running.port()) as switch:
                    switch.packet_in(PACKET, count=3000)
                    for _ in range(3000):
                        _, body = switch.expect(PACKET_OUT)
                        self.assertTrue(body.endswith(PACKET))
                self.assertEqual(running.end(), 0, running.lines)
                for line in ("loading app", "instantiating app .* of Hub"):
                    running.line(line)

    def test_an_app_that_misbehaves_keeps_no_other_from_its_events(self) -> None:
        hub = str(self.file(HUB.format(base="RyuApp"), "hub.py"))
        # In place of the library, which need not be there.
        (self.folder / "eventlet").mkdir()
        for name, text in EVENTLET.items():
            (self.folder / "eventlet" / name).write_text(text)
        for body, line in BAD:
            with self.subTest(body):
                bad = str(self.file(OTHER + f"        {body}\n", "bad.py"))
                with self.manager(bad, hub) as running, FakeSwitch(running.port()) as switch:
                    for _ in range(2):
                        switch.packet_in(PACKET)
                        switch.expect(PACKET_OUT)
                    running.line(re.escape(line))
                    switch.is_answered()
                    self.assertEqual(running.end(), 0, running.lines)

    def test_what_cannot_be_loaded_is_refused_with_its_place(self) -> None:
        for text, line in REFUSED:
            with self.subTest(text):
                with self.manager(str(self.file(text))) as running:
                    self.assertEqual(running.process.wait(60), 1)
                    running.line(re.escape(line))
                    self.assertFalse([line for line in running.lines if "app_manager.py" in line])

    @unittest.skipIf(aliases._installed("ryu"), "Ryu is there")
    def test_an_app_of_ryu_s_package_is_refused_with_the_way_to_it(self) -> None:
        with self.manager("ryu.app.rest_topology") as running:
            self.assertEqual(running.process.wait(60), 1)
            text = "No module named 'ryu.app.rest_topology': Weir does not have it (apps of Ryu are"
            running.line(re.escape(f"weir ryu-manager: ModuleNotFoundError: {text}"))

    def test_what_an_app_may_not_expect_is_logged(self) -> None:
        echo = "EventOFPEchoRequest, which never comes: Weir answers echo requests"
        for text, line in [
            (
                "class Second(app_manager.RyuApp): pass\nclass First(app_manager.RyuApp): pass",
                "only First runs, as by Ryu, and not Second: a file has one app",
            ),
            (
                """
                class App(app_manager.RyuApp):
                    @set_ev_cls(ofp_event.EventOFPEchoRequest, MAIN_DISPATCHER)
                    def echo(self, ev): pass
                """,
                f"App handles {echo}",
            ),
            (
                """
                class App(app_manager.RyuApp):
                    def __init__(self, *args, **kwargs):
                        super().__init__(*args, **kwargs)
                        hub.spawn(self.spawned)
                        import select
                        select.select([], [], [], 0.02)
                        self.word = "made"

                    def spawned(self):
                        self.logger.info("spawned once it is %s", self.word)
                """,
                "spawned once it is made",
            ),
        ]:
            with self.subTest(line), self.manager(str(self.file(text))) as running:
                running.port()
                running.line(re.escape(line))
                self.assertEqual(running.end(), 0, running.lines)

    def test_a_missing_library_is_named_with_the_command_that_brings_it(self) -> None:
        if importlib.util.find_spec("webob") is not None:
            self.skipTest("WebOb is there")
        with self.manager(str(self.file("from ryu.app.wsgi import ControllerBase"))) as running:
            self.assertEqual(running.process.wait(60), 1)
            running.line("ryu.app.wsgi needs webob: `pip install webob routes`")

    def test_phases_ports_and_errors_are_those_of_the_switch(self) -> None:
        path = self.file("""
            class Watcher(app_manager.RyuApp):
                OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

                @set_ev_cls(ofp_event.EventOFPStateChange)
                def state(self, ev):
                    self.logger.info("state %s of %s", ev.state, ev.datapath.id)

                @set_ev_cls(ofp_event.EventOFPHello, HANDSHAKE_DISPATCHER)
                def hello(self, ev):
                    self.logger.info("hello of version %s", ev.msg.version)

                @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
                def features(self, ev):
                    dp = ev.msg.datapath
                    self.logger.info("ports %s", sorted(ev.msg.ports))
                    mod = dp.ofproto_parser.OFPFlowMod(datapath=dp, priority=7)
                    dp.send_msg(mod)
                    self.sent = mod.xid

                @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
                def error(self, ev):
                    is_own = ev.msg.xid == self.sent
                    self.logger.info("refused %s %s %s", ev.msg.type, ev.msg.code, is_own)

                @set_ev_cls(ofp_event.EventOFPPortStateChange, MAIN_DISPATCHER)
                def change(self, ev):
                    known = sorted(ev.datapath.ports)
                    self.logger.info("port %s: %s, known %s", ev.port_no, ev.reason, known)
        """)
        with self.manager(str(path)) as running:
            with FakeSwitch(running.port(), dpid=5) as switch:
                xid, body = switch.expect(FLOW_MOD)
                running.line("hello of version 1")
                running.line(r"ports \[1, 2, 3\]")
                switch.send(ERROR, struct.pack("!HH", 3, 1) + body, xid)
                running.line("refused 3 1 True")
                gone = struct.pack("!B7xH6s16s24x", 1, 2, bytes(6), b"p2")
                switch.send(PORT_STATUS, gone)
                running.line(r"port 2: 1, known \[1, 3\]")
            running.line("state dead of 5")
            states = [line.split()[1] for line in running.lines if line.startswith("state ")]
            self.assertEqual(states, ["handshake", "config", "main", "dead"])

    def test_answers_come_with_the_number_of_their_request(self) -> None:
        path = self.file("""
            import ryu.app.ofctl.api as ofctl

            class Asker(app_manager.RyuApp):
                OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

                @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
                def main(self, ev):
                    dp, parser = ev.datapath, ev.datapath.ofproto_parser
                    assert ofctl.get_datapath(self, dp.id) is dp
                    request = parser.OFPAggregateStatsRequest(dp, 0, parser.OFPMatch(), 255, 65535)
                    answer = ofctl.send_msg(self, request, parser.OFPAggregateStatsReply)
                    self.logger.info("waited for %s", answer.body)
                    request = parser.OFPTableStatsRequest(dp, 0)
                    dp.send_msg(request)
                    self.sent = request.xid

                @set_ev_cls(ofp_event.EventOFPTableStatsReply, MAIN_DISPATCHER)
                def tables(self, ev):
                    self.logger.info("part %s %s", ev.msg.flags, ev.msg.xid == self.sent)
        """)
        with self.manager(str(path)) as running, FakeSwitch(running.port()) as switch:
            xid, _ = switch.expect(STATS_REQUEST)
            switch.send(STATS_REPLY, struct.pack("!HHQQI4x", 2, 0, 11, 12, 13), xid)
            barrier, _ = switch.expect(BARRIER_REQUEST)
            switch.send(BARRIER_REPLY, b"", barrier)
            counts = r"packet_count=11,byte_count=12,flow_count=13"
            running.line(rf"waited for \[OFPAggregateStats\({counts}\)\]")
            xid, _ = switch.expect(STATS_REQUEST)
            for flags in (1, 0):
                switch.send(STATS_REPLY, struct.pack("!HH", 3, flags), xid)
            running.line("part 1 True")
            running.line("part 0 True")

    def test_a_switch_that_goes_ends_what_waits_for_its_answer(self) -> None:
        path = self.file("""
            import ryu.app.ofctl.api as ofctl

            class Asker(app_manager.RyuApp):
                OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

                @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
                def change(self, ev):
                    dp = ev.datapath
                    barrier = dp.ofproto_parser.OFPBarrierRequest(dp)
                    if ev.state == "dead":
                        self.logger.info("%s is gone: sent %s", dp.id, dp.send_msg(barrier))
                        return
                    ofctl.send_msg(self, barrier)
                    self.logger.info("%s has answered", dp.id)
        """)
        with self.manager(str(path)) as running:
            with FakeSwitch(running.port(), dpid=1) as switch:
                switch.expect(BARRIER_REQUEST)
            running.line("InvalidDatapath: Datapath Invalid 1")
            running.line("1 is gone: sent False")
            with FakeSwitch(running.port(), dpid=2) as switch:
                xid, _ = switch.expect(BARRIER_REQUEST)
                switch.send(BARRIER_REPLY, b"", xid)
                running.line("2 has answered")

    def test_apps_share_contexts_and_ask_each_other(self) -> None:
        self.file(
            """
            from ryu.controller import event

            class Question(event.EventRequestBase):
                def __init__(self):
                    super().__init__()
                    self.dst = "Service"

            class Answer(event.EventReplyBase):
                pass

            class Note(event.EventBase):
                pass

            class Service(app_manager.RyuApp):
                _EVENTS = [Note]

                @set_ev_cls(Question)
                def question(self, request):
                    self.reply_to_request(request, Answer(request.src))
                    self.send_event_to_observers(Note())
            """,
            "service.py",
        )
        path = self.file("""
            import service
            app_manager.require_app("service")

            class Store(dict):
                pass

            class Client(app_manager.RyuApp):
                _CONTEXTS = {"store": Store}

                def __init__(self, *args, **kwargs):
                    super().__init__(*args, **kwargs)
                    self.store = kwargs["store"]
                    self.CONF.register_opts([])

                def start(self):
                    super().start()
                    self.threads.append(hub.spawn(self.ask))

                def ask(self):
                    hub.sleep(0.01)
                    answer = self.send_request(service.Question())
                    self.logger.info("%s for %s", type(answer).__name__, answer.dst)

                @set_ev_cls(service.Note)
                def note(self, ev):
                    self.store["noted"] = True
                    self.logger.info("noted %s", self.store)

                def close(self):
                    self.logger.info("closed")
        """)
        with self.manager(str(path)) as running:
            running.line("Answer for Client")
            running.line("noted {'noted': True}")
            self.assertEqual(running.end(), 0)
            running.line("closed")

    def test_options_of_apps_come_from_words_and_files(self) -> None:
        path = self.file("""
            from ryu import cfg
            cfg.CONF.register_cli_opts([cfg.IntOpt("level", default=1), cfg.BoolOpt("quick")])
            cfg.CONF.register_opts([cfg.ListOpt("names", default=[])], group="site")

            class App(app_manager.RyuApp):
                def start(self):
                    super().start()
                    site = self.CONF.site.names
                    self.logger.info("%s %s %s", self.CONF.level, self.CONF.quick, site)
        """)
        (self.folder / "site.conf").write_text("[DEFAULT]\nlevel = 4\n[site]\nnames = a, b\n")
        words = ["--level=3", "--quick", "--config-file", "site.conf"]
        with self.manager(str(path), *words) as running:
            running.line(r"3 True \['a', 'b'\]")
        with self.manager(str(path), "--levle=3") as running:
            self.assertEqual(running.process.wait(60), 1)
            running.line("unrecognized arguments: --levle=3")

    def test_what_apps_of_ryu_cannot_have_is_refused(self) -> None:
        for words, line in [
            (["--reload"], "--reload: apps of Ryu are not taken again"),
            (
                ["--protocols", "OpenFlow13,OpenFlow12"],
                "--protocols OpenFlow12: apps of Ryu run over OpenFlow10, OpenFlow13, OpenFlow14,",
            ),
        ]:
            with controller(self.file(HUB.format(base="RyuApp")), *words) as running:
                self.assertEqual(running.process.wait(60), 1)
                running.line(line)


if __name__ == "__main__":
    unittest.main()
