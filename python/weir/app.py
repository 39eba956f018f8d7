"""What an app is: a class with handlers, all empty here.

Handlers run on the thread that called :func:`weir.run`, one after the other; the network is served
by threads of its own, which no handler stops. A handler may be ``async def``: it then runs beside
the others, and ``await sw.barrier()`` lets them go on meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Optional, Union

if TYPE_CHECKING:
    from weir._weir import FlowRemoved, Message, PacketIn, PortStatus, RoleChange, Switch
    from weir._weir import SwitchError
    from weir.topology import Host, Link, SwitchPort

#: What a handler gives back: nothing, or what an ``async def`` gives.
Done = Union[None, Awaitable[None]]


class Controller:
    """The running controller, as an app sees it: ``self.controller``."""

    def switches(self) -> "List[Switch]":
        """The switches that are ready."""
        raise NotImplementedError

    def switch(self, dpid: int) -> "Optional[Switch]":
        """The switch of this datapath id, if it is ready."""
        raise NotImplementedError

    def links(self) -> "List[Link]":
        """The links between switches that were discovered, each way."""
        raise NotImplementedError

    def hosts(self) -> "List[Host]":
        """The hosts that were discovered."""
        raise NotImplementedError

    def stats(self) -> Dict[str, int]:
        """What was counted since the start, events that were dropped included."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends :func:`weir.run`."""
        raise NotImplementedError

    def call_later(self, delay_s: float, function: Callable[..., Any], *arguments: Any) -> "Timer":
        """Calls a function after a time, once."""
        raise NotImplementedError

    def call_every(self, period_s: float, function: Callable[..., Any], *arguments: Any) -> "Timer":
        """Calls a function each time that this period has passed."""
        raise NotImplementedError


class Timer:
    """A call that is to come."""

    def __init__(self) -> None:
        self._handle: Optional[asyncio.TimerHandle] = None
        self._cancelled = False

    def cancel(self) -> None:
        """The function is not called any more."""
        self._cancelled = True
        if self._handle is not None:
            self._handle.cancel()


class App:
    """An app. Subclass it and write the handlers that you need.

    Several apps get each event in the order in which they are given to :func:`weir.run`, or in
    which they stand in the file; ``sw.stop()`` keeps an event from the apps behind.
    """

    #: The controller that runs this app; there before :meth:`started`.
    controller: Controller

    def started(self) -> Done:
        """The controller runs; no switch has come yet."""

    def stopped(self) -> None:
        """The controller ends."""

    def switch_ready(self, sw: "Switch") -> Done:
        """A switch has said who it is and which ports it has."""

    def switch_down(self, dpid: int) -> Done:
        """The connection of a switch that was ready is over."""

    def packet_in(self, sw: "Switch", pkt: "PacketIn") -> Done:
        """A packet for the controller."""

    def port_status(self, sw: "Switch", status: "PortStatus") -> Done:
        """A port has come, gone or changed; ``sw.ports`` says so already."""

    def flow_removed(self, sw: "Switch", removed: "FlowRemoved") -> Done:
        """A flow entry is gone."""

    def error(self, sw: "Switch", error: "SwitchError") -> Done:
        """The switch refuses a message for whose answer nobody waits."""

    def role_changed(self, sw: "Switch", change: "RoleChange") -> Done:
        """This controller's role at the switch is another than before; it begins with equal."""

    def message(self, sw: "Switch", message: "Message") -> Done:
        """Any other message that nobody asked for."""

    def link_add(self, link: "Link") -> Done:
        """A link between two switches was discovered; each direction is told."""

    def link_delete(self, link: "Link") -> Done:
        """A link is gone."""

    def host_add(self, host: "Host") -> Done:
        """A host was seen for the first time."""

    def host_move(self, host: "Host", before: "SwitchPort") -> Done:
        """A host is at another port than before."""

    def host_change(self, host: "Host") -> Done:
        """A host uses other addresses than before."""

    def host_delete(self, host: "Host") -> Done:
        """A host has been silent for an hour, or its port is gone."""

    def tick(self, sw: "Switch") -> Done:
        """Once a second for each switch that is ready."""


#: The handlers, by the numbers that the compiled part gives to events (`Kind` in `queue.rs`).
EVENTS = (
    "packet_in",
    "switch_ready",
    "switch_down",
    "port_status",
    "flow_removed",
    "error",
    "role_changed",
    "message",
    "link_add",
    "link_delete",
    "host_add",
    "host_move",
    "host_change",
    "host_delete",
)

#: The handlers for which links and hosts are discovered.
TOPOLOGY = tuple(name for name in EVENTS if name.startswith(("link_", "host_")))


def overrides(app: App, handler: str) -> bool:
    """Whether the app's class has a handler of its own."""
    return getattr(type(app), handler) is not getattr(App, handler)
