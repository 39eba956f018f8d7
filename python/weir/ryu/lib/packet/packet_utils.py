"""``ryu.lib.packet.packet_utils``: checksums."""

from __future__ import annotations

import array
import socket
import struct
from typing import Any

from weir.ryu.lib import addrconv


def carry_around_add(a: int, b: int) -> int:
    """The sum in ones' complement of 16 bits."""
    total = a + b
    return (total & 0xFFFF) + (total >> 16)


def checksum(data: Any) -> int:
    """The checksum of the internet (RFC 1071)."""
    octets = bytes(data)
    if len(octets) % 2:
        octets += b"\0"
    total = sum(array.array("H", octets))
    total = (total & 0xFFFF) + (total >> 16)
    total += total >> 16
    return socket.ntohs(~total & 0xFFFF)


def checksum_ip(ipvx: Any, length: int, payload: bytes) -> int:
    """The checksum of a payload with the pseudo header of IP."""
    if ipvx.version == 4:
        src, dst = addrconv.ipv4.text_to_bin(ipvx.src), addrconv.ipv4.text_to_bin(ipvx.dst)
        header = struct.pack("!4s4sxBH", src, dst, ipvx.proto, length)
    elif ipvx.version == 6:
        src, dst = addrconv.ipv6.text_to_bin(ipvx.src), addrconv.ipv6.text_to_bin(ipvx.dst)
        header = struct.pack("!16s16sI3xB", src, dst, length, ipvx.nxt)
    else:
        raise ValueError(f"Unknown IP version {ipvx.version}")
    return checksum(header + payload)


def fletcher_checksum(data: Any, offset: int) -> int:
    """The checksum of Fletcher (RFC 1008), for the two bytes at ``offset``."""
    octets = bytearray(data)
    octets[offset : offset + 2] = b"\0\0"
    c0 = c1 = 0
    for octet in octets:
        c0 = (c0 + octet) % 255
        c1 = (c1 + c0) % 255
    x = ((len(octets) - offset - 1) * c0 - c1) % 255
    if x <= 0:
        x += 255
    y = 510 - c0 - x
    if y > 255:
        y -= 255
    return x << 8 | y
