"""``ryu.lib.packet.packet``: a packet as a list of its protocols."""

from __future__ import annotations

import struct
from typing import Any, Iterator, List, Optional, Type

from weir.ryu.lib.packet import packet_base
from weir.ryu.lib.packet.ethernet import ethernet
from weir.ryu.lib.stringify import StringifyMixin


class Packet(StringifyMixin):
    """Reads the packet ``data``, header by header as they are asked for, or makes one."""

    _base_attributes = ["data"]

    def __init__(
        self,
        data: Any = None,
        protocols: Optional[List[Any]] = None,
        parse_cls: Optional[Type[Any]] = ethernet,
    ) -> None:
        self.data = data
        self._protocols: List[Any] = [] if protocols is None else protocols
        # What is not read yet, and its class; no class when all is read.
        self._rest, self._next = data, parse_cls if data else None
        if data and parse_cls is None:
            self._end()

    def _step(self) -> Any:
        """Reads a header; none when there is no other."""
        rest, cls = self._rest, self._next
        # A protocol without bytes of its own is padding.
        if cls is None or not bytes(rest).strip(b"\0"):
            return self._end()
        try:
            proto, self._next, self._rest = cls.parser(rest)
        except struct.error:
            return self._end()
        if proto is not None:
            self._protocols.append(proto)
        if self._next is None:
            self._end()
        return proto

    def _end(self) -> None:
        rest, self._rest, self._next = self._rest, None, None
        if rest and bytes(rest).strip(b"\0"):
            self._protocols.append(rest)

    @property
    def protocols(self) -> List[Any]:
        """All headers, and the payload."""
        while self._next is not None:
            self._step()
        return self._protocols

    @protocols.setter
    def protocols(self, protocols: List[Any]) -> None:
        self._protocols, self._next = protocols, None

    def serialize(self) -> None:
        """Makes ``data`` of the protocols."""
        data = bytearray()
        protocols = self.protocols
        for index in range(len(protocols) - 1, -1, -1):
            proto = protocols[index]
            if isinstance(proto, packet_base.PacketBase):
                # A header may pad the payload in its place.
                header = proto.serialize(data, protocols[index - 1] if index else None)
                data = bytearray(header) + data
            else:
                data = bytearray(bytes(proto)) + data
        self.data = data

    @classmethod
    def from_jsondict(cls, dict_: Any, *_others: Any, **_more: Any) -> "Packet":
        """The packet of a dictionary."""
        protocols = []
        for proto in dict_["protocols"]:
            for name, members in proto.items():
                found = packet_base.protocol(f"{_MODULES.get(name, name)}.{name}")
                if found is None:
                    raise ValueError(f"unknown protocol name {name}")
                protocols.append(found.from_jsondict(members))
        return cls(protocols=protocols)

    def add_protocol(self, proto: Any) -> None:
        """Puts a header or a payload behind the others."""
        self.protocols.append(proto)

    def get_protocols(self, protocol: Any) -> List[Any]:
        """The headers of a class."""
        cls = protocol if isinstance(protocol, type) else type(protocol)
        if cls is ethernet and self._next is ethernet and not _has_tunnel(self._rest):
            # The usual question of a switch: nothing else need be read.
            self._step()
            return [proto for proto in self._protocols if isinstance(proto, cls)]
        return [proto for proto in self.protocols if isinstance(proto, cls)]

    def get_protocol(self, protocol: Any) -> Any:
        """The first header of a class, or none."""
        cls = protocol if isinstance(protocol, type) else type(protocol)
        for proto in self._protocols:
            if isinstance(proto, cls):
                return proto
        while self._next is not None:
            proto = self._step()
            if isinstance(proto, cls):
                return proto
        return None

    def __truediv__(self, trailer: Any) -> "Packet":
        self.add_protocol(trailer)
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self.protocols)

    def __getitem__(self, index: Any) -> Any:
        return self.protocols[index]

    def __setitem__(self, index: Any, item: Any) -> None:
        self.protocols[index] = item

    def __delitem__(self, index: Any) -> None:
        del self.protocols[index]

    def __len__(self) -> int:
        return len(self.protocols)

    def __contains__(self, protocol: Any) -> bool:
        if isinstance(protocol, type):
            return any(type(proto) is protocol for proto in self.protocols)
        return protocol in self.protocols

    def stringify_attrs(self) -> Iterator[Any]:
        yield "protocols", self.protocols

    def __str__(self) -> str:
        return ", ".join(repr(protocol) for protocol in self.protocols)

    __repr__ = __str__


#: Classes that are not alone in the module of their name.
_MODULES = {"svlan": "vlan", "itag": "pbb"}


def _has_tunnel(data: Any) -> bool:
    """Whether a frame may have another one inside: all but ARP and IP without UDP and GRE may."""
    kind = data[12:14]
    if kind == b"\x08\x06":
        return False
    return not (kind == b"\x08\x00" and len(data) > 23 and data[23] not in (17, 47))
