"""Libraries of Ryu that Weir has of its own: packets, the web server, WebSockets."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import unittest
from typing import Any, Iterable, List, Tuple

from weir import aliases
from weir.ryu.app.web_server import WebServer
from weir.ryu.app.web_socket import accept
from weir.testing import frame

aliases.install()

A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"


def parsed(data: bytes) -> Any:
    from ryu.lib.packet import packet  # type: ignore[import-not-found]

    return packet.Packet(data)


class Packets(unittest.TestCase):
    def test_a_packet_is_read_only_as_far_as_asked(self) -> None:
        from ryu.lib.packet import ethernet, ipv4, tcp

        data = frame(B, A).ipv4("10.0.0.1", "10.0.0.2").tcp(1000, 80).payload(b"x").build()
        packet = parsed(data)
        self.assertEqual(packet.get_protocols(ethernet.ethernet)[0].src, A)
        self.assertEqual(len(packet._protocols), 1)
        self.assertEqual(packet.get_protocol(ipv4.ipv4).dst, "10.0.0.2")
        self.assertEqual(packet.get_protocol(tcp.tcp).dst_port, 80)
        self.assertIn(tcp.tcp, packet)
        self.assertNotIn(ethernet, packet)

    def test_packets_are_made_as_they_were_read(self) -> None:
        base = frame(B, A).ipv4("10.0.0.1", "10.0.0.2")
        frames = [
            base.tcp(1000, 80).payload(bytes(range(1, 60))).build(),
            base.udp(1000, 5000).payload(bytes(range(1, 60))).build(),
            base.echo_request(7, 1).payload(bytes(range(1, 60))).build(),
            frame(B, A).vlan(5, 3).arp(1, A, "10.0.0.1", B, "10.0.0.2").build(),
        ]
        for data in frames:
            packet = parsed(data)
            packet.protocols
            packet.serialize()
            self.assertEqual(bytes(packet.data)[: len(data)], data, str(packet))

    def test_every_beginning_of_a_packet_is_read_without_an_error(self) -> None:
        base = frame(B, A).vlan(5).ipv4("10.0.0.1", "10.0.0.2")
        for whole in (base.tcp(1, 2), base.udp(1, 2), base.echo_request(1, 2)):
            data = whole.build()
            for size in range(len(data)):
                self.assertIsInstance(str(parsed(data[:size])), str)

    def test_text_and_json_are_as_by_ryu(self) -> None:
        from ryu.lib.packet import arp, packet

        made = arp.arp_ip(arp.ARP_REPLY, A, "10.0.0.1", B, "10.0.0.2")
        self.assertEqual(
            str(made),
            "arp(dst_ip='10.0.0.2',dst_mac='02:00:00:00:00:02',hlen=6,hwtype=1,opcode=2,plen=4,"
            "proto=2048,src_ip='10.0.0.1',src_mac='02:00:00:00:00:01')",
        )
        again = packet.Packet.from_jsondict({"protocols": [made.to_jsondict()]})
        self.assertEqual(str(again), str(made))


class Server(unittest.TestCase):
    def setUp(self) -> None:
        self.server = WebServer(("127.0.0.1", 0), self.answer)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def tearDown(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def answer(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/raises":
            raise RuntimeError("of the app")
        if environ["PATH_INFO"] == "/exits":
            raise SystemExit(3)
        if environ["PATH_INFO"] == "/socket":
            ws = accept(environ)
            message = ws.wait() if ws else None
            while ws and message is not None:
                ws.send(message)
                message = ws.wait()
            environ["weir.is_over"] = True
            return []
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ["REQUEST_METHOD"].encode(), environ["wsgi.input"].read()]

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Any = {}
    ) -> Tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer

    def test_requests_are_answered(self) -> None:
        self.assertEqual(self.ask("PUT", "/a", b"body"), (200, b"PUTbody"))
        self.assertEqual(self.ask("HEAD", "/a")[0], 200)

    def test_an_app_that_raises_costs_its_own_request(self) -> None:
        for path in ("/raises", "/exits"):
            with self.assertLogs("ryu.app.wsgi", "ERROR"):
                self.assertEqual(self.ask("GET", path)[0], 500)
        self.assertEqual(self.ask("GET", "/a")[0], 200)

    def test_bodies_are_bounded(self) -> None:
        self.assertEqual(self.ask("GET", "/a", b"", {"Content-Length": str(1 << 40)})[0], 413)
        self.assertEqual(self.ask("GET", "/a", b"", {"Content-Length": "x"})[0], 400)
        self.assertEqual(self.ask("GET", "/a", b"", {"Transfer-Encoding": "chunked"})[0], 411)

    def web_socket(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.addCleanup(connection.close)
        connection.sendall(
            b"GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        # The example of RFC 6455, 1.3.
        self.assertIn(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", head)
        return connection

    def read(self, connection: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = connection.recv(size - len(data))
            self.assertTrue(more)
            data += more
        return data

    def test_messages_of_all_sizes_come_back(self) -> None:
        connection = self.web_socket()
        for size in (0, 1, 125, 126, 70_000):
            text = b"a" * size
            mask = b"\x01\x02\x03\x04"
            masked = bytes(octet ^ mask[index % 4] for index, octet in enumerate(text))
            length = struct.pack("!BQ", 0xFF, size)
            connection.sendall(b"\x81" + length + mask + masked)
            head = {0: 2, 1: 2, 125: 2, 126: 4, 70_000: 10}[size]
            self.assertEqual(self.read(connection, head + size)[head:], text)

    def test_what_breaks_the_protocol_is_closed_with_its_code(self) -> None:
        broken: List[Tuple[bytes, int]] = [
            (b"\x81\x01a", 1002),
            (b"\x83\x80\0\0\0\0", 1002),
            (b"\x80\x80\0\0\0\0", 1002),
            (b"\x81\xff" + struct.pack("!Q", 1 << 40), 1009),
            (b"\x81\x81\0\0\0\0\xff", 1007),
        ]
        for data, code in broken:
            connection = self.web_socket()
            connection.sendall(data)
            self.assertEqual(self.read(connection, 4), b"\x88\x02" + struct.pack("!H", code))
