"""A switch of OpenFlow 1.0 in a few lines of Python, and a controller as a process."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import List, Sequence, Tuple

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
PACKET_IN, PACKET_OUT, FLOW_MOD, BARRIER_REQUEST, BARRIER_REPLY = 10, 13, 14, 18, 19

#: Long enough for a loaded machine; nothing waits that long when all is well.
DEADLINE_S = 60.0


class FakeSwitch:
    """A switch that says what it is told to say."""

    def __init__(self, port: int, dpid: int = 1, ports: int = 3) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        self._socket.settimeout(DEADLINE_S)
        self._bytes = b""
        self.send(HELLO)
        self.expect(HELLO)
        xid, _ = self.expect(FEATURES_REQUEST)
        described = b"".join(
            struct.pack("!H6s16s24x", n, bytes([2, 0, 0, 0, dpid & 255, n]), b"p%d" % n)
            for n in range(1, ports + 1)
        )
        self.send(FEATURES_REPLY, struct.pack("!QIB3xII", dpid, 256, 1, 0, 0) + described, xid)

    def __enter__(self) -> "FakeSwitch":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, kind: int, body: bytes = b"", xid: int = 0) -> None:
        self._socket.sendall(struct.pack("!BBHI", 1, kind, 8 + len(body), xid) + body)

    def packet_in(self, data: bytes, in_port: int = 1, count: int = 1) -> None:
        body = struct.pack("!IHHBx", 0xFFFFFFFF, len(data), in_port, 0) + data
        message = struct.pack("!BBHI", 1, PACKET_IN, 8 + len(body), 0) + body
        self._socket.sendall(message * count)

    def receive(self) -> Tuple[int, int, bytes]:
        """The next message: type, xid and body."""
        while True:
            if len(self._bytes) >= 8:
                _, kind, length, xid = struct.unpack_from("!BBHI", self._bytes)
                if len(self._bytes) >= length:
                    body, self._bytes = self._bytes[8:length], self._bytes[length:]
                    return kind, xid, body
            chunk = self._socket.recv(65536)
            if not chunk:
                raise EOFError("the controller ended the connection")
            self._bytes += chunk

    def expect(self, wanted: int) -> Tuple[int, bytes]:
        """The next message of this type: xid and body. Echo requests are answered."""
        while True:
            kind, xid, body = self.receive()
            if kind == ECHO_REQUEST:
                self.send(ECHO_REPLY, body, xid)
            if kind == wanted:
                return xid, body

    def is_answered(self) -> None:
        """Waits until the controller has answered an echo request."""
        self.send(ECHO_REQUEST, b"are you there", 77)
        assert self.expect(ECHO_REPLY) == (77, b"are you there")


class Process:
    """A controller as a process; its lines are kept."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell's background job hands its deaf ear to Ctrl-C on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.lines: List[str] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.lines.append(line.rstrip())
                self._more.notify_all()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(DEADLINE_S)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join()
            assert self.process.stdout is not None
            self.process.stdout.close()

    def line(self, pattern: str) -> "re.Match[str]":
        """The first line with the pattern, waited for."""
        found: List["re.Match[str]"] = []

        def is_there() -> bool:
            found.extend(filter(None, (re.search(pattern, line) for line in self.lines)))
            return bool(found)

        with self._more:
            if not self._more.wait_for(is_there, DEADLINE_S):
                raise AssertionError(f"no line with {pattern!r} in {self.lines}")
        return found[0]

    def port(self) -> int:
        """The port that it listens on."""
        return int(self.line(r"listening on tcp:127\.0\.0\.1:(\d+)")[1])


def controller(file: Path, *options: str) -> Process:
    """``python3 -m weir run FILE`` on a port that the system chooses.

    It probes no silent switch, unless the options say so: a fake switch answers only while it is
    read from, so a slow machine would have its connection ended.
    """
    command = [sys.executable, "-m", "weir", "run", str(file), "--listen", "tcp:127.0.0.1:0"]
    return Process([*command, "--probe-interval", "0", *options], file.parent)
