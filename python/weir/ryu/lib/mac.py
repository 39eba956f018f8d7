"""``ryu.lib.mac``: Ethernet addresses as text and as bytes."""

from __future__ import annotations

from typing import Union

DONTCARE = b"\x00" * 6
DONTCARE_STR = "00:00:00:00:00:00"
BROADCAST = b"\xff" * 6
BROADCAST_STR = "ff:ff:ff:ff:ff:ff"
MULTICAST = "fe:ff:ff:ff:ff:ff"
UNICAST = "01:00:00:00:00:00"


def is_multicast(addr: bytes) -> bool:
    """Whether the address, as bytes, is of a group."""
    first = addr[0]
    return bool((first if isinstance(first, int) else ord(first)) & 0x01)


def haddr_to_str(addr: Union[bytes, None]) -> str:
    """The address as text."""
    if addr is None:
        return "None"
    if len(addr) != 6:
        raise AssertionError(f"{addr!r} is no address of 6 bytes")
    return addr.hex(":")


def haddr_to_int(addr: str) -> int:
    """The address of a text, as a number."""
    try:
        return int(addr.replace(":", ""), 16)
    except ValueError:
        raise ValueError(f"{addr!r} is no Ethernet address") from None


def haddr_to_bin(string: str) -> bytes:
    """The address of a text, as bytes."""
    data = bytes.fromhex(string.replace(":", "").replace("-", "").replace(".", ""))
    if len(data) != 6:
        raise ValueError(f"{string!r} is no Ethernet address")
    return data


def haddr_bitand(addr: bytes, mask: bytes) -> bytes:
    """The address under a mask."""
    return bytes(a & m for a, m in zip(addr, mask))
