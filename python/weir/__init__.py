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
from typing import TYPE_CHECKING, Any

from weir.generator import Generator, GeneratorError, Refused
from weir.stream import Stream

if TYPE_CHECKING:
    from weir._weir import Action, FlowRemoved, Match, Message, PacketIn, Port, PortStatus
    from weir._weir import RoleChange, Switch
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
    "App",
    "Controller",
    "FlowRemoved",
    "Generator",
    "GeneratorError",
    "Host",
    "HttpError",
    "Link",
    "Match",
    "Message",
    "Network",
    "NotConnected",
    "OpenFlowError",
    "PacketIn",
    "Port",
    "PortStatus",
    "RoleChange",
    "QueueFull",
    "Refused",
    "Request",
    "Response",
    "Stream",
    "Switch",
    "SwitchPort",
    "SwitchSilent",
    "WeirError",
    "WordError",
    "route",
    "run",
]

_HOMES = {
    "weir._weir": "Action FlowRemoved Match Message PacketIn Port PortStatus RoleChange Switch",
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
