"""``ryu.lib.packet.ethernet``."""

from __future__ import annotations

import struct
from typing import Any, Optional, Type

from weir.ryu.lib import addrconv
from weir.ryu.lib.packet import ether_types as ether
from weir.ryu.lib.packet.packet_base import PacketBase, Parsed


class ethernet(PacketBase):
    """Ethernet: ``dst``, ``src``, ``ethertype``; addresses are text."""

    _PACK_STR = "!6s6sH"
    _MIN_LEN = 14
    _MIN_PAYLOAD_LEN = 46
    _TYPE = {"ascii": ["src", "dst"]}

    def __init__(
        self,
        dst: str = "ff:ff:ff:ff:ff:ff",
        src: str = "00:00:00:00:00:00",
        ethertype: int = ether.ETH_TYPE_IP,
    ) -> None:
        self.dst, self.src, self.ethertype = dst, src, ethertype

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        dst, src, ethertype = _UNPACK(buf)
        header = cls(dst.hex(":"), src.hex(":"), ethertype)
        return header, cls.get_packet_type(ethertype), buf[14:]

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        payload.extend(bytes(max(self._MIN_PAYLOAD_LEN - len(payload), 0)))
        dst, src = map(addrconv.mac.text_to_bin, (self.dst, self.src))
        return struct.pack(self._PACK_STR, dst, src, self.ethertype)

    @classmethod
    def get_packet_type(cls, type_: int) -> Optional[Type[Any]]:
        # A length, of a frame of IEEE 802.3.
        return super().get_packet_type(max(type_, ether.ETH_TYPE_IEEE802_3))


_UNPACK = struct.Struct(ethernet._PACK_STR).unpack_from
