"""Hands events to the apps: in order, one exception never in the way of the next event."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Dict, Iterable, List, Optional, Set
from typing import Tuple

from weir import topology
from weir._weir import EVENTS
from weir.app import TOPOLOGY, App, misnamed, overrides
from weir.errors import HttpError
from weir.routes import Request, Response, Routes

if TYPE_CHECKING:
    from weir._weir import Batch, PacketIn, Switch

log = logging.getLogger("weir")

#: The kinds of events, as the compiled part numbers them.
PACKET_IN = EVENTS.index("packet_in")
SWITCH_READY = EVENTS.index("switch_ready")
SWITCH_DOWN = EVENTS.index("switch_down")
ANSWER = len(EVENTS)
LINE = ANSWER + 1
REQUEST = LINE + 1

#: Coroutines of handlers that may be under way at a time; a handler that never ends must not fill
#: the memory.
TASKS_MAX = 10_000

#: Tracebacks of one handler in a second; the rest is counted.
TRACEBACKS_MAX = 5

Handler = Callable[..., Any]

#: Exceptions of an app that are logged. Those that end a thread belong to them: an app that raises
#: one has a defect, and the switches are other apps' too.
RAISED = (Exception, SystemExit, KeyboardInterrupt)


class Terminated(KeyboardInterrupt):
    """SIGINT or SIGTERM came. asyncio lets nothing else through that a handler did not raise."""


class Failures:
    """Logs what handlers raise, a flood of it only in part."""

    def __init__(self, ends_by: str = "an app ends the program by self.controller.stop()") -> None:
        self.count = 0
        self._ends_by = ends_by
        self._seen: Dict[str, Tuple[float, int]] = {}

    def note(self, handler: str, error: BaseException) -> None:
        """Logs the exception with its traceback; one that is a signal goes on."""
        if isinstance(error, Terminated):
            raise error
        self.count += 1
        now = time.monotonic()
        began, seen = self._seen.get(handler, (now, 0))
        if now - began >= 1.0:
            if seen > TRACEBACKS_MAX:
                log.error("%s: raised %d times more", handler, seen - TRACEBACKS_MAX)
            began, seen = now, 0
        self._seen[handler] = (began, seen + 1)
        if seen >= TRACEBACKS_MAX:
            return
        hint = ""
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            hint = f" ({self._ends_by})"
        log.error("%s raised%s; the next event goes on", handler, hint, exc_info=error)


class Dispatcher:
    """The apps' handlers, by event."""

    def __init__(self, apps: List[App], loop: asyncio.AbstractEventLoop) -> None:
        self.apps = apps
        self.failures = Failures()
        #: Events whose handler is a coroutine and that found too many of them under way.
        self.refused = 0
        self._loop = loop
        self._tasks: Set["asyncio.Task[None]"] = set()
        self._chains: List[List[Handler]] = [self._chain(name) for name in EVENTS]
        self._ticks = self._chain("tick")
        #: Requests that apps answer.
        self.routes = Routes(apps)
        for app in apps:
            for name, handler in misnamed(app):
                log.warning(
                    "%s.%s is no handler; did you mean %s?", type(app).__name__, name, handler
                )

    def wants(self) -> List[bool]:
        """For each kind of event whether any app has a handler for it."""
        return [bool(chain) for chain in self._chains]

    def wants_topology(self) -> bool:
        """Whether any app has a handler for links or hosts."""
        return any(self._chains[EVENTS.index(name)] for name in TOPOLOGY)

    def wants_ticks(self) -> bool:
        """Whether any app has a handler for ticks."""
        return bool(self._ticks)

    def _chain(self, name: str) -> List[Handler]:
        handlers = (getattr(app, name) for app in self.apps if overrides(app, name))
        return [self._plain(handler) for handler in handlers]

    def _plain(self, handler: Handler) -> Handler:
        """A handler to be called; an ``async def`` is started as a task."""
        if not inspect.iscoroutinefunction(handler):
            return handler

        def start(*arguments: Any) -> None:
            self.spawn(handler(*arguments))

        start.__qualname__ = handler.__qualname__
        return start

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str = "") -> bool:
        """Runs a handler's coroutine beside the others; whether there was room for it."""
        name = name or getattr(coroutine, "__qualname__", "a coroutine")
        if len(self._tasks) >= TASKS_MAX:
            coroutine.close()
            self.refused += 1
            if self.refused == 1 or self.refused % TASKS_MAX == 0:
                log.error("%s: %d are under way; %d events dropped", name, TASKS_MAX, self.refused)
            return False
        task = self._loop.create_task(self._guarded(name, coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _guarded(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except RAISED as error:
            self.failures.note(name, error)

    def idle(self) -> bool:
        """Whether no coroutine is under way."""
        return not self._tasks

    def close(self) -> None:
        """Cancels what is under way."""
        for task in list(self._tasks):
            task.cancel()

    def call(self, handler: Handler, *arguments: Any) -> None:
        """Calls one handler; what it raises is logged."""
        try:
            handler(*arguments)
        except BaseException as error:  # noqa: BLE001
            # A CancelledError too, of a future that the handler looked at: the rest of the batch
            # goes on. `note` raises a signal again.
            self.failures.note(handler.__qualname__, error)

    def each(self, name: str, *arguments: Any) -> None:
        """Calls the handlers of this name of all apps."""
        for handler in self._chain(name):
            self.call(handler, *arguments)

    def batch(self, batch: "Batch") -> None:
        """Hands over a batch of events."""
        for kind, sw, what in batch:
            if kind == PACKET_IN:
                self.packet_ins(sw, what)
            elif kind == SWITCH_READY:
                self.event(kind, sw, sw)
            elif kind == SWITCH_DOWN:
                self.event(kind, sw, what)
            elif kind == ANSWER:
                answer(what)
            elif kind == REQUEST:
                self.request(Request(*what.parts), what.answer)
            elif kind == LINE:
                log.log(what[0], "%s", what[1])
            elif EVENTS[kind] in TOPOLOGY:
                self.event(kind, None, *topology.arguments(EVENTS[kind], what))
            else:
                self.event(kind, sw, sw, what)

    def request(self, request: Request, answer: Callable[[int, str, bytes], None]) -> None:
        """Has an app answer a request for a route of its own."""

        def end(value: Any) -> None:
            response = Response.of(value)
            answer(response.status, response.content_type, response.data)

        def fail(error: BaseException) -> None:
            if isinstance(error, HttpError):
                end(Response.of_error(error.status, error.text))
                return
            end(Response.of_error(500, f"{name} raised {type(error).__name__}; see the log"))
            self.failures.note(name, error)

        async def finish(coroutine: Coroutine[Any, Any, Any]) -> None:
            try:
                end(await coroutine)
            except asyncio.CancelledError:
                end(Response.of_error(503, f"{name} was cancelled"))
                raise
            except RAISED as error:
                fail(error)

        name = "the app"
        try:
            handler, parts = self.routes.find(request)
            name = handler.__qualname__
            value = handler(request, **parts)
            if not inspect.iscoroutine(value):
                end(value)
            elif not self.spawn(finish(value), name):
                value.close()
                words = f"{TASKS_MAX} coroutines of the apps are under way; try again"
                end(Response.of_error(503, words))
        except BaseException as error:  # noqa: BLE001
            fail(error)

    def event(self, kind: int, sw: "Optional[Switch]", *arguments: Any) -> None:
        """Hands one event to the apps in order, until one of them stops it."""
        chain = self._chains[kind]
        for handler in chain:
            self.call(handler, *arguments)
            if sw is not None and len(chain) > 1 and sw._take_stop():
                return

    def packet_ins(self, sw: "Switch", packets: "Iterable[PacketIn]") -> None:
        """Hands packet-ins of one switch to the apps; the busiest loop of a controller."""
        chain = self._chains[PACKET_IN]
        if len(chain) != 1:
            for pkt in packets:
                self.event(PACKET_IN, sw, sw, pkt)
            return
        handler = chain[0]
        rest = iter(packets)
        # The `try` stands around the loop, not in it; after an exception the loop goes on with the
        # packet behind.
        while True:
            try:
                for pkt in rest:
                    handler(sw, pkt)
                return
            except BaseException as error:  # noqa: BLE001
                self.failures.note(handler.__qualname__, error)

    def ticks(self, switches: "Iterable[Switch]") -> None:
        """Hands a tick of each switch to the apps."""
        for sw in switches:
            for handler in self._ticks:
                self.call(handler, sw)
                if len(self._ticks) > 1 and sw._take_stop():
                    break


def answer(what: Tuple["asyncio.Future[Any]", bool, Any]) -> None:
    """Ends the wait for an answer."""
    future, is_good, value = what
    if future.done():
        return
    if is_good:
        future.set_result(value)
    else:
        future.set_exception(value)
