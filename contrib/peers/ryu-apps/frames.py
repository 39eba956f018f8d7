"""Frames that hosts and switches of a test send, and what those say that come back."""
import socket
import struct

BROADCAST = "ff:ff:ff:ff:ff:ff"
HOSTS = {number: (f"02:00:00:00:02:0{number}", f"10.0.0.{number}") for number in range(1, 4)}


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ethernet(dst, src, kind, payload):
    return mac(dst) + mac(src) + struct.pack(">H", kind) + payload


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def arp(sender, target, reply=False):
    """Host `sender` asks for the address of host `target`, or answers it."""
    (sha, spa), (tha, tpa) = HOSTS[sender], HOSTS[target]
    payload = struct.pack(">HHBBH", 1, 0x0800, 6, 4, 2 if reply else 1)
    payload += mac(sha) + socket.inet_aton(spa)
    payload += mac(tha if reply else "00:00:00:00:00:00") + socket.inet_aton(tpa)
    return ethernet(tha if reply else BROADCAST, sha, 0x0806, payload)


def ipv4(src, dst, protocol, payload, ttl=64, options=b""):
    head = struct.pack(">BBHHHBB", 0x45 + len(options) // 4, 0,
                       20 + len(options) + len(payload), 1, 0, ttl, protocol)
    addresses = socket.inet_aton(src) + socket.inet_aton(dst)
    return head + struct.pack(">H", checksum(head + b"\0\0" + addresses + options)) \
        + addresses + options + payload


def udp(sender, target, size=64):
    """A datagram from host `sender` to host `target`."""
    (smac, src), (dmac, dst) = HOSTS[sender], HOSTS[target]
    payload = struct.pack(">HHHH", 4000, 5000, 8 + size, 0) + bytes(size)
    return ethernet(dmac, smac, 0x0800, ipv4(src, dst, 17, payload))


def igmp(sender, kind, group, dst):
    """A message of IGMP 2: 0x11 query, 0x16 report, 0x17 leave."""
    smac, src = HOSTS[sender]
    body = struct.pack(">BBH", kind, 100 if kind == 0x11 else 0, 0) + socket.inet_aton(group)
    body = body[:2] + struct.pack(">H", checksum(body)) + body[4:]
    low = socket.inet_aton(dst)
    to = f"01:00:5e:{low[1] & 0x7F:02x}:{low[2]:02x}:{low[3]:02x}"
    return ethernet(to, smac, 0x0800, ipv4(src, dst, 2, body, 1, b"\x94\x04\0\0"))


def lacp(port, state=0x3D):
    """A LACPDU of a partner whose timeout is long (`state` 0x3D: active, in sync)."""
    system = "02:00:00:00:02:f0"
    actor = struct.pack(">BBH6sHHHB3x", 1, 20, 0xFFFF, mac(system), 1, 0xFF, port, state)
    partner = struct.pack(">BBH6sHHHB3x", 2, 20, 0, bytes(6), 0, 0, 0, 0)
    collector = struct.pack(">BBH12x", 3, 16, 0)
    body = b"\x01\x01" + actor + partner + collector + bytes(52)
    return ethernet("01:80:c2:00:00:02", f"02:00:00:00:03:0{port}", 0x8809, body)


def text(data):
    """A frame as one line: addresses, type, and the rest in hexadecimal."""
    kind = struct.unpack(">H", data[12:14])[0]
    return f"{data[6:12].hex(':')} > {data[:6].hex(':')} {kind:#06x} {data[14:].hex()}"
