"""``ryu.lib.packet.icmp``."""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, Type

from weir.ryu.lib.packet import packet_utils
from weir.ryu.lib.packet.packet_base import PacketBase, Parsed
from weir.ryu.lib.stringify import StringifyMixin

ICMP_ECHO_REPLY = 0
ICMP_DEST_UNREACH = 3
ICMP_SRC_QUENCH = 4
ICMP_REDIRECT = 5
ICMP_ECHO_REQUEST = 8
ICMP_TIME_EXCEEDED = 11

ICMP_ECHO_REPLY_CODE = 0
ICMP_HOST_UNREACH_CODE = 1
ICMP_PORT_UNREACH_CODE = 3
ICMP_TTL_EXPIRED_CODE = 0


class icmp(PacketBase):
    """ICMP (RFC 792); ``data`` is an object of this module or bytes. A checksum of 0 is made."""

    _PACK_STR = "!BBH"
    _MIN_LEN = 4
    _ICMP_TYPES: Dict[int, Type["_Payload"]] = {}

    @staticmethod
    def register_icmp_type(*types: int) -> Callable[[Type["_Payload"]], Type["_Payload"]]:
        """Messages of these types have this class."""

        def register(cls: Type["_Payload"]) -> Type["_Payload"]:
            icmp._ICMP_TYPES.update(dict.fromkeys(types, cls))
            return cls

        return register

    def __init__(
        self, type_: int = ICMP_ECHO_REQUEST, code: int = 0, csum: int = 0, data: Any = b""
    ) -> None:
        self.type, self.code, self.csum, self.data = type_, code, csum, data

    @classmethod
    def parser(cls, buf: bytes) -> Parsed:
        message = cls(*struct.unpack_from(cls._PACK_STR, buf))
        if len(buf) > cls._MIN_LEN:
            payload = cls._ICMP_TYPES.get(message.type)
            message.data = payload.parser(buf, 4) if payload else buf[4:]
        return message, None, None

    def serialize(self, payload: bytearray, prev: Any) -> bytes:
        message = bytearray(struct.pack(self._PACK_STR, self.type, self.code, self.csum))
        if not self.data:
            self.data = echo()
        message += self.data.serialize() if hasattr(self.data, "serialize") else self.data
        if self.csum == 0:
            self.csum = packet_utils.checksum(message)
            struct.pack_into("!H", message, 2, self.csum)
        return bytes(message)

    def __len__(self) -> int:
        return self._MIN_LEN + len(self.data)


class _Payload(StringifyMixin):
    """Four bytes with the values of ``_head``, and what follows them."""

    _PACK_STR = "!HH"
    _MIN_LEN = 4
    data: Any

    @classmethod
    def parser(cls, buf: bytes, offset: int) -> Any:
        """Reads the payload of a message."""
        message = cls(*struct.unpack_from(cls._PACK_STR, buf, offset))
        message.data = buf[offset + 4 :] or None
        return message

    def _head(self) -> Any:
        raise NotImplementedError

    def serialize(self) -> bytes:
        """The payload as it is on the wire."""
        return struct.pack(self._PACK_STR, *self._head()) + bytes(self.data or b"")

    def __len__(self) -> int:
        return self._MIN_LEN + len(self.data or b"")


@icmp.register_icmp_type(ICMP_ECHO_REPLY, ICMP_ECHO_REQUEST)
class echo(_Payload):
    """An echo request or reply."""

    def __init__(self, id_: int = 0, seq: int = 0, data: Any = None) -> None:
        self.id, self.seq, self.data = id_, seq, data

    def _head(self) -> Any:
        return self.id, self.seq


def _check_length(data_len: int) -> int:
    if not 0 <= data_len <= 255:
        raise ValueError(f"Specified data length ({data_len}) is invalid.")
    return data_len


@icmp.register_icmp_type(ICMP_DEST_UNREACH)
class dest_unreach(_Payload):
    """Destination unreachable; ``data`` is the beginning of the packet (RFC 1191, RFC 4884)."""

    _PACK_STR = "!xBH"

    def __init__(self, data_len: int = 0, mtu: int = 0, data: Any = None) -> None:
        self.data_len, self.mtu, self.data = _check_length(data_len), mtu, data

    def _head(self) -> Any:
        return self.data_len, self.mtu


@icmp.register_icmp_type(ICMP_TIME_EXCEEDED)
class TimeExceeded(_Payload):
    """Time exceeded; ``data`` is the beginning of the packet (RFC 4884)."""

    _PACK_STR = "!xBxx"

    def __init__(self, data_len: int = 0, data: Any = None) -> None:
        self.data_len, self.data = _check_length(data_len), data

    def _head(self) -> Any:
        return (self.data_len,)


icmp.set_classes(icmp._ICMP_TYPES)
