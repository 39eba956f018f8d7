"""An app: a class with handlers, all empty here.

Handlers run on the thread that called :func:`weir.run`, one after the other; the network is served
by threads of its own, which no handler stops. A handler may be ``async def``: it then runs beside
the others, and ``await sw.barrier()`` lets them go on meanwhile.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from weir._weir import EVENTS, Handlers

if TYPE_CHECKING:
    from weir._weir import Done, Switch
    from weir.topology import Host, Link


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
        """Counts since the start, events that were dropped included."""
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


class App(Handlers):
    """An app. Subclass it and write the handlers that you need.

    Several apps get each event in the order in which they are given to :func:`weir.run`, or in
    which they stand in the file; ``sw.stop()`` keeps an event from the apps behind. The handlers of
    events are those of ``Handlers``.
    """

    #: The controller that runs this app; there before :meth:`started`.
    controller: Controller

    @property
    def logger(self) -> logging.Logger:
        """The app's log: that of Weir, by the name of the class."""
        return logging.getLogger(f"weir.{type(self).__name__}")

    def started(self) -> "Done":
        """The controller runs; no switch has come yet."""

    def stopped(self) -> None:
        """The controller ends."""

    def tick(self, sw: "Switch") -> "Done":
        """Once a second for each switch that is ready."""


#: The handlers for which links and hosts are discovered.
TOPOLOGY = tuple(name for name in EVENTS if name.startswith(("link_", "host_")))


#: All names of handlers.
HANDLERS = (*EVENTS, "started", "stopped", "tick")


def misnamed(app: App) -> List[Tuple[str, str]]:
    """Methods of the app that are nearly called as a handler, each with that handler."""
    bases = type(app).__mro__[: type(app).__mro__.index(App)]
    found: List[Tuple[str, str]] = []
    for name in dict.fromkeys(name for base in bases for name in vars(base)):
        if name in HANDLERS or name.startswith("_") or not callable(getattr(type(app), name)):
            continue
        near = difflib.get_close_matches(name, HANDLERS, 1, 0.9)
        found.extend((name, handler) for handler in near)
    return found


def overrides(app: App, handler: str) -> bool:
    """Whether the app's class has a handler of its own."""
    return getattr(type(app), handler) is not getattr(App, handler)
