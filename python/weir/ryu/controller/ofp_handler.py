"""``ryu.controller.ofp_handler``: the app that sends the events of switches.

It takes the events of Weir's controller, makes Ryu's of them where an app observes them, and puts
them into the queues of the apps.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

from weir.ryu.base import app_manager
from weir.ryu.base.app_manager import RyuApp, observes
from weir.ryu.controller import ofp_event
from weir.ryu.controller.controller import Datapath
from weir.ryu.controller.handler import (
    CONFIG_DISPATCHER,
    DEAD_DISPATCHER,
    HANDSHAKE_DISPATCHER,
    MAIN_DISPATCHER,
)

#: The reasons of packet-ins, as the compiled part names them.
_PACKET_IN = ofp_event._event("EventOFPPacketIn")


class OFPHandler(RyuApp):
    """The app ``ofp_event``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = ofp_event.NAME
        #: The switches that are connected.
        self.datapaths: Dict[int, Datapath] = {}
        self._packet_in_apps: Optional[Tuple[RyuApp, ...]] = None

    def register_observer(self, ev_cls: Any, name: str, states: Any = None) -> None:
        super().register_observer(ev_cls, name, states)
        self._packet_in_apps = None
        if ev_cls.__name__ == "EventOFPEchoRequest":
            what = "handles EventOFPEchoRequest, which never comes: Weir answers echo requests"
            self.logger.warning("%s %s", name, what)

    def unregister_observer(self, ev_cls: Any, name: str) -> None:
        super().unregister_observer(ev_cls, name)
        self._packet_in_apps = None

    def unregister_observer_all_event(self, name: str) -> None:
        super().unregister_observer_all_event(name)
        self._packet_in_apps = None

    # The events of Weir's controller.

    def switch_ready(self, sw: Any, xids: Tuple[int, int]) -> None:
        """A switch is there: its messages of the handshake, and the phases."""
        datapath = Datapath(sw, xids)
        self.datapaths[datapath.id] = datapath
        self._state(datapath, HANDSHAKE_DISPATCHER)
        # The switch's own was read by threads of Rust; this one has the version.
        hello = datapath.ofproto_parser.OFPHello(datapath)
        hello.serialize()
        self._message(datapath, hello.buf)
        self._state(datapath, CONFIG_DISPATCHER)
        for message in sw._greetings():
            self._message(datapath, message)
        self._state(datapath, MAIN_DISPATCHER)

    def switch_down(self, dpid: int) -> None:
        """It is gone."""
        datapath = self.datapaths.pop(dpid, None)
        if datapath is not None:
            datapath.is_active = False
            datapath.end_waiters()
            self._state(datapath, DEAD_DISPATCHER)

    def packet_in(self, sw: Any, pkt: Any) -> None:
        """A packet-in; its parts are read when they are asked for."""
        apps = self._packet_in_apps
        if apps is None:
            apps = self._packet_in_apps = self._observers_of_packet_ins()
        datapath = self.datapaths.get(sw.dpid)
        if datapath is None or not apps:
            return
        ev = _PACKET_IN(datapath.packet_in(datapath, pkt))
        for app in apps:
            app.take_packet_in(ev, MAIN_DISPATCHER)

    def _observers_of_packet_ins(self) -> Tuple[RyuApp, ...]:
        observers = self.observers.get(_PACKET_IN, {}).items()
        names = [name for name, states in observers if observes(states, MAIN_DISPATCHER)]
        bricks = [app_manager.SERVICE_BRICKS.get(name) for name in names]
        return tuple(app for app in bricks if app is not None)

    def wants_packet_ins(self) -> bool:
        """Whether an app has a handler for them."""
        return bool(self.observers.get(_PACKET_IN))

    def message(self, sw: Any, what: Any) -> None:
        """Any other message."""
        datapath = self.datapaths.get(sw.dpid)
        if datapath is not None:
            self._message(datapath, sw._encode(what))

    def _message(self, datapath: Datapath, data: bytes) -> None:
        msg = datapath.ofproto_parser.parse(datapath, data)
        if msg is None:
            self.logger.debug("%d bytes of no known message", len(data))
            return
        if datapath.take_waited(msg):
            return
        state = datapath.state
        datapath.learn_ports(msg)
        self.send_event_to_observers(ofp_event.ofp_msg_to_ev(msg), state)
        if type(msg).__name__ == "OFPPortStatus":
            datapath.take_port_status(msg)
            change = ofp_event.EventOFPPortStateChange(datapath, msg.reason, msg.desc.port_no)
            self.send_event_to_observers(change, state)

    def _state(self, datapath: Datapath, state: str) -> None:
        datapath.state = state
        ev = ofp_event.EventOFPStateChange(datapath)
        ev.state = state
        self.send_event_to_observers(ev, state)


__all__: List[str] = ["OFPHandler"]
_States = Set[str]
