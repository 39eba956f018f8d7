"""The client against a real ``weir gen serve`` on a cable in memory.

``WEIR`` names the program.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any
from unittest import mock

from weir import Generator, GeneratorError, Refused, Stream

WEIR = os.environ.get("WEIR", "weir")
REAL_POPEN = subprocess.Popen


def launch(name: str) -> Generator:
    ports = [f"memory:{name}?end=a", f"memory:{name}?end=b"]
    return Generator.launch(ports, weir=WEIR, arguments=["--line-rate", "1G"])


def runs(pid: int) -> bool:
    """Whether the process is there, and no mere entry that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class GeneratorTest(unittest.TestCase):
    def test_streams_are_sent_counted_and_their_delay_measured(self) -> None:
        with launch("python-counts") as gen:
            stream = Stream(packet="eth/ipv4/udp(dst=53)", size=128, rate="10kpps")
            stream.mode = {"burst": 500}
            added = gen.add_streams(stream, ports=[0, 1])
            self.assertEqual([s["port"] for s in added], [0, 1])
            gen.start(mult=2.0)
            gen.wait_on_traffic()
            stats = gen.get_stats()
            for port in stats["ports"]:
                self.assertEqual(port["tx"]["packets"], 500, port)
                self.assertEqual(port["rx"]["packets"], 500, port)
                self.assertEqual(port["tx"]["bytes"], 500 * 128, port)
            self.assertEqual([s["sent"] for s in stats["streams"]], [500, 500])
            for stream in stats["streams"]:
                self.assertEqual(stream["lost"], 0)
                [arrival] = stream["arrivals"]
                self.assertEqual(arrival["port"], 1 - stream["port"])
                report = arrival["report"]
                self.assertEqual((report["received"], report["duplicated"]), (500, 0))
                self.assertGreater(report["delay"]["max_ns"], 0)
            gen.clear_stats()
            self.assertEqual(gen.get_stats()["ports"][0]["tx"]["packets"], 0)

    def test_a_load_is_changed_paused_and_stopped_while_it_runs(self) -> None:
        with launch("python-live") as gen:
            gen.add_streams({"rate": "1kpps", "name": "slow"})
            gen.start()
            gen.update(mult=2.0)
            gen.pause()
            gen.resume()
            with self.assertRaisesRegex(Refused, "still sending"):
                gen.wait_on_traffic(timeout=0.01)
            gen.stop()
            gen.wait_on_traffic()
            self.assertFalse(gen.get_stats()["ports"][0]["transmitting"])

    def test_streams_are_added_whole_or_not_at_all(self) -> None:
        with launch("python-whole") as gen:
            gen.add_streams([Stream(name="a"), Stream(name="b", size={"imix": "simple"})])
            with self.assertRaisesRegex(Refused, "a"):
                gen.add_streams([Stream(name="c"), Stream(name="a")])
            with self.assertRaisesRegex(Refused, "rat"):
                gen.add_streams({"rat": "80%"})
            with self.assertRaisesRegex(Refused, "2 ports"):
                gen.add_streams(Stream(), ports=[7])
            self.assertEqual([s["name"] for s in gen.get_streams()], ["a", "b"])
            self.assertEqual(gen.remove_streams("a"), 1)
            with self.assertRaisesRegex(Refused, '"a"'):
                gen.remove_streams("a")
            self.assertEqual(gen.remove_all_streams(), 1)
            with self.assertRaisesRegex(Refused, "no streams"):
                gen.start()
            gen.add_streams(Stream(name="d"))
            gen.reset()
            self.assertEqual(gen.get_streams(), [])

    def test_an_interrupted_launch_leaves_no_server(self) -> None:
        started = []

        def popen(*arguments: Any, **words: Any) -> "subprocess.Popen[bytes]":
            started.append(REAL_POPEN(*arguments, **words))
            return started[0]

        # Ctrl-C, while the server is waited for.
        interrupted = mock.patch.object(Generator, "connect", side_effect=KeyboardInterrupt)
        with mock.patch("subprocess.Popen", popen), interrupted:
            with self.assertRaises(KeyboardInterrupt):
                launch("python-interrupted")
        [server] = started
        code = server.poll()
        if code is None:
            server.kill()
            server.wait()
        self.assertIsNotNone(code, "the server runs on")

    def test_the_server_ends_with_a_client_that_is_killed(self) -> None:
        program = (
            "import sys, time\n"
            "from weir import Generator\n"
            "gen = Generator.launch(['null:killed'], weir=sys.argv[1])\n"
            "print(gen._process.pid, gen._control, flush=True)\n"
            "time.sleep(600)\n"
        )
        command = [sys.executable, "-c", program, WEIR]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            pid, control = client.stdout.readline().split()
            server = int(pid)
            self.assertTrue(runs(server) and os.path.exists(control))
            client.kill()
        end = time.monotonic() + 30.0
        while runs(server):
            if time.monotonic() > end:
                os.kill(server, signal.SIGKILL)
                self.fail("the server runs on")
            time.sleep(0.01)
        # The folder of all temporary files is nobody's, and stays.
        self.assertFalse(os.path.exists(control))
        self.assertEqual(os.path.dirname(control), tempfile.gettempdir())

    def test_a_stream_says_what_is_late_and_what_is_checked(self) -> None:
        with launch("python-late") as gen:
            stream = Stream(mode={"burst": 10}, rate="1kpps", late_after_us=0.0)
            stream.verify_checksums = True
            gen.add_streams(stream, ports=[0])
            gen.start()
            gen.wait_on_traffic()
            [arrival] = gen.get_stats()["streams"][0]["arrivals"]
            report = arrival["report"]
            self.assertEqual((report["received"], report["late"], report["corrupted"]), (10, 10, 0))

    def test_ports_and_errors_are_told(self) -> None:
        with launch("python-ports") as gen:
            info = gen.get_port_info([1])
            self.assertEqual([port["kind"] for port in info], ["memory"])
            self.assertTrue(info[0]["link_up"])
            self.assertIn("version", gen.connect())
        with self.assertRaisesRegex(GeneratorError, "not connected"):
            gen.get_stats()
        with self.assertRaisesRegex(GeneratorError, "exit code"):
            Generator.launch(["nonsense:x"], weir=WEIR)


if __name__ == "__main__":
    unittest.main()
