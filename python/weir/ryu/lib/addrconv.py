"""``ryu.lib.addrconv``: addresses as text and as bytes."""

from __future__ import annotations

import ipaddress
import socket
from typing import Tuple, Union


class _Ip:
    """The addresses of a version of IP."""

    def __init__(self, family: socket.AddressFamily, size: int) -> None:
        self._family, self._size = family, size

    def bin_to_text(self, bin: bytes) -> str:
        """The text of an address."""
        return socket.inet_ntop(self._family, bin)

    def text_to_bin(self, text: str) -> Union[bytes, Tuple[bytes, bytes]]:
        """The bytes of an address; of a network (``10.0.0.0/8``) those of address and mask."""
        try:
            return socket.inet_pton(self._family, text)
        except OSError:
            interface = ipaddress.ip_interface(text)
        except TypeError:
            interface = ipaddress.ip_interface(text)
        address, mask = interface.ip.packed, interface.netmask.packed
        if len(address) != self._size:
            raise ValueError(f"{text}: not an address of this version of IP")
        return (address, mask) if "/" in str(text) else address


class _Mac:
    """Addresses of Ethernet."""

    @staticmethod
    def bin_to_text(bin: bytes) -> str:
        """The text of an address."""
        return bytes(bin).hex(":")

    @staticmethod
    def text_to_bin(text: str) -> bytes:
        """The bytes of an address: ``02:00:00:00:00:01``, also with ``-`` or with dots."""
        parts = text.replace("-", ":").split(":")
        if len(parts) == 6:
            text = "".join(part.rjust(2, "0") for part in parts)
        octets = bytes.fromhex(text.replace(".", ""))
        if len(octets) != 6:
            raise ValueError(f"{text}: not an address of Ethernet")
        return octets


ipv4 = _Ip(socket.AF_INET, 4)
ipv6 = _Ip(socket.AF_INET6, 16)
mac = _Mac()
