#!/usr/bin/env python3
"""Puts the requests of a suite to a REST server, and writes what it answers.

usage: ask.py OUT.jsonl SUITE VERSION HOST:PORT

One JSON line a request: id, method, path, body, status, and the answer (parsed where it is JSON).
It waits up to 30 s until the server knows switch 1, and ends with 1 when it does not.
"""
import http.client
import json
import select
import socket
import struct
import sys
import time

import cases

LIMIT_S = 15


def ask(address, method, path, body):
    """(status, content type, text); status 0 and why where there is no answer."""
    connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
    try:
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body.encode(), headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        return response.status, response.getheader("Content-Type") or "", text
    except (OSError, http.client.HTTPException) as error:
        return 0, "", str(error)
    finally:
        connection.close()


def wait(address, suite):
    """Whether the server knows the switch within 30 s."""
    path, needle = {
        "ofctl": ("/stats/switches", "1"),
        "topology": ("/v1.0/topology/switches", "0000000000000001"),
        "firewall": ("/firewall/module/status", "0000000000000001"),
        "qos": ("/qos/rules/all", "0000000000000001"),
        "router": ("/router/all", "0000000000000001"),
    }[suite]
    for _ in range(300):
        status, _, text = ask(address, "GET", path, "")
        # A refusal that names the switch knows it too.
        if status in (200, 501) and needle in text:
            return True
        time.sleep(0.1)
    return False


class Wires:
    """The other ends of the switch's ports, for suites whose answers are frames too."""

    def __init__(self, names):
        self.sockets = {}
        # Questions by ARP of this case: how often each is asked again is a server's choice.
        self.asked = []
        for name in names:
            end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            end.bind((name, 0))
            self.sockets[name] = end

    def take(self, expected, wait_s, sender=None):
        """The frames that come until there are as many as expected and none comes any more."""
        frames, end = [], time.monotonic() + wait_s
        while True:
            # What comes beside the expected ones comes soon.
            left = 0.15 if len(frames) >= expected else end - time.monotonic()
            ready = select.select(list(self.sockets.values()), [], [], max(left, 0))[0]
            if not ready:
                return sorted(frames, key=lambda frame: json.dumps(frame, sort_keys=True))
            for name, end_of_wire in self.sockets.items():
                if end_of_wire in ready:
                    # Not what was sent here.
                    data, address = end_of_wire.recvfrom(2048)
                    frame = {"at": name, **read_frame(data)}
                    question = frame.get("arp") == 1 and (frame["spa"], frame["tpa"])
                    if address[2] == socket.PACKET_OUTGOING or frame in frames \
                            or question in self.asked or question and name == sender:
                        continue
                    frames.append(frame)

    def step(self, method, path, body):
        """The frames that a frame makes the switch send; or those before are forgotten."""
        if method == "DRAIN":
            self.take(1 << 30, 0.3)
            self.asked.clear()
            return []
        name, expected = path.split("/")
        self.sockets[name].send(bytes.fromhex(body))
        frames = self.take(int(expected), 5 if expected != "0" else 0.3, name)
        self.asked += [(frame["spa"], frame["tpa"]) for frame in frames if frame.get("arp") == 1]
        return frames


def until(address, wires, path, what):
    """The answer once it has all the needles, for 30 s; frames are sent before each question."""
    for _ in range(60):
        for name, frame in what.get("frames", []):
            wires.sockets[name].send(bytes.fromhex(frame))
        status, kind, text = ask(address, "GET", path, "")
        if all(text.count(needle) >= count for needle, count in what["needles"].items()):
            break
        time.sleep(0.5)
    return status, kind, text


def read_frame(data):
    """What a frame says: addresses, and of ARP and IPv4 what a router sets."""
    def mac(octets):
        return octets.hex(":")
    frame = {"dst": mac(data[:6]), "src": mac(data[6:12])}
    kind, packet = data[12:14], data[14:]
    if kind == b"\x81\x00":
        frame["vlan"] = struct.unpack(">H", packet[:2])[0]
        kind, packet = packet[2:4], packet[4:]
    if kind == b"\x08\x06":
        frame.update(arp=struct.unpack(">H", packet[6:8])[0], sha=mac(packet[8:14]),
                     spa=socket.inet_ntoa(packet[14:18]), tha=mac(packet[18:24]),
                     tpa=socket.inet_ntoa(packet[24:28]))
    elif kind == b"\x08\x00":
        frame.update(ttl=packet[8], protocol=packet[9], nw_src=socket.inet_ntoa(packet[12:16]),
                     nw_dst=socket.inet_ntoa(packet[16:20]))
        payload = packet[20:struct.unpack(">H", packet[2:4])[0]]
        if packet[9] == 1:
            frame.update(icmp=payload[0], code=payload[1])
        if packet[9] == 17 or payload[:1] in (b"\x00", b"\x08"):
            frame["payload"] = payload[4:].hex()
        else:
            # How much of the packet a complaint repeats is the router's choice.
            frame["about"] = payload[8:36].hex()
    return frame


def main():
    out, suite, version, address = sys.argv[1:]
    if not wait(address, suite):
        print(f"{address} does not know switch 1", file=sys.stderr)
        return 1
    ends = {"router": ["p1", "p2", "p3"], "topology": ["p1", "p2"]}
    wires = Wires(ends.get(suite, []))
    with open(out, "a") as results:
        for name, steps in cases.SUITES[suite](version):
            # Ryu loses the switch over what it cannot encode; the next case begins with it again,
            # and with empty tables.
            if not wait(address, suite):
                print(f"{address} lost switch 1 before {name}", file=sys.stderr)
                return 1
            for method, path, body in cases.RESET.get(suite, []):
                ask(address, method, path, body)
            wires.asked.clear()
            for index, (method, path, body) in enumerate(steps):
                if method in ("FRAME", "DRAIN"):
                    status, kind, text = 200, "", wires.step(method, path, body)
                elif method == "UNTIL":
                    status, kind, text = until(address, wires, path, json.loads(body))
                else:
                    status, kind, text = ask(address, method, path, body)
                answer = text
                if kind.startswith("application/json"):
                    try:
                        answer = json.loads(text) if text else ""
                    except ValueError:
                        pass
                results.write(json.dumps({
                    "id": f"{version}/{name}/{index}", "method": method, "path": path,
                    "body": body, "status": status, "answer": answer}) + "\n")
    return 0


sys.exit(main())
