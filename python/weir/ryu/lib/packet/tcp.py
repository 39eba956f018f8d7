"""``ryu.lib.packet.tcp``."""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

from weir.ryu.lib.packet import packet_utils
from weir.ryu.lib.packet.packet_base import PacketBase, Parsed, protocol
from weir.ryu.lib.stringify import StringifyMixin

TCP_OPTION_KIND_END_OF_OPTION_LIST = 0
TCP_OPTION_KIND_NO_OPERATION = 1
TCP_OPTION_KIND_MAXIMUM_SEGMENT_SIZE = 2
TCP_OPTION_KIND_WINDOW_SCALE = 3
TCP_OPTION_KIND_SACK_PERMITTED = 4
TCP_OPTION_KIND_SACK = 5
TCP_OPTION_KIND_TIMESTAMPS = 8
TCP_OPTION_KIND_USER_TIMEOUT = 28
TCP_OPTION_KIND_AUTHENTICATION = 29

TCP_FIN = 0x001
TCP_SYN = 0x002
TCP_RST = 0x004
TCP_PSH = 0x008
TCP_ACK = 0x010
TCP_URG = 0x020
TCP_ECE = 0x040
TCP_CWR = 0x080
TCP_NS = 0x100


class tcp(PacketBase):
    """TCP (RFC 793). An offset and a checksum of 0 are filled in; ``option`` is a list of
    :class:`TCPOption`, or bytes."""

    _PACK_STR = "!HHIIBBHHH"
    _MIN_LEN = 20

    def __init__(
        self,
        src_port: int = 1,
        dst_port: int = 1,
        seq: int = 0,
        ack: int = 0,
        offset: int = 0,
        bits: int = 0,
        window_size: int = 0,
        csum: int = 0,
        urgent: int = 0,
        option: Any = None,
    ) -> None:
        self.src_port, self.dst_port, self.seq, self.ack = src_port, dst_port, seq, ack
        self.offset, self.bits, self.window_size = offset, bits, window_size
        self.csum, self.urgent, self.option = csum, urgent, option

    def __len__(self) -> int:
        return self.offset * 4

    def has_flags(self, *flags: int) -> bool:
        """Whether all these flags are set."""
        mask = sum(flags)
        return self.bits & mask == mask

    @staticmethod
    def get_payload_type(src_port: int, dst_port: int) -> Optional[Type[Any]]:
        """The protocol of these ports."""
        ports = {src_port, dst_port}
        if 179 in ports:
            return protocol("bgp.BGPMessage")
        return protocol("openflow.openflow") if ports & {6653, 6633} else None

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        src_port, dst_port, seq, ack, offset, bits, *more = struct.unpack_from(cls._PACK_STR, buf)
        offset >>= 4
        option: Any = None
        if offset > 5:
            option = _options(buf[20 : offset * 4])
        window_size, csum, urgent = more
        header = cls(
            src_port, dst_port, seq, ack, offset, bits & 0x3F, window_size, csum, urgent, option
        )
        return header, cls.get_payload_type(src_port, dst_port), buf[offset * 4 :]

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        option = self.option or b""
        if isinstance(option, (list, tuple)):
            option = b"".join(each.serialize() for each in option)
        option = bytes(option) + bytes(-len(option) % 4)
        option += bytes(max(self.offset * 4 - 20 - len(option), 0))
        if self.offset == 0:
            self.offset = 5 + len(option) // 4
        header = bytearray(
            struct.pack(
                self._PACK_STR, self.src_port, self.dst_port, self.seq, self.ack, self.offset << 4,
                self.bits, self.window_size, self.csum, self.urgent,
            )  # fmt: skip
            + option
        )
        if self.csum == 0:
            whole = bytes(header + payload)
            self.csum = packet_utils.checksum_ip(prev, len(whole), whole)
            struct.pack_into("!H", header, 16, self.csum)
        return bytes(header)


def _options(buf: bytes) -> Any:
    """The options in these bytes; the bytes where they are none."""
    rest, options = buf, []
    try:
        while rest:
            option, rest = TCPOption.parser(rest)
            options.append(option)
    except (struct.error, ValueError):
        return buf
    return options


