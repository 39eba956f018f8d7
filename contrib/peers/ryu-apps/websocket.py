"""A client of WebSockets (RFC 6455) for the tests, as small as they need."""
import ast
import base64
import json
import os
import socket
import struct


class Client:
    """A connection; text messages only."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            octet = self.socket.recv(1)
            if not octet:
                break
            head += octet
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode())

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(
            ">H", len(data))
        self.socket.sendall(b"\x81" + size + mask + bytes(
            octet ^ mask[index % 4] for index, octet in enumerate(data)))

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def take(self):
        """The next message, parsed where it is JSON; none when the other side has closed."""
        try:
            first, size = self._exactly(2)
            if size == 126:
                size = struct.unpack(">H", self._exactly(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._exactly(8))[0]
            data = self._exactly(size)
        except OSError:
            return None
        if first & 0x0F == 8:
            return None
        if data.startswith(b"b'"):
            # Ryu sends JSON-RPC in this form on Python 3, which other clients do not understand.
            data = ast.literal_eval(data.decode())
        try:
            return json.loads(data)
        except ValueError:
            return data.decode()

    def call(self, text):
        """Sends a request, and gives the answer."""
        self.send(text)
        answer = self.take()
        self.socket.close()
        return answer
