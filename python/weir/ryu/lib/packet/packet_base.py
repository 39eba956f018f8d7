"""``ryu.lib.packet.packet_base``: the base of protocols, and which one follows which."""

from __future__ import annotations

import importlib
from typing import Any, Dict, Optional, Tuple, Type, Union

from weir.ryu.lib.stringify import StringifyMixin

#: A protocol: an object, the class of the next one, and the bytes after this one.
Parsed = Tuple[Any, Optional[Type[Any]], Any]


class PacketBase(StringifyMixin):
    """A protocol's header.

    A subclass has ``parser``, which reads one at the beginning of bytes, and ``serialize``.
    """

    #: The next protocol by its number, EtherTypes and protocols of IP together. A text names a
    #: module and a class that is loaded when a packet has it.
    _TYPES: Dict[int, Union[str, Type[Any], None]] = {
        0x0800: "ipv4.ipv4", 0x0806: "arp.arp", 0x8100: "vlan.vlan", 0x88A8: "vlan.svlan",
        0x86DD: "ipv6.ipv6", 0x8809: "slow.slow", 0x8847: "mpls.mpls", 0x88CC: "lldp.lldp",
        0x88E7: "pbb.itag", 0x05DC: "llc.llc", 0x8902: "cfm.cfm",
        1: "icmp.icmp", 2: "igmp.igmp", 6: "tcp.tcp", 17: "udp.udp", 47: "gre.gre",
        58: "icmpv6.icmpv6", 89: "ospf.ospf", 132: "sctp.sctp",
    }  # fmt: skip
    _MIN_LEN = 0

    @classmethod
    def get_packet_type(cls, type_: int) -> Optional[Type[Any]]:
        """The protocol of a number; none where its bytes stay as they are."""
        found = cls._TYPES.get(type_)
        if isinstance(found, str):
            found = cls._TYPES[type_] = protocol(found)
        return found

    @classmethod
    def register_packet_type(cls, cls_: Type[Any], type_: int) -> None:
        """This protocol has this number from now on."""
        cls._TYPES[type_] = cls_

    def __len__(self) -> int:
        return self._MIN_LEN

    @property
    def protocol_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        """Reads the header at the beginning of these bytes."""
        raise NotImplementedError(f"{cls.__name__} has no parser")

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        """The header of this payload, behind the header ``prev``."""
        raise NotImplementedError(f"{type(self).__name__} has no serialize")

    def __truediv__(self, trailer: Any) -> Any:
        from weir.ryu.lib.packet.packet import Packet

        return Packet(protocols=[self, trailer])


def protocol(name: str) -> Optional[Type[Any]]:
    """The class ``module.class``; none where neither Weir nor an installed os-ken has it."""
    module, _, cls = name.partition(".")
    home = f"{__package__}.{module}"
    try:
        found: Type[Any] = getattr(importlib.import_module(home), cls)
    except ModuleNotFoundError as error:
        if error.name != home:
            raise
        return None
    return found
