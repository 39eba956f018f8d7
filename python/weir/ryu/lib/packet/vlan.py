"""``ryu.lib.packet.vlan``."""

from __future__ import annotations

import struct
from typing import Any, Optional, Type

from weir.ryu.lib.packet import ether_types as ether
from weir.ryu.lib.packet.packet_base import PacketBase, Parsed


class _vlan(PacketBase):
    _PACK_STR = "!HH"
    _MIN_LEN = 4

    def __init__(self, pcp: int, cfi: int, vid: int, ethertype: int) -> None:
        self.pcp, self.cfi, self.vid, self.ethertype = pcp, cfi, vid, ethertype

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        tci, ethertype = struct.unpack_from(cls._PACK_STR, buf)
        header = cls(tci >> 13, (tci >> 12) & 1, tci & 0xFFF, ethertype)
        return header, vlan.get_packet_type(ethertype), buf[4:]

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        tci = self.pcp << 13 | self.cfi << 12 | self.vid
        return struct.pack(self._PACK_STR, tci, self.ethertype)


class vlan(_vlan):
    """A tag of IEEE 802.1Q: ``pcp``, ``cfi``, ``vid``, ``ethertype``."""

    def __init__(
        self, pcp: int = 0, cfi: int = 0, vid: int = 0, ethertype: int = ether.ETH_TYPE_IP
    ) -> None:
        super().__init__(pcp, cfi, vid, ethertype)

    @classmethod
    def get_packet_type(cls, type_: int) -> Optional[Type[Any]]:
        # A length, of a frame of IEEE 802.3.
        return super().get_packet_type(max(type_, ether.ETH_TYPE_IEEE802_3))


class svlan(_vlan):
    """A tag of IEEE 802.1ad: ``pcp``, ``cfi``, ``vid``, ``ethertype``."""

    def __init__(
        self, pcp: int = 0, cfi: int = 0, vid: int = 0, ethertype: int = ether.ETH_TYPE_8021Q
    ) -> None:
        super().__init__(pcp, cfi, vid, ethertype)
