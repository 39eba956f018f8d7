"""Tests of apps without a network: events in, messages out, virtual time.

::

    import weir.testing

    def test_hub():
        sw = weir.testing.Network(Hub).switch(ports=3)
        [out] = sw.packet_in(weir.testing.frame(), in_port=1)
        assert out.actions == "FLOOD"

Nothing waits: ``network.run(60)`` lets a minute pass in no time.
"""

from __future__ import annotations

import asyncio
import dataclasses
import selectors
from json import dumps
from typing import Any, Callable, Dict, List, Optional, Type, Union, cast

from weir._weir import EVENTS, FlowRemoved, Frame, Message, PacketIn, PortStatus, Switch
from weir._weir import TestSwitch
from weir.app import App, Controller, Timer
from weir.dispatch import SWITCH_DOWN, SWITCH_READY, Dispatcher, answer
from weir.loading import made
from weir.routes import Request, Response
from weir.timers import LoopTimer
from weir.topology import Host, Link, SwitchPort


class _Clock(selectors.SelectSelector):
    """Lets time pass in place of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        #: Answers what was asked; whether there was anything.
        self.answer: Callable[[], bool] = lambda: False

    def select(self, timeout: Optional[float] = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is not None and timeout > 0 and not self.answer():
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    """An asyncio loop in virtual time."""

    def __init__(self) -> None:
        self.clock = _Clock()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now


class Network(Controller):
    """Apps, and switches that exist in this process only.

    Exceptions of handlers are raised where the event was made, unless ``keep_going`` is set: then
    they are logged, as in a real run.
    """

    def __init__(self, *apps: Union[Type[App], App], keep_going: bool = False) -> None:
        self.loop = _Loop()
        self.loop.clock.answer = self._answer
        self.apps = made(apps)
        for app in self.apps:
            app.controller = cast(Controller, _Seen(self))
        self.dispatcher = Dispatcher(self.apps, self.loop)
        #: What handlers have raised.
        self.exceptions: List[BaseException] = []
        self._keep_going = keep_going
        self._log = self.dispatcher.failures.note
        self.dispatcher.failures.note = self._note  # type: ignore[method-assign]
        self._switches: Dict[int, "SimulatedSwitch"] = {}
        self._links: List[Link] = []
        self._hosts: Dict[str, Host] = {}
        self.is_stopped = False
        self.loop.call_later(1.0, self._tick)
        self.dispatcher.each("started")
        self.settle()

    def __enter__(self) -> "Network":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self.loop.is_closed():
            self.loop.close()

    def close(self) -> None:
        """Ends the apps."""
        self.dispatcher.each("stopped")
        self.dispatcher.close()
        self.settle()
        self.loop.close()

    def _note(self, handler: str, error: BaseException) -> None:
        if self._keep_going:
            self._log(handler, error)
        self.exceptions.append(error)

    def switch(  # type: ignore[override]
        self, dpid: int = 1, *, ports: int = 4, version: str = "OpenFlow13"
    ) -> "SimulatedSwitch":
        """A switch that has just become ready, with the ports 1 to ``ports``."""
        switch = SimulatedSwitch(self, dpid, ports, version)
        self._switches[dpid] = switch
        switch._deliver(SWITCH_READY, switch.sw)
        return switch

    def switches(self) -> List[Switch]:
        return [switch.sw for switch in self._switches.values()]

    def links(self) -> List[Link]:
        return list(self._links)

    def hosts(self) -> List[Host]:
        return list(self._hosts.values())

    def link_add(self, link: Link) -> None:
        """A link is discovered, one way."""
        self._links.append(link)
        self._deliver("link_add", link)

    def link_delete(self, link: Link) -> None:
        """A link goes."""
        self._links.remove(link)
        self._deliver("link_delete", link)

    def host_add(self, host: Host) -> None:
        """A host is seen for the first time."""
        self._hosts[host.mac] = host
        self._deliver("host_add", host)

    def host_move(self, mac: str, to: SwitchPort) -> None:
        """A host is seen at another port."""
        before = self._hosts[mac]
        self._hosts[mac] = dataclasses.replace(before, port=to)
        self._deliver("host_move", self._hosts[mac], before.port)

    def host_change(self, host: Host) -> None:
        """A host uses other addresses."""
        self._hosts[host.mac] = host
        self._deliver("host_change", host)

    def host_delete(self, mac: str) -> None:
        """A host is gone."""
        self._deliver("host_delete", self._hosts.pop(mac))

    def _deliver(self, handler: str, *arguments: Any) -> None:
        asyncio.set_event_loop(self.loop)
        self.dispatcher.event(EVENTS.index(handler), None, *arguments)
        self.settle()

    def request(self, method: str, path: str, body: Any = None) -> Response:
        """A request for a route of an app; ``body`` is bytes or a JSON value. Time passes until
        the app has answered."""
        data = body if isinstance(body, bytes) else b"" if body is None else dumps(body).encode()
        path, _, query = path.partition("?")
        answered: "asyncio.Future[Response]" = self.loop.create_future()

        def answer(status: int, content_type: str, data: bytes) -> None:
            answered.set_result(Response(data, status, content_type))

        asyncio.set_event_loop(self.loop)
        self.dispatcher.request(Request(method, path, query, data), answer)
        response = self.loop.run_until_complete(answered)
        self.settle()
        return response

    def stats(self) -> Dict[str, int]:
        return {"switches": len(self._switches), "exceptions": len(self.exceptions)}

    def stop(self) -> None:
        self.is_stopped = True

    def call_later(self, delay_s: float, function: Callable[..., Any], *arguments: Any) -> Timer:
        return LoopTimer(self.loop, lambda: self.dispatcher, delay_s, False, function, arguments)

    def call_every(self, period_s: float, function: Callable[..., Any], *arguments: Any) -> Timer:
        return LoopTimer(self.loop, lambda: self.dispatcher, period_s, True, function, arguments)

    def _tick(self) -> None:
        self.loop.call_later(1.0, self._tick)
        self.dispatcher.ticks(self.switches())

    def run(self, seconds: float) -> None:
        """Lets this time pass: timers, ticks, ``asyncio.sleep``."""
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.settle()

    def _answer(self) -> bool:
        """Answers what was asked of the switches."""
        answers = [a for s in self._switches.values() for a in s._test.take_answers()]
        for waiting in answers:
            answer(waiting)
        changes = [(s.sw, c) for s in self._switches.values() for c in s._test.take_role_changes()]
        for sw, change in changes:
            self.dispatcher.event(EVENTS.index("role_changed"), sw, sw, change)
        return bool(answers or changes)

    def settle(self) -> None:
        """Runs what handlers have started until all of it waits for time or for an event."""
        while True:
            # Twice: a future that is set wakes its task one turn later.
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.run_until_complete(asyncio.sleep(0))
            if not self._answer():
                break
        if self.exceptions and not self._keep_going:
            raise self.exceptions.pop(0)


class _Seen:
    """The network as its apps see it: ``switch`` looks one up, and makes none."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def switch(self, dpid: int) -> Optional[Switch]:
        found = self._network._switches.get(dpid)
        return None if found is None else found.sw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


