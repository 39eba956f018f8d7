"""``ryu.lib.packet.udp``."""

from __future__ import annotations

import struct
from typing import Any, Optional, Type

from weir.ryu.lib.packet import packet_utils
from weir.ryu.lib.packet.packet_base import PacketBase, Parsed, protocol


class udp(PacketBase):
    """UDP (RFC 768). A length and a checksum of 0 are filled in."""

    _PACK_STR = "!HHHH"
    _MIN_LEN = 8

    def __init__(
        self, src_port: int = 1, dst_port: int = 1, total_length: int = 0, csum: int = 0
    ) -> None:
        self.src_port, self.dst_port = src_port, dst_port
        self.total_length, self.csum = total_length, csum

    @staticmethod
    def get_packet_type(  # type: ignore[override]
        src_port: int, dst_port: int
    ) -> Optional[Type[Any]]:
        """The protocol of these ports."""
        ports = {src_port, dst_port}
        if 67 in ports and ports <= {67, 68}:
            return protocol("dhcp.dhcp")
        if 547 in ports and ports <= {546, 547}:
            return protocol("dhcp6.dhcp6")
        if dst_port in (4789, 8472):
            return protocol("vxlan.vxlan")
        return protocol("geneve.geneve") if dst_port == 6081 else None

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        src_port, dst_port, total_length, csum = struct.unpack_from(cls._PACK_STR, buf)
        header = cls(src_port, dst_port, total_length, csum)
        return header, cls.get_packet_type(src_port, dst_port), buf[8:total_length]

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        if self.total_length == 0:
            self.total_length = self._MIN_LEN + len(payload)
        ports_length = (self.src_port, self.dst_port, self.total_length)
        header = struct.pack(self._PACK_STR, *ports_length, self.csum)
        if self.csum == 0:
            self.csum = packet_utils.checksum_ip(prev, self.total_length, header + payload)
            header = struct.pack(self._PACK_STR, *ports_length, self.csum)
        return header
