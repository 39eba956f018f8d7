"""Weir from Python: apps of its OpenFlow controller, and its packet generator.

An app is a class with handlers; :func:`run` serves switches with it. The hub, whole::

    import weir

    class Hub(weir.App):
        def switch_ready(self, sw): sw.miss_to_controller()
        def packet_in(self, sw, pkt): sw.flood(pkt)

    if __name__ == "__main__": weir.run(Hub)

What needs the compiled part is imported when it is first asked for, so that the generator's class
works without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

from weir.generator import Generator, GeneratorError, Refused
from weir.stream import Stream

if TYPE_CHECKING:
    from weir._weir import (
        Action,
        AggregateStats,
        Arp,
        BucketStats,
        Ethernet,
        FlowRemoved,
        FlowStats,
        GroupDesc,
        GroupFeatures,
        GroupStats,
        Icmpv4,
        Icmpv6,
        Instruction,
        Ipv4,
        Ipv6,
        Match,
        Message,
        MeterConfig,
        MeterFeatures,
        MeterStats,
        PacketIn,
        Port,
        PortStats,
        PortStatus,
        QueueStats,
        Role,
        RoleChange,
        Sctp,
        Switch,
        SwitchConfig,
        SwitchDesc,
        SwitchError,
        TableStats,
        Tcp,
        Udp,
        Vlan,
    )
    from weir.app import App, Controller
    from weir.errors import (
        HttpError,
        NotConnected,
        OpenFlowError,
        QueueFull,
        SwitchSilent,
        WeirError,
        WordError,
    )
    from weir.network import Network
    from weir.routes import Request, Response, route
    from weir.running import run
    from weir.topology import Host, Link, SwitchPort

__all__ = [
    "Action",
    "AggregateStats",
    "App",
    "Arp",
    "BucketStats",
    "Controller",
    "Ethernet",
    "FlowRemoved",
    "FlowStats",
    "Generator",
    "GeneratorError",
    "GroupDesc",
    "GroupFeatures",
    "GroupStats",
    "Host",
    "HttpError",
    "Icmpv4",
    "Icmpv6",
    "Instruction",
    "Ipv4",
    "Ipv6",
    "Link",
    "Match",
    "Message",
    "MeterConfig",
    "MeterFeatures",
    "MeterStats",
    "Network",
    "NotConnected",
    "OpenFlowError",
    "PacketIn",
    "Port",
    "PortStats",
    "PortStatus",
    "QueueFull",
    "QueueStats",
    "Refused",
    "Request",
    "Response",
    "Role",
    "RoleChange",
    "Sctp",
    "Stream",
    "Switch",
    "SwitchConfig",
    "SwitchDesc",
    "SwitchError",
    "SwitchPort",
    "SwitchSilent",
    "TableStats",
    "Tcp",
    "Udp",
    "Vlan",
    "WeirError",
    "WordError",
    "route",
    "run",
]

_HOMES = {
    "weir._weir": (
        "Action AggregateStats Arp BucketStats Ethernet FlowRemoved FlowStats GroupDesc "
        "GroupFeatures GroupStats Icmpv4 Icmpv6 Instruction Ipv4 Ipv6 Match Message "
        "MeterConfig MeterFeatures MeterStats PacketIn Port PortStats PortStatus QueueStats "
        "Role RoleChange Sctp Switch SwitchConfig SwitchDesc SwitchError TableStats Tcp Udp "
        "Vlan"
    ),
    "weir.app": "App Controller",
    "weir.errors": "HttpError NotConnected OpenFlowError QueueFull SwitchSilent WeirError"
    " WordError",
    "weir.network": "Network",
    "weir.routes": "Request Response route",
    "weir.running": "run",
    "weir.topology": "Host Link SwitchPort",
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            value = getattr(importlib.import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'weir' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
