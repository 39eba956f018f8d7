"""WebSockets (RFC 6455), the side of a server: a handshake, and messages with a bound."""

from __future__ import annotations

import base64
import hashlib
import socket
import struct
import threading
from typing import Any, List, Optional, Tuple, Union

from weir.ryu.lib.scheduler import SCHEDULER

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MESSAGE_MAX = 4 << 20
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10


class _Broken(Exception):
    """The peer breaks the protocol; the code of the close frame."""


def accept(environ: Any) -> "Optional[WebSocket]":
    """The WebSocket of a request, whose handshake is sent; none where it is no handshake."""
    key = environ.get("HTTP_SEC_WEBSOCKET_KEY")
    upgrade = environ.get("HTTP_UPGRADE", "").lower()
    if key is None or upgrade != "websocket" or environ.get("REQUEST_METHOD") != "GET":
        return None
    connection, stream = environ["weir.connection"]
    digest = base64.b64encode(hashlib.sha1((key + _GUID).encode("latin-1")).digest()).decode()
    connection.settimeout(None)
    connection.sendall(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {digest}\r\n\r\n".encode("latin-1")
    )
    return WebSocket(connection, stream, environ)


class WebSocket:
    """A WebSocket: ``wait`` and ``send``, from any thread."""

    def __init__(self, connection: socket.socket, stream: Any, environ: Any) -> None:
        self.environ, self.path = environ, environ.get("PATH_INFO")
        self._connection, self._stream = connection, stream
        self._lock = threading.Lock()
        self._is_open = True

    def send(self, message: Union[str, bytes]) -> None:
        """Sends a message. Raises OSError when the connection is over."""
        if not self._is_open:
            raise BrokenPipeError("the WebSocket is closed")
        is_text = isinstance(message, str)
        data = message.encode() if isinstance(message, str) else bytes(message)
        self._send(_TEXT if is_text else _BINARY, data)

    def _send(self, opcode: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
        with self._lock:
            self._connection.sendall(head + data)

    def wait(self) -> Union[str, bytes, None]:
        """The next message; none when the connection is over."""
        parts: List[bytes] = []
        kind = _TEXT
        while self._is_open:
            try:
                with SCHEDULER.blocking():
                    is_last, opcode, data = self._frame(_MESSAGE_MAX - sum(map(len, parts)))
                if opcode == _PING:
                    self._send(_PONG, data)
                elif opcode == _CLOSE:
                    self.close()
                elif opcode in (_TEXT, _BINARY, _CONTINUATION):
                    if (opcode == _CONTINUATION) != bool(parts):
                        raise _Broken(1002)
                    kind = opcode or kind
                    parts.append(data)
                    if is_last:
                        whole = b"".join(parts)
                        return whole.decode() if kind == _TEXT else whole
                elif opcode != _PONG:
                    raise _Broken(1002)
            except _Broken as broken:
                self.close(broken.args[0])
            except UnicodeDecodeError:
                self.close(1007)
            except (OSError, EOFError, ValueError):
                self._is_open = False
        return None

    def _frame(self, size_max: int) -> Tuple[bool, int, bytes]:
        first, second = self._read(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._read(8))
        opcode = first & 0x0F
        if not second & 0x80 or first & 0x70 or opcode >= _CLOSE and size > 125:
            raise _Broken(1002)
        if size > size_max:
            raise _Broken(1009)
        mask, data = self._read(4), self._read(size)
        key = int.from_bytes(mask * (size // 4 + 1), "big") >> 8 * (4 - size % 4)
        plain = (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")
        return bool(first & 0x80), opcode, plain

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def close(self, code: int = 1000) -> None:
        """Closes it."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._send(_CLOSE, struct.pack("!H", code))
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
