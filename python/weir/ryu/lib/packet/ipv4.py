"""``ryu.lib.packet.ipv4``."""

from __future__ import annotations

import socket
import struct
from typing import Any

from weir.ryu.lib import addrconv
from weir.ryu.lib.packet import packet_utils
from weir.ryu.lib.packet.packet_base import PacketBase, Parsed

IPV4_ADDRESS_PACK_STR = "!I"
IPV4_ADDRESS_LEN = 4
IPV4_PSEUDO_HEADER_PACK_STR = "!4s4s2xHH"


class ipv4(PacketBase):
    """IPv4 (RFC 791); addresses are text. A length of 0 and the checksum are filled in."""

    _PACK_STR = "!BBHHHBBH4s4s"
    _MIN_LEN = 20
    _TYPE = {"ascii": ["src", "dst"]}

    def __init__(
        self,
        version: int = 4,
        header_length: int = 5,
        tos: int = 0,
        total_length: int = 0,
        identification: int = 0,
        flags: int = 0,
        offset: int = 0,
        ttl: int = 255,
        proto: int = 0,
        csum: int = 0,
        src: str = "10.0.0.1",
        dst: str = "10.0.0.2",
        option: Any = None,
    ) -> None:
        self.version, self.header_length, self.tos = version, header_length, tos
        self.total_length, self.identification = total_length, identification
        self.flags, self.offset, self.ttl, self.proto = flags, offset, ttl, proto
        self.csum, self.src, self.dst, self.option = csum, src, dst, option

    def __len__(self) -> int:
        return self.header_length * 4

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        version, tos, total_length, identification, flags, ttl, proto, csum, src, dst = _UNPACK(buf)
        length = (version & 0xF) * 4
        header = cls(
            version >> 4, version & 0xF, tos, total_length, identification, flags >> 13,
            flags & 0x1FFF, ttl, proto, csum, socket.inet_ntoa(src), socket.inet_ntoa(dst),
            buf[20:length] if length > 20 else None,
        )  # fmt: skip
        return header, cls.get_packet_type(proto), buf[length:total_length]

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        length = len(self)
        if self.total_length == 0:
            self.total_length = length + len(payload)
        header = bytearray(length)
        struct.pack_into(
            self._PACK_STR, header, 0, self.version << 4 | self.header_length, self.tos,
            self.total_length, self.identification, self.flags << 13 | self.offset, self.ttl,
            self.proto, 0, addrconv.ipv4.text_to_bin(self.src), addrconv.ipv4.text_to_bin(self.dst),
        )  # fmt: skip
        if self.option:
            if len(self.option) > length - 20:
                raise ValueError(f"header_length {self.header_length} is too short for the options")
            header[20 : 20 + len(self.option)] = self.option
        self.csum = packet_utils.checksum(header)
        struct.pack_into("!H", header, 10, self.csum)
        return bytes(header)


_UNPACK = struct.Struct(ipv4._PACK_STR).unpack_from
