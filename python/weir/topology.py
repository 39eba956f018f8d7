"""What discovery says of the network: links between switches, and hosts at its edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Tuple


@dataclass(frozen=True, order=True)
class SwitchPort:
    """A port of a switch."""

    #: The switch's datapath id.
    dpid: int
    #: The port's number.
    port_no: int

    def __str__(self) -> str:
        return f"{self.dpid:016x}:{self.port_no}"


@dataclass(frozen=True, order=True)
class Link:
    """A link between two switches, one way; the other way is a link of its own."""

    #: The port by which packets leave.
    src: SwitchPort
    #: The port by which they come in.
    dst: SwitchPort

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst}"


@dataclass(frozen=True)
class Host:
    """A host: who it is, where it is, and the addresses that it has used."""

    #: Its Ethernet address.
    mac: str
    #: The port at which it is.
    port: SwitchPort
    #: Its VLAN; ``None`` without a tag.
    vlan: Optional[int] = None
    #: Its IPv4 addresses.
    ipv4: Tuple[str, ...] = ()
    #: Its IPv6 addresses.
    ipv6: Tuple[str, ...] = ()


#: A link and a host, as the compiled part tells them.
_Link = Tuple[int, int, int, int]
_Host = Tuple[str, Optional[int], List[str], List[str], int, int]


def link_of(told: _Link) -> Link:
    """A link."""
    return Link(SwitchPort(*told[:2]), SwitchPort(*told[2:]))


def host_of(told: _Host) -> Host:
    """A host."""
    mac, vlan, ipv4, ipv6, dpid, port_no = told
    return Host(mac, SwitchPort(dpid, port_no), vlan, tuple(ipv4), tuple(ipv6))


def arguments(handler: str, told: Any) -> Tuple[Any, ...]:
    """What the handler of this name gets."""
    if handler.startswith("link_"):
        return (link_of(told),)
    if handler == "host_move":
        host, before = told
        return (host_of(host), SwitchPort(*before))
    return (host_of(told),)
