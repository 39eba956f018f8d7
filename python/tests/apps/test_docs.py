"""Every example in docs/python.md, and every request in docs/rest.md, is run.

An example that is added and not run here fails: the blocks are counted.
"""

import ast
import os
import re
import shlex
import socket
import tempfile
import textwrap
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from fake_switch import DEADLINE_S, FakeSwitch, Process, controller

import weir
import weir.errors
from weir.testing import Network, frame

ROOT = Path(__file__).resolve().parents[3]
WEIR = os.environ.get("WEIR", "weir")
PYTHON = (ROOT / "docs" / "python.md").read_text()
REST = (ROOT / "docs" / "rest.md").read_text()


def blocks(text: str, language: str) -> List[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


HUB, ROUTES, VERBS, WAITING, NETWORK, TESTS = blocks(PYTHON, "python")


def executed(block: str, **names: Any) -> Dict[str, Any]:
    """What a block defines."""
    names.setdefault("weir", weir)
    exec(compile(block, "docs/python.md", "exec"), names)
    return names


class PythonPageTest(unittest.TestCase):
    def test_the_hub(self) -> None:
        sw = Network(executed(HUB, __name__="docs")["Hub"]).switch(ports=3)
        [out] = sw.packet_in(frame(), in_port=1)
        self.assertEqual(out.actions, "FLOOD")

    def test_the_hub_serves_real_connections(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "hub.py"
            path.write_text(HUB)
            with controller(path) as running, FakeSwitch(running.port()) as switch:
                switch.packet_in(bytes(60))
                switch.expect(13)
                self.assertEqual(running.end(), 0, running.lines)

    def test_routes_of_an_app(self) -> None:
        network = Network(executed(ROUTES)["Status"])
        network.switch(ports=3)
        self.assertEqual(network.request("GET", "/status/1").json(), {"ports": 3})
        self.assertEqual(network.request("GET", "/status/2").status, 404)
        path = "/status/1/block/02:00:00:00:00:07"
        self.assertEqual(network.request("PUT", path, {"priority": 9}).status, 201)

    def test_the_verbs(self) -> None:
        class Verbs(weir.App):
            def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
                executed(VERBS, sw=sw, pkt=pkt, data=bytes(60), mac="02:00:00:00:00:01")

        sent = Network(Verbs).switch(ports=3).packet_in(frame(), in_port=1)
        names = ["PACKET_OUT"] * 3 + ["FLOW_MOD"] * 3 + ["GROUP_MOD"]
        self.assertEqual([message.name for message in sent], [f"OFPT_{name}" for name in names])

    def test_waiting(self) -> None:
        handler = executed(WAITING)["switch_ready"]
        for refusal in [None, "OFPFMFC_TABLE_FULL"]:
            handlers = {"switch_ready": handler, "packet_in": handler_of}
            app: Any = type("Waiting", (weir.App,), handlers)
            network = Network(app)
            sw = network.switch()
            self.assertEqual([message.name for message in sw.sent], ["OFPT_FLOW_MOD"])
            if refusal is not None:
                sw.refuse_next(refusal)
                again = sw.packet_in(frame(), in_port=1)
                self.assertEqual(again, [], "it is refused, and the handler goes on")

    def test_the_network(self) -> None:
        network = executed(NETWORK)["network"]
        example = (ROOT / "python" / "examples" / "hub_network.py").read_text()
        self.assertIn(NETWORK, example)
        self.assertIsInstance(network, weir.Network)

    def test_the_test(self) -> None:
        hub = executed(HUB, __name__="docs")["Hub"]
        executed(TESTS, Hub=hub)["test_the_hub_floods"]()

    def test_the_tables_name_what_there_is(self) -> None:
        table = PYTHON.split("| handler | when |")[1].split("\n\n")[0]
        shown = set(re.findall(r"`(\w+)\(self", table))
        # Those of events are in a base class, which the compiled part makes.
        members = {**vars(weir.App.__base__), **vars(weir.App)}.items()
        there = {name for name, value in members if callable(value) and not name.startswith("__")}
        self.assertEqual(shown, there)
        asking = PYTHON.split("Those that ask are")[1].split("\n\n")[0]
        for name in re.findall(r"`(\w+)`", asking):
            self.assertTrue(hasattr(weir.Switch, name), name)


async def handler_of(self: Any, sw: weir.Switch, pkt: weir.PacketIn) -> None:
    """The page's handler once more, for a switch that refuses now."""
    await type(self).switch_ready(self, sw)


class Request:
    """A line with curl, without curl."""

    def __init__(self, words: List[str]) -> None:
        self.method: Optional[str] = None
        self.headers: Dict[str, str] = {}
        self.body: Optional[bytes] = None
        self.url = ""
        self.follows = False
        rest = iter(words)
        for word in rest:
            if word == "-X":
                self.method = next(rest)
            elif word == "-d":
                self.body = next(rest).encode()
            elif word == "-H":
                name, value = next(rest).split(": ", 1)
                self.headers[name] = value
            elif word == "-N":
                self.follows = True
            elif word.startswith("-"):
                raise ValueError(f"curl {word}: the test does not know it")
            else:
                self.url = word

    def answer(self, address: str) -> Tuple[int, str]:
        """Status and text; of a stream its beginning."""
        url = self.url.replace("http://127.0.0.1:8080", address)
        request = urllib.request.Request(url, self.body, self.headers, method=self.method)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                return answer.status, "" if self.follows else answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


class RestPageTest(unittest.TestCase):
    def test_the_requests(self) -> None:
        lines = [block for block in blocks(REST, "sh") if "curl" in block]
        words = [shlex.split(line) for block in lines for line in commands(block)]
        requests = [Request(line[1:]) for line in words if line[0] == "curl"]
        self.assertEqual(len(requests), 7, "the page has other requests: look at what they answer")
        started = [line for line in words if line[0] != "curl"]
        self.assertEqual(started, [["weir", "controller", "idle", "--rest", "127.0.0.1:8080"]])
        listen = ["--listen", "tcp:127.0.0.1:0"]
        with tempfile.TemporaryDirectory() as folder:
            idle = [WEIR, *started[0][1:-1], "127.0.0.1:0", *listen]
            with Process(idle, Path(folder)) as running:
                address = running.line(r"REST on (http://[0-9.:]+)")[1]
                ports = ["--port", "null:p1", "--port", "null:p2", "--control", "none"]
                to = ["--controller", f"tcp:127.0.0.1:{running.port()}"]
                with Process([WEIR, "switch", "--dpid", "1", *ports, *to], Path(folder)) as switch:
                    running.line("is ready")
                    answers = [request.answer(address) for request in requests]
                    self.assertEqual(switch.process.poll(), None, switch.lines)
        self.assertEqual([status for status, _ in answers], [200] * 7, answers)
        flows = next(text for _, text in answers if '"actions"' in text)
        self.assertEqual(ast.literal_eval(flows)["1"][0]["actions"], ["OUTPUT:2"])
        routers = answers[5][1]
        self.assertIn("172.16.20.1/24", routers)


def commands(block: str) -> List[str]:
    """The commands of a block; an open quote goes on in the next line."""
    found: List[str] = []
    for line in textwrap.dedent(block).splitlines():
        if found and found[-1].count("'") % 2:
            found[-1] += "\n" + line
        elif line.strip():
            found.append(line)
    return found


if __name__ == "__main__":
    unittest.main()
