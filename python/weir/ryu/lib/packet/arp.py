"""``ryu.lib.packet.arp``."""

from __future__ import annotations

import socket
import struct
from typing import Any

from weir.ryu.lib import addrconv
from weir.ryu.lib.packet import ether_types as ether
from weir.ryu.lib.packet.packet_base import PacketBase, Parsed

ARP_HW_TYPE_ETHERNET = 1
ARP_REQUEST = 1
ARP_REPLY = 2
ARP_REV_REQUEST = 3
ARP_REV_REPLY = 4


class arp(PacketBase):
    """ARP (RFC 826); addresses are text."""

    _PACK_STR = "!HHBBH6s4s6s4s"
    _MIN_LEN = 28
    _TYPE = {"ascii": ["src_mac", "src_ip", "dst_mac", "dst_ip"]}

    def __init__(
        self,
        hwtype: int = ARP_HW_TYPE_ETHERNET,
        proto: int = ether.ETH_TYPE_IP,
        hlen: int = 6,
        plen: int = 4,
        opcode: int = ARP_REQUEST,
        src_mac: str = "ff:ff:ff:ff:ff:ff",
        src_ip: str = "0.0.0.0",
        dst_mac: str = "ff:ff:ff:ff:ff:ff",
        dst_ip: str = "0.0.0.0",
    ) -> None:
        self.hwtype, self.proto, self.hlen, self.plen = hwtype, proto, hlen, plen
        self.opcode = opcode
        self.src_mac, self.src_ip, self.dst_mac, self.dst_ip = src_mac, src_ip, dst_mac, dst_ip

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        (hwtype, proto, hlen, plen, opcode, src_mac, src_ip, dst_mac, dst_ip) = _UNPACK(buf)
        ntoa = socket.inet_ntoa
        header = cls(
            hwtype, proto, hlen, plen, opcode,
            src_mac.hex(":"), ntoa(src_ip), dst_mac.hex(":"), ntoa(dst_ip),
        )  # fmt: skip
        return header, None, buf[28:]

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        mac, ip = addrconv.mac.text_to_bin, addrconv.ipv4.text_to_bin
        return struct.pack(
            self._PACK_STR, self.hwtype, self.proto, self.hlen, self.plen, self.opcode,
            mac(self.src_mac), ip(self.src_ip), mac(self.dst_mac), ip(self.dst_ip),
        )  # fmt: skip


_UNPACK = struct.Struct(arp._PACK_STR).unpack_from


def arp_ip(opcode: int, src_mac: str, src_ip: str, dst_mac: str, dst_ip: str) -> arp:
    """ARP for IPv4 over Ethernet."""
    head = (ARP_HW_TYPE_ETHERNET, ether.ETH_TYPE_IP, 6, 4, opcode)
    return arp(*head, src_mac, src_ip, dst_mac, dst_ip)