class TCPOption(StringifyMixin):
    """An option; what follows its kind and length is in the attributes ``_FIELDS``."""

    _KINDS: Dict[int, Type["TCPOption"]] = {}
    _FIELDS: Tuple[str, ...] = ()
    _FORMAT = "!"
    cls_kind: Optional[int] = None
    cls_length = 2

    def __init__(self, *values: Any, **named: Any) -> None:
        names = [*self._FIELDS, "kind", "length"]
        given = {**dict(zip(names, values)), **named}
        unknown = set(given) - set(names)
        missing = set(self._FIELDS) - set(given)
        if len(values) > len(names) or unknown or missing:
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}")
        self.kind, self.length = self.cls_kind, self.cls_length
        for name, value in given.items():
            if value is not None or name in self._FIELDS:
                setattr(self, name, value)

    @staticmethod
    def parser(buf: bytes) -> Tuple["TCPOption", bytes]:
        """The option at the beginning of these bytes, and what follows it."""
        kind = buf[0]
        cls = TCPOption._KINDS.get(kind, TCPOptionUnknown)
        if cls.cls_length == 1:
            return cls(), buf[1:]
        (length,) = struct.unpack_from("!B", buf, 1)
        if length < 2:
            raise ValueError("an option of TCP is shorter than its head")
        option = cls(*cls._read(buf[2:length]), kind=kind, length=length)
        return option, buf[length:]

    @classmethod
    def _read(cls, body: bytes) -> Tuple[Any, ...]:
        return struct.unpack_from(cls._FORMAT, body)

    def _body(self) -> bytes:
        return struct.pack(self._FORMAT, *(getattr(self, name) for name in self._FIELDS))

    def serialize(self) -> bytes:
        """The option as it is on the wire."""
        if self.cls_length == 1:
            return struct.pack("!B", self.kind)
        body = self._body()
        self.length = 2 + len(body)
        return struct.pack("!BB", self.kind, self.length) + body


class TCPOptionUnknown(TCPOption):
    _FIELDS = ("value",)
    value: Any

    @classmethod
    def _read(cls, body: bytes) -> Tuple[Any, ...]:
        return (body,)

    def _body(self) -> bytes:
        return bytes(self.value or b"")


def _of_kind(kind: int, length: int) -> Callable[[Type[TCPOption]], Type[TCPOption]]:
    def register(cls: Type[TCPOption]) -> Type[TCPOption]:
        cls.cls_kind, cls.cls_length = kind, length
        TCPOption._KINDS[kind] = cls
        return cls

    return register


@_of_kind(TCP_OPTION_KIND_END_OF_OPTION_LIST, 1)
class TCPOptionEndOfOptionList(TCPOption):
    pass


@_of_kind(TCP_OPTION_KIND_NO_OPERATION, 1)
class TCPOptionNoOperation(TCPOption):
    pass


@_of_kind(TCP_OPTION_KIND_MAXIMUM_SEGMENT_SIZE, 4)
class TCPOptionMaximumSegmentSize(TCPOption):
    _FIELDS, _FORMAT = ("max_seg_size",), "!H"


@_of_kind(TCP_OPTION_KIND_WINDOW_SCALE, 3)
class TCPOptionWindowScale(TCPOption):
    _FIELDS, _FORMAT = ("shift_cnt",), "!B"


@_of_kind(TCP_OPTION_KIND_SACK_PERMITTED, 2)
class TCPOptionSACKPermitted(TCPOption):
    pass


@_of_kind(TCP_OPTION_KIND_SACK, 2)
class TCPOptionSACK(TCPOption):
    _FIELDS = ("blocks",)
    blocks: Any

    @classmethod
    def _read(cls, body: bytes) -> Tuple[Any, ...]:
        blocks: List[Any] = list(struct.iter_unpack("!II", body))
        return (blocks,)

    def _body(self) -> bytes:
        return b"".join(struct.pack("!II", left, right) for left, right in self.blocks)


@_of_kind(TCP_OPTION_KIND_TIMESTAMPS, 10)
class TCPOptionTimestamps(TCPOption):
    _FIELDS, _FORMAT = ("ts_val", "ts_ecr"), "!II"


@_of_kind(TCP_OPTION_KIND_USER_TIMEOUT, 4)
class TCPOptionUserTimeout(TCPOption):
    _FIELDS = ("granularity", "user_timeout")
    granularity: int
    user_timeout: int

    @classmethod
    def _read(cls, body: bytes) -> Tuple[Any, ...]:
        (value,) = struct.unpack_from("!H", body)
        return value >> 15, value & 0x7FFF

    def _body(self) -> bytes:
        return struct.pack("!H", self.granularity << 15 | self.user_timeout)


@_of_kind(TCP_OPTION_KIND_AUTHENTICATION, 4)
class TCPOptionAuthentication(TCPOption):
    _FIELDS = ("key_id", "r_next_key_id", "mac")
    key_id: int
    r_next_key_id: int
    mac: Any

    @classmethod
    def _read(cls, body: bytes) -> Tuple[Any, ...]:
        return (*struct.unpack_from("!BB", body), body[2:])

    def _body(self) -> bytes:
        return struct.pack("!BB", self.key_id, self.r_next_key_id) + bytes(self.mac)