class SimulatedSwitch:
    """A switch of a test. Each event gives the messages that the apps sent because of it."""

    def __init__(self, network: Network, dpid: int, ports: int, version: str) -> None:
        self._network = network
        self._test = TestSwitch(dpid, ports=ports, version=version)
        #: What the apps get.
        self.sw: Switch = self._test.sw
        #: What was sent because of the latest event.
        self.sent: List[Message] = []

    def __repr__(self) -> str:
        return f"SimulatedSwitch({self.sw!r})"

    def _deliver(self, kind: int, *arguments: Any) -> List[Message]:
        asyncio.set_event_loop(self._network.loop)
        self._network.dispatcher.event(kind, self.sw, *arguments)
        return self._settled()

    def _settled(self) -> List[Message]:
        self._network.settle()
        self.sent = self._test.take_sent()
        return self.sent

    def packet_in(
        self, data: Union[bytes, Frame, None] = None, in_port: int = 1, **parts: Any
    ) -> List[Message]:
        """The switch sends a packet, :func:`frame` by default. ``parts`` are ``reason``
        (``"no_match"``, ``"action"``, ``"invalid_ttl"``), ``table_id``, ``cookie``, ``buffer_id``
        where the switch keeps the packet, and ``total_len`` where ``data`` is its beginning."""
        whole = frame() if data is None else data
        packet: PacketIn = self._test.packet_in(
            whole.build() if isinstance(whole, Frame) else whole, in_port, **parts
        )
        return self._deliver(EVENTS.index("packet_in"), self.sw, packet)

    def port_status(self, number: int, reason: str = "modify", *, up: bool = True) -> List[Message]:
        """A port comes (``"add"``), goes (``"delete"``) or changes (``"modify"``)."""
        status: PortStatus = self._test.port_status(number, reason, up=up)
        return self._deliver(EVENTS.index("port_status"), self.sw, status)

    def flow_removed(self, **parts: Any) -> List[Message]:
        """A flow entry goes. ``parts`` are its match (``match`` or the fields, such as
        ``in_port=2``), ``reason`` (``"idle"``, ``"hard"``, ``"delete"``, ``"group_delete"``),
        ``priority``, ``cookie``, ``table_id``, ``packet_count`` and ``byte_count``."""
        removed: FlowRemoved = self._test.flow_removed(**parts)
        return self._deliver(EVENTS.index("flow_removed"), self.sw, removed)

    def error(self, name: str) -> List[Message]:
        """The switch refuses a message for whose answer nobody waits, with the error of this name,
        such as ``OFPFMFC_TABLE_FULL``."""
        return self._deliver(EVENTS.index("error"), self.sw, self._test.error(name))

    def role_changed(
        self, role: str, generation_id: Optional[int] = None, *, reason: str = "master_request"
    ) -> List[Message]:
        """The controller has another role at the switch: ``equal``, ``master`` or ``slave``.

        By default because another controller has asked to be master. Apps are told if it is news.
        """
        asyncio.set_event_loop(self._network.loop)
        self._test.change_role(role, generation_id, reason=reason)
        return self._settled()

    def message(self, message: Union[bytes, Message]) -> List[Message]:
        """The switch sends any other message: one that is encoded, or of another switch."""
        data = message if isinstance(message, bytes) else message.encode()
        kind, value = self._test.message(data)
        return self._deliver(kind, self.sw, value)

    def refuse_next(self, name: str) -> None:
        """The next thing that an app waits for is refused with this error."""
        self._test.refuse_next(name)

    def take_sent(self) -> List[Message]:
        """What was sent since the latest event, because of time that has passed."""
        self.sent = self._test.take_sent()
        return self.sent

    def disconnect(self) -> None:
        """The connection is over."""
        self._test.end()
        dpid = self.sw.dpid
        self._network._switches.pop(dpid, None)
        self._deliver(SWITCH_DOWN, dpid)


def frame(dst: str = "02:00:00:00:00:02", src: str = "02:00:00:00:00:01") -> Frame:
    """A packet from one address to another, to which its methods add headers:
    ``frame().ipv4("10.0.0.1", "10.0.0.2").udp(1, 53).payload(b"..")``. Lengths and checksums are
    right by themselves."""
    return Frame(dst, src)
