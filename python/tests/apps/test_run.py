"""Apps on real connections: as a file, as a program, by ``weir run``; apps that misbehave."""

import contextlib
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import urllib.request
from pathlib import Path
from typing import Any, List

from fake_switch import (
    BARRIER_REPLY,
    BARRIER_REQUEST,
    DEADLINE_S,
    ECHO_REPLY,
    ECHO_REQUEST,
    ERROR,
    FLOW_MOD,
    PACKET_OUT,
    FakeSwitch,
    Process,
    controller,
)
from weir._weir import Core
from weir._weir import EVENTS

WEIR = os.environ.get("WEIR", "weir")

HUB = """
import weir

class Hub(weir.App):
    def switch_ready(self, sw): sw.miss_to_controller()
    def packet_in(self, sw, pkt): sw.flood(pkt)

if __name__ == "__main__": weir.run(Hub)
"""

PACKET = bytes.fromhex("020000000002020000000001 88b5") + bytes(46)


class RunTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, text: str, name: str = "app.py") -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def test_the_six_lines_answer_packets_however_they_are_started(self) -> None:
        path = str(self.file(HUB))
        listen = ["--listen", "tcp:127.0.0.1:0"]
        for command in [
            [sys.executable, path, *listen],
            [sys.executable, "-m", "weir", "run", path, *listen],
            [WEIR, "run", "--python", sys.executable, path, *listen, "--shards", "2"],
        ]:
            with Process(command, self.folder) as running:
                with FakeSwitch(running.port()) as switch:
                    switch.packet_in(PACKET, count=5000)
                    for _ in range(5000):
                        _, body = switch.expect(PACKET_OUT)
                        self.assertTrue(body.endswith(PACKET))
                self.assertEqual(running.end(), 0, running.lines)

    def test_ctrl_c_ends_it_well(self) -> None:
        with controller(self.file(HUB)) as running:
            running.port()
            self.assertEqual(running.end(signal.SIGINT), 0, running.lines)

    def test_several_apps_of_a_file_run_in_their_order(self) -> None:
        path = self.file(
            """
            import weir

            class Base(weir.App):
                def packet_in(self, sw, pkt):
                    print(type(self).__name__, flush=True)

            class First(Base): pass
            class Second(Base): pass
            class _Hidden(Base): pass
            """
        )
        with controller(path) as running, FakeSwitch(running.port()) as switch:
            switch.packet_in(PACKET)
            running.line("Second")
            names = ["Base", "First", "Second", "_Hidden"]
            said = [line for line in running.lines if line in names]
            self.assertEqual(said, ["First", "Second"])

    def test_an_app_that_blocks_stops_neither_switches_nor_the_end(self) -> None:
        path = self.file(
            """
            import time, weir

            class Blocking(weir.App):
                def packet_in(self, sw, pkt):
                    print("blocked", flush=True)
                    time.sleep(100_000)
            """
        )
        with controller(path) as running, FakeSwitch(running.port()) as switch:
            switch.packet_in(PACKET)
            running.line("blocked")
            for _ in range(10):
                switch.packet_in(PACKET, count=3000)
                switch.is_answered()
            with FakeSwitch(running.port(), dpid=2) as another:
                another.is_answered()
            self.assertEqual(running.end(), 0)

    def test_what_a_leaking_app_leaves_with_us_is_bounded(self) -> None:
        path = self.file(
            """
            import asyncio, weir

            class Leaking(weir.App):
                seen = []

                async def packet_in(self, sw, pkt):
                    self.seen.append(pkt)
                    sw.echo(b"never awaited")
                    await asyncio.Event().wait()

            class Timers(weir.App):
                full = 0

                def switch_ready(self, sw):
                    for _ in range(70_000):
                        try:
                            self.controller.call_later(3600, print).cancel()
                            self.controller.call_later(3600, print)
                        except weir.QueueFull:
                            self.full += 1
                    print("ready", sw.dpid, flush=True)

                def tick(self, sw):
                    refused = self.controller.stats()["coroutines_refused"]
                    print("refused", refused, "full", self.full, flush=True)

            class Hub(weir.App):
                def packet_in(self, sw, pkt): sw.flood(pkt)
            """
        )
        with controller(path) as running:
            with FakeSwitch(running.port()) as leaky, FakeSwitch(running.port(), dpid=2) as other:
                # Only then are the timers of both switches counted in each line that follows.
                running.line("^ready 1$")
                running.line("^ready 2$")
                sent = 0
                while not any(re.match("refused [1-9]", line) for line in running.lines):
                    self.assertLess(sent, 1_000_000, running.lines)
                    leaky.packet_in(PACKET, count=500)
                    for _ in range(500):
                        leaky.expect(PACKET_OUT)
                    sent += 500
                self.assertGreaterEqual(sent, 10_000, "as many coroutines as may")
                other.packet_in(PACKET)
                other.expect(PACKET_OUT)
                full = int(running.line(r"refused [1-9]\d* full (\d+)")[1])
                # Two switches have set 70,000 timers each, beyond those that they have cancelled.
                self.assertEqual(full, 2 * 70_000 - 65_536)
            self.assertEqual(running.end(), 0, running.lines)

    def test_a_thousand_switches(self) -> None:
        path = self.file(
            """
            import weir

            class Many(weir.App):
                ready = 0

                def switch_ready(self, sw):
                    self.ready += 1
                    if self.ready == 1000:
                        print("all", len(self.controller.switches()), flush=True)

                def packet_in(self, sw, pkt):
                    sw.forward(pkt, 2)
            """
        )
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with controller(path, "--shards", "2") as running, contextlib.ExitStack() as stack:
            port = running.port()
            switches = [stack.enter_context(FakeSwitch(port, dpid)) for dpid in range(1, 1001)]
            running.line("^all 1000$")
            for switch in switches:
                switch.packet_in(PACKET, count=3)
            for switch in switches:
                for _ in range(3):
                    switch.expect(PACKET_OUT)
            self.assertEqual(running.end(), 0, running.lines)

    def test_an_app_that_raises_or_exits_goes_on(self) -> None:
        path = self.file(
            """
            import sys, weir

            class Bad(weir.App):
                async def switch_ready(self, sw):
                    sys.exit(4)

                def packet_in(self, sw, pkt):
                    if pkt.in_port == 1:
                        raise ValueError("port one")
                    if pkt.in_port == 2:
                        sys.exit(3)
                    if pkt.in_port == 3:
                        raise KeyboardInterrupt("port three")
                    sw.flood(pkt)

            class Interrupting(weir.App):
                def started(self):
                    self.controller.call_later(0, self.raising)

                async def raising(self):
                    raise KeyboardInterrupt("a timer")
            """
        )
        with controller(path) as running, FakeSwitch(running.port()) as switch:
            for port in [1, 2, 3, 4]:
                switch.packet_in(PACKET, in_port=port)
            switch.expect(PACKET_OUT)
            running.line("KeyboardInterrupt: port three")
            running.line("KeyboardInterrupt: a timer")
            running.line(r'raise ValueError\("port one"\)')
            running.line("SystemExit: 3")
            running.line("SystemExit: 4")
            self.assertEqual(running.end(), 0, running.lines)

    def test_an_interrupt_that_nobody_handles_is_no_success(self) -> None:
        path = self.file(
            """
            import asyncio, weir

            class Bad(weir.App):
                async def started(self):
                    asyncio.get_running_loop().call_soon(self.interrupt)

                def interrupt(self):
                    raise KeyboardInterrupt("of the app's own")
            """
        )
        with controller(path) as running:
            running.line("KeyboardInterrupt: of the app's own")
            self.assertNotEqual(running.process.wait(DEADLINE_S), 0, running.lines)

    def test_answers_are_waited_for_and_errors_have_names(self) -> None:
        path = self.file(
            """
            import weir, weir.errors

            class Asking(weir.App):
                async def switch_ready(self, sw):
                    sw.add_flow(in_port=1, actions="output:2")
                    await sw.barrier()
                    print("barrier", flush=True)
                    try:
                        await sw.checked.add_flow(in_port=3, actions="output:2")
                    except weir.errors.OFPFMFC_OVERLAP as error:
                        print("refused:", error, flush=True)
                    sw.add_flow(in_port=4, actions="output:2")
                    try:
                        await sw.barrier()
                    except weir.NotConnected:
                        print("gone", flush=True)

                def error(self, sw, error):
                    print("told:", error.name, flush=True)
            """
        )
        with controller(path) as running, FakeSwitch(running.port()) as switch:
            switch.expect(FLOW_MOD)
            xid, _ = switch.expect(BARRIER_REQUEST)
            switch.send(BARRIER_REPLY, xid=xid)
            running.line("^barrier")
            xid, _ = switch.expect(FLOW_MOD)
            switch.send(ERROR, b"\0\3\0\1", xid)
            xid, _ = switch.expect(BARRIER_REQUEST)
            switch.send(BARRIER_REPLY, xid=xid)
            running.line("refused: .*OFPFMFC_OVERLAP .*: another entry .*: change the priority")
            xid, _ = switch.expect(FLOW_MOD)
            switch.send(ERROR, b"\0\3\0\0", xid)
            running.line("told: OFPFMFC_TABLE_FULL")
            switch.expect(BARRIER_REQUEST)
            switch.__exit__()
            running.line("^gone")

    def test_a_master_that_another_one_replaces_is_told(self) -> None:
        first = self.file(
            """
            import weir

            class First(weir.App):
                async def switch_ready(self, sw):
                    await sw.role("master", 1)

                def role_changed(self, sw, change):
                    print("role", change.role, change.generation_id, change.reason, flush=True)

                def tick(self, sw):
                    sw.add_flow(priority=1, actions="drop")
            """
        )
        second = self.file(
            """
            import weir

            class Second(weir.App):
                async def switch_ready(self, sw):
                    await sw.role("master", 2)
            """,
            "second.py",
        )
        listens = first.parent / "openflow"
        with controller(first) as running:
            to = ["--controller", f"tcp:127.0.0.1:{running.port()}", "--control", "none"]
            command = [WEIR, "switch", "--port", "null:p1", *to, "--listen", f"punix:{listens}"]
            with Process(command, first.parent):
                running.line("^role master 1 requested")
                with controller(second, "--connect", f"unix:{listens}"):
                    running.line("^role slave 2 master_request")

    def test_a_question_of_another_thread_overtakes_nothing(self) -> None:
        path = self.file(
            """
            import asyncio, threading, weir

            class Asking(weir.App):
                sent = 0

                def switch_ready(self, sw):
                    if sw.dpid == 1:
                        threading.Thread(target=self.ask, args=(sw,), daemon=True).start()
                    print("ready", sw.dpid, flush=True)

                def ask(self, sw):
                    asyncio.set_event_loop(asyncio.new_event_loop())
                    asked = 0
                    while True:
                        if asked != self.sent:
                            asked = self.sent
                            sw.echo(b"%d" % asked)

                def packet_in(self, sw, pkt):
                    for other in self.controller.switches():
                        if other is not sw:
                            other.add_flow(in_port=1, actions="output:2")
                    sw.flood(pkt)
                    self.sent += 1
            """
        )
        with controller(path) as running, contextlib.ExitStack() as stack:
            # What is sent to the others keeps what is sent to the first one waiting.
            for dpid in range(2, 102):
                stack.enter_context(FakeSwitch(running.port(), dpid))
                running.line(f"^ready {dpid}$")
            switch = stack.enter_context(FakeSwitch(running.port()))
            came = asked = 0
            while came < 200 or not asked:
                self.assertLess(came, 100_000, "it asks nothing")
                switch.packet_in(PACKET)
                kind = -1
                while kind != PACKET_OUT:
                    kind, xid, body = switch.receive()
                    if kind == ECHO_REQUEST:
                        asked += 1
                        self.assertLessEqual(int(body), came, "what was sent before comes first")
                        switch.send(ECHO_REPLY, body, xid)
                came += 1

    def test_rest_is_served_beside_an_app_that_blocks(self) -> None:
        path = self.file(
            """
            import time
            import weir

            class Sleeper(weir.App):
                def switch_ready(self, sw): time.sleep(600)
            """
        )
        with controller(path, "--rest", "127.0.0.1:0") as running:
            address = running.line(r"REST on (http://[0-9.:]+)")[1]

            def get(path: str) -> bytes:
                with urllib.request.urlopen(address + path, timeout=DEADLINE_S) as answer:
                    return bytes(answer.read())

            with FakeSwitch(running.port(), dpid=7):
                end = time.monotonic() + DEADLINE_S
                while json.loads(get("/stats/switches")) != [7]:
                    self.assertLess(time.monotonic(), end, "the switch is not there")
                    time.sleep(0.01)
                self.assertIn(b"<title>", get("/"))
                links = json.loads(get("/v1.0/topology/links"))
            self.assertEqual(links, [])

    def test_metrics_are_served_beside_the_app(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        options = ["--metrics", f"127.0.0.1:{port}"]

        def count(name: str) -> int:
            url = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
                text = answer.read().decode()
            found = re.search(f"^weir_controller_{name} (\\d+)$", text, re.MULTILINE)
            assert found is not None, text
            return int(found[1])

        with controller(self.file(HUB), *options) as running:
            with FakeSwitch(running.port(), dpid=7) as switch:
                switch.packet_in(PACKET)
                end = time.monotonic() + DEADLINE_S
                while (count("switches"), count("packet_ins_total")) != (1, 1):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)

    def test_a_changed_file_is_taken_and_a_broken_one_is_not(self) -> None:
        text = """
            import weir

            class Telling(weir.App):
                def switch_ready(self, sw):
                    print("ready WORD", sw.dpid, flush=True)

                def packet_in(self, sw, pkt):
                    print("packet WORD", flush=True)
            """
        path = self.file(text.replace("WORD", "one"))
        with controller(path, "--reload") as running, FakeSwitch(running.port(), dpid=9) as switch:
            running.line("ready one 9")
            self.file("class Broken(:\n")
            running.line("not taken")
            switch.packet_in(PACKET)
            running.line("packet one")
            self.file(text.replace("WORD", "two"))
            running.line("ready two 9")
            switch.packet_in(PACKET)
            running.line("packet two")

    def test_a_switch_that_flaps_is_told_of_each_time(self) -> None:
        path = self.file(
            """
            import weir

            class Count(weir.App):
                ready = down = 0
                gone = set()

                def switch_ready(self, sw):
                    self.ready += 1
                    print("ready", sw.dpid, flush=True)

                def switch_down(self, dpid):
                    self.down += 1
                    self.gone.add(dpid)
                    if self.ready == self.down:
                        print("settled", sorted(self.gone), self.controller.switches(), flush=True)
            """
        )
        with controller(path) as running:
            port = running.port()
            # An app that gets no time sees none of those that have come and gone meanwhile; one
            # that it has seen come it sees go.
            with FakeSwitch(port):
                running.line("^ready 1$")
            for _ in range(50):
                FakeSwitch(port).__exit__()
            with FakeSwitch(port, dpid=2) as switch:
                running.line("^ready 2$")
                switch.is_answered()
            running.line(r"^settled \[1, 2\] \[\]$")
            with FakeSwitch(port) as switch:
                switch.is_answered()

    def test_what_waits_at_the_end_counts_as_unsent(self) -> None:
        core = Core(listen=["ptcp:0:127.0.0.1"], connect=[], probe_interval_s=0.0)
        core.set_wants([True] * len(EVENTS))
        [endpoint] = core.start()
        with FakeSwitch(int(endpoint.rsplit(":", 1)[1])):
            # Lines of the log come the same way.
            batch: List[Any] = []
            end = time.monotonic() + DEADLINE_S
            while not any(sw is not None for _, sw, _ in batch):
                self.assertLess(time.monotonic(), end, "no event of the switch")
                select.select([core.fileno()], [], [], DEADLINE_S)
                batch = list(core.take(16))
            sw = next(sw for _, sw, _ in batch if sw is not None)
            sw.packet_out(PACKET, actions="output:1")
            sw.packet_out(PACKET, actions="output:2")
            self.assertEqual(core.stats()["unsent"], 0, "they wait for the end of the batch")
            core.stop()
            self.assertEqual(core.stats()["unsent"], 2)
            sw.packet_out(PACKET, actions="output:3")
            core.flush()
            self.assertEqual(core.stats()["unsent"], 3, "there is nobody to send it")

    def test_what_cannot_run_says_why(self) -> None:
        for text, options, said in [
            ("x = 1", [], "no class of weir.App"),
            ("import no_such_module", [], "No module named 'no_such_module'"),
            ("class X(:", [], "SyntaxError"),
            ("raise SystemExit(9)", [], "SystemExit: 9"),
            (HUB, ["--listen", "6653"], "tcp:HOST"),
            (HUB, ["--listen", "tcp:192.0.2.1:1"], "192.0.2.1"),
            (HUB, ["--protocols", "OpenFlow99"], "OpenFlow13"),
            (HUB, ["--shards", "0"], "shards"),
            (HUB, ["--private-key", "x"], "together"),
            (HUB, ["--rest", "0.0.0.0:0"], "--rest-token-file"),
            (HUB, ["--rest", "8080"], "HOST:PORT"),
            (HUB, ["--metrics", "unix:/run/x"], "over TCP"),
            (HUB, ["--rest", "127.0.0.1:0", "--rest-token-file", "/no/file"], "/no/file"),
            (HUB, ["--rest-token-file", "/no/file"], "--rest"),
        ]:
            path = self.file(text)
            command = [sys.executable, "-m", "weir", "run", str(path), *options]
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 1, (text, options, done.stderr))
            self.assertIn(said, done.stderr)
            self.assertNotIn("running.py", done.stderr, "no traceback of ours")

    def test_without_the_package_the_program_says_how_to_get_it(self) -> None:
        command = [WEIR, "run", "--python", sys.executable, str(self.file(HUB))]
        elsewhere = {**os.environ, "PYTHONSAFEPATH": "1"}
        with_no_package = [*command[:3], "/usr/bin/false", *command[4:]]
        done = subprocess.run(with_no_package, capture_output=True, text=True, env=elsewhere)
        self.assertEqual(done.returncode, 1)
        missing = [*command[:3], "/no/such/python", *command[4:]]
        done = subprocess.run(missing, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("WEIR_PYTHON", done.stderr)
        bare = tempfile.mkdtemp(dir=self.folder)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        done = subprocess.run(
            [*command[:3], f"{bare}/bin/python", *command[4:]],
            capture_output=True,
            text=True,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip install .", done.stderr)
        # A file that is not there comes first, whatever the interpreter lacks.
        nowhere = [*command[:3], f"{bare}/bin/python", "/no/such.py"]
        done = subprocess.run(nowhere, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "weir run: /no/such.py: No such file")
        self.assertNotIn("pip install", done.stderr)


if __name__ == "__main__":
    unittest.main()
