"""A network that an app describes: its description, and ``--network`` with real switches."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import ModuleType
from typing import Iterator, List

import weir
from fake_switch import DEADLINE_S, Process
from weir.network import of_module

WEIR = os.environ.get("WEIR", "weir")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

IS_ROOT = os.geteuid() == 0


class DescriptionTest(unittest.TestCase):
    def test_what_was_said_is_described(self) -> None:
        network = weir.Network()
        s1 = network.switch("s1", dpid=0x1, protocols="OpenFlow10,OpenFlow13")
        h1 = network.host("h1", ip="10.0.0.1", mac="02:00:00:00:00:01", gateway="10.0.0.254")
        network.link(f"{s1}:3", h1)
        self.assertEqual(
            network.description(),
            {
                "switch": [{"name": "s1", "dpid": 1, "protocols": ["OpenFlow10", "OpenFlow13"]}],
                "host": [
                    {
                        "name": "h1",
                        "ip": "10.0.0.1",
                        "mac": "02:00:00:00:00:01",
                        "gateway": "10.0.0.254",
                    }
                ],
                "link": [["s1:3", "h1"]],
            },
        )

    def test_a_module_has_one_network(self) -> None:
        module = ModuleType("app")
        with self.assertRaisesRegex(weir.WeirError, "describes none"):
            of_module(module)
        first = weir.Network()
        vars(module).update(one=first, same=first)
        self.assertIs(of_module(module), first)
        vars(module)["two"] = weir.Network()
        with self.assertRaisesRegex(weir.WeirError, "has 2 networks"):
            of_module(module)


class RealNetworkTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        before = os.environ.get("WEIR_NET_DIR")
        os.environ["WEIR_NET_DIR"] = str(self.folder / "nets")
        self.addCleanup(
            lambda: os.environ.pop("WEIR_NET_DIR")
            if before is None
            else os.environ.update(WEIR_NET_DIR=before)
        )

    def net(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [WEIR, "net", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)

    @contextlib.contextmanager
    def example(self, *command: str) -> Iterator[Process]:
        with Process(command, self.folder) as running:
            running.line("^network hub.network is there")
            yield running

    def reached(self) -> None:
        """All hosts reach each other before the deadline."""
        tries: List[str] = []
        for _ in range(60):
            done = self.net("ping-all", "--timeout", "1")
            if done.returncode == 0:
                return
            tries.append(done.stdout + done.stderr)
        self.fail(tries[-1])

    @unittest.skipUnless(IS_ROOT, "needs root: hosts are network namespaces")
    def test_all_hosts_reach_each_other_however_it_is_started(self) -> None:
        path = str(EXAMPLES / "hub_network.py")
        for command in [
            [WEIR, "run", "--python", sys.executable, path, "--network"],
            [sys.executable, path, "--network"],
        ]:
            with self.example(*command) as running:
                self.reached()
                self.assertIn("h3", self.net("list").stdout)
                self.assertEqual(running.end(signal.SIGINT), 0, running.lines)
            self.assertEqual(self.net("list").stdout, "no network runs\n")
            self.assertEqual(self.net("clean").stdout, "nothing was left behind\n")

    @unittest.skipUnless(IS_ROOT, "needs root: hosts are network namespaces")
    def test_a_killed_run_leaves_nothing_and_a_killed_network_ends_the_run(self) -> None:
        path = str(EXAMPLES / "hub_network.py")
        command = [sys.executable, "-m", "weir", "run", path, "--network"]
        with self.example(*command) as running:
            running.process.kill()
            running.process.wait(DEADLINE_S)
            for _ in range(1000):
                if self.net("list").stdout == "no network runs\n":
                    break
            self.assertEqual(self.net("list").stdout, "no network runs\n")
        with self.example(*command) as running:
            listed = self.net("list", "--json").stdout
            pid = int(listed.split('"pid":')[1].split(",")[0])
            os.kill(pid, signal.SIGKILL)
            running.line("network hub.network has ended")
            self.assertEqual(running.process.wait(DEADLINE_S), 1)
        self.assertEqual(self.net("clean").stdout, "removed: hub-network\n")

    @unittest.skipUnless(IS_ROOT, "needs root: hosts are network namespaces")
    def test_links_and_hosts_are_discovered_as_they_come_and_go(self) -> None:
        path = self.folder / "app.py"
        hub = (EXAMPLES / "hub_network.py").read_text()
        path.write_text(
            hub.replace(
                "class Hub(weir.App):",
                """class Hub(weir.App):
    def link_add(self, link: weir.Link) -> None:
        print("link", link.src, link.dst, len(self.controller.links()), flush=True)

    def link_delete(self, link: weir.Link) -> None:
        print("no link", link, flush=True)

    def host_add(self, host: weir.Host) -> None:
        assert host in self.controller.hosts()
        print("host", host.mac, host.port, flush=True)
""",
            )
        )
        command = [sys.executable, "-m", "weir", "run", str(path), "--network", "--shards", "2"]
        with Process(command, self.folder) as running:
            # Each end has a shard of its own: either may be known first.
            running.line("^link 0000000000000001:3 0000000000000002:1")
            running.line("^link 0000000000000002:1 0000000000000001:3")
            running.line("^link .* 2$")
            # What a host says before it is known that no switch stands there shows no host.
            seen = "host 02:00:00:00:00:03 0000000000000002:2"
            for _ in range(60):
                self.reached()
                if seen in running.lines:
                    break
                time.sleep(0.5)
            running.line(f"^{seen}$")
            self.assertEqual(self.net("port-down", "s1", "s2").returncode, 0)
            running.line("^no link 0000000000000001:3 -> 0000000000000002:1")
            told = [line for line in running.lines if line.startswith("host 02:00:00:00:00:03")]
            self.assertEqual(len(told), 1, "once, however many shards there are")

    def test_what_cannot_be_made_says_why(self) -> None:
        hub = "import weir\nclass Hub(weir.App): pass\n"
        for text, said in [
            (hub, "write `network = weir.Network\\(\\)`"),
            (hub + "n = weir.Network()\n", "it has no switch"),
            (hub + "n = weir.Network()\nn.switch('s1')\nn.link('s1', 'h1')\n", "host \"h1\""),
            (hub + "n = weir.Network()\nn.switch(b's1')\n", "bytes is not JSON"),
        ]:
            path = self.folder / "app.py"
            path.write_text(text)
            command = [sys.executable, "-m", "weir", "run", str(path), "--network"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, said)
            self.assertNotIn("Traceback", done.stderr)
        nowhere = {**os.environ, "WEIR": "/no/such/weir"}
        path.write_text(hub + "n = weir.Network()\n")
        done = subprocess.run(command, capture_output=True, text=True, env=nowhere)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/weir", done.stderr)


if __name__ == "__main__":
    unittest.main()
