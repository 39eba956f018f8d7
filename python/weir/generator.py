"""The client of ``weir gen serve``: requests as JSON lines over a Unix socket."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Type, Union

from weir.stream import Stream

#: A stream as an object or as a mapping of its words.
StreamLike = Union[Stream, Mapping[str, Any]]

#: How long the server may take to answer, beyond what a request itself waits for.
_SILENCE_MAX_S = 30.0

#: How long a launched server may take until it listens.
_LAUNCH_MAX_S = 30.0


class GeneratorError(Exception):
    """The server cannot be reached, or the connection failed."""


class Refused(GeneratorError):
    """The server refuses the request; the text says why. Nothing was changed."""


class Generator:
    """A generator on a control socket, with the verbs of TRex's client.

    Where ``ports`` is left out, all ports are meant. Use it as a context manager, or call
    :meth:`connect` and :meth:`disconnect`.
    """

    def __init__(self, control: Union[str, "os.PathLike[str]"]) -> None:
        self._control = os.fspath(control)
        self._socket: Optional[socket.socket] = None
        self._lines: Any = None
        self._process: Optional["subprocess.Popen[bytes]"] = None

    @classmethod
    def launch(
        cls,
        ports: Sequence[str],
        *,
        weir: Union[str, "os.PathLike[str]"] = "weir",
        arguments: Sequence[str] = (),
    ) -> "Generator":
        """Starts ``weir gen serve`` with these ports and connects.

        The server ends with the connection, and with this process, whatever ends that.
        ``arguments`` are further ones of the command, such as ``["--line-rate", "1G"]``.
        """
        # A socket that the server removes, in a folder that stays: killed, this process could not
        # remove one of its own. Only its owner may open the socket, and nobody knows its name.
        control = os.path.join(tempfile.gettempdir(), f"weir-{secrets.token_hex(16)}.sock")
        command = [os.fspath(weir), "gen", "serve", "--control", control, "--end-with-input"]
        command += arguments
        for port in ports:
            command += ["--port", port]
        generator = cls(control)
        try:
            generator._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            )
            generator._connect_when_ready(" ".join(command))
        except BaseException:
            # Ctrl-C too: nobody else knows the server.
            generator.disconnect()
            raise
        return generator

    def _connect_when_ready(self, command: str) -> None:
        """Connects to the launched server as soon as it listens."""
        assert self._process is not None
        end = time.monotonic() + _LAUNCH_MAX_S
        while True:
            try:
                self.connect()
                return
            except GeneratorError as error:
                code = self._process.poll()
                if code is None and time.monotonic() < end:
                    time.sleep(0.01)
                    continue
                said = f"ended with exit code {code}" if code is not None else str(error)
                raise GeneratorError(f"{command}: {said}") from error

    def __enter__(self) -> "Generator":
        if self._socket is None:
            self.connect()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.disconnect()

    def connect(self) -> Dict[str, Any]:
        """Connects; gives the server's version and ports."""
        self._close()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_SILENCE_MAX_S)
            connection.connect(self._control)
        except OSError as error:
            connection.close()
            raise GeneratorError(f"no generator at {self._control}: {error}") from error
        self._socket, self._lines = connection, connection.makefile("rb")
        return self._ask("connect")

    def disconnect(self) -> None:
        """Ends the connection, and the server where :meth:`launch` started it."""
        self._close()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_SILENCE_MAX_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None
            # The server's own doing, unless it was killed.
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._control)

    def get_port_info(self, ports: Optional[Iterable[int]] = None) -> List[Dict[str, Any]]:
        """Name, kind, address, link state and speed of each port."""
        return self._ask("get-port-info", ports=_list(ports))

    def add_streams(
        self,
        streams: Union[StreamLike, Iterable[StreamLike]],
        ports: Optional[Iterable[int]] = None,
    ) -> List[Dict[str, Any]]:
        """Adds streams, all of them or none; gives port and name of each.

        With ``ports``, each of these ports gets all of them; otherwise a stream goes to the port
        that it names, 0 where it names none.
        """
        if isinstance(streams, (Stream, Mapping)):
            streams = [streams]
        words = [s.words() if isinstance(s, Stream) else dict(s) for s in streams]
        return self._ask("add-streams", ports=_list(ports), streams=words)

    def remove_streams(
        self, names: Union[str, Iterable[str]], ports: Optional[Iterable[int]] = None
    ) -> int:
        """Takes the streams of these names away; gives how many there were."""
        names = [names] if isinstance(names, str) else list(names)
        return self._ask("remove-streams", ports=_list(ports), names=names)

    def remove_all_streams(self, ports: Optional[Iterable[int]] = None) -> int:
        """Takes all streams away; gives how many there were."""
        return self._ask("remove-streams", ports=_list(ports))

    def get_streams(self, ports: Optional[Iterable[int]] = None) -> List[Dict[str, Any]]:
        """The streams with all their words."""
        return self._ask("get-streams", ports=_list(ports))

    def reset(self, ports: Optional[Iterable[int]] = None) -> None:
        """Stops, takes all streams away and clears the counts."""
        self._ask("reset", ports=_list(ports))

    def start(
        self,
        ports: Optional[Iterable[int]] = None,
        mult: float = 1.0,
        duration: Optional[float] = None,
    ) -> None:
        """Starts the ports that have streams, with all rates times ``mult``, for ``duration`` s."""
        self._ask("start", ports=_list(ports), mult=mult, duration=duration)

    def update(self, ports: Optional[Iterable[int]] = None, mult: float = 1.0) -> None:
        """Other rates from now on: those of the streams times ``mult``."""
        self._ask("update", ports=_list(ports), mult=mult)

    def pause(self, ports: Optional[Iterable[int]] = None) -> None:
        """Sends nothing until :meth:`resume`."""
        self._ask("pause", ports=_list(ports))

    def resume(self, ports: Optional[Iterable[int]] = None) -> None:
        """Goes on after :meth:`pause`."""
        self._ask("resume", ports=_list(ports))

    def stop(self, ports: Optional[Iterable[int]] = None) -> None:
        """Stops."""
        self._ask("stop", ports=_list(ports))

    def wait_on_traffic(
        self,
        ports: Optional[Iterable[int]] = None,
        timeout: float = 60.0,
        rx_delay_ms: float = 100.0,
    ) -> None:
        """Waits until no port sends any more, and then for frames in flight.

        Refused after ``timeout`` seconds.
        """
        self._ask(
            "wait-on-traffic",
            silence=timeout + rx_delay_ms / 1e3,
            ports=_list(ports),
            timeout=timeout,
            rx_delay=rx_delay_ms / 1e3,
        )

    def get_stats(self) -> Dict[str, Any]:
        """All counts: ``["ports"][N]["tx"]`` and ``["rx"]``, and ``["streams"]``."""
        return self._ask("get-stats")

    def clear_stats(self) -> None:
        """Counts from zero again."""
        self._ask("clear-stats")

    def _ask(self, command: str, silence: float = 0.0, **words: Any) -> Any:
        if self._socket is None:
            raise GeneratorError("not connected; call connect()")
        request = {word: value for word, value in words.items() if value is not None}
        request["command"] = command
        try:
            self._socket.settimeout(_SILENCE_MAX_S + silence)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            value = None
            while True:
                line = self._lines.readline()
                if not line:
                    raise GeneratorError("the generator ended the connection")
                answer = json.loads(line)
                if answer == "done":
                    return value
                if "refused" in answer:
                    raise Refused(answer["refused"])
                value = answer["value"]
        except (OSError, ValueError) as error:
            self._close()
            raise GeneratorError(f"{self._control}: {error}") from error

    def _close(self) -> None:
        if self._socket is not None:
            self._lines.close()
            self._socket.close()
            self._socket, self._lines = None, None


def _list(ports: Optional[Iterable[int]]) -> Optional[List[int]]:
    return None if ports is None else list(ports)
