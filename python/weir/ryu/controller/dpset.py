"""``ryu.controller.dpset``: the switches that are connected, and events of them and their ports."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from weir.ryu.base import app_manager
from weir.ryu.controller import event, handler, ofp_event
from weir.ryu.controller.handler import set_ev_cls
from weir.ryu.exception import PortNotFound
from weir.ryu.lib.dpid import dpid_to_str

DPSET_EV_DISPATCHER = "dpset"


class EventDPBase(event.EventBase):
    """An event of the switch ``dp``."""

    def __init__(self, dp: Any) -> None:
        super().__init__()
        self.dp = dp


class EventDP(EventDPBase):
    """The switch is connected (``enter``), or no longer; ``ports`` are its ports."""

    def __init__(self, dp: Any, enter_leave: bool) -> None:
        super().__init__(dp)
        self.enter = enter_leave
        self.ports: List[Any] = []


class EventDPReconnected(EventDPBase):
    """The switch has another connection before the end of the first was known."""

    def __init__(self, dp: Any) -> None:
        super().__init__(dp)
        self.ports: List[Any] = []


class EventPortBase(EventDPBase):
    """An event of a port."""

    def __init__(self, dp: Any, port: Any) -> None:
        super().__init__(dp)
        self.port = port


class EventPortAdd(EventPortBase):
    """The switch has a port more."""


class EventPortDelete(EventPortBase):
    """A port is gone."""


class EventPortModify(EventPortBase):
    """A port has changed."""

    def __init__(self, dp: Any, new_port: Any) -> None:
        super().__init__(dp, new_port)


class PortState(Dict[int, Any]):
    """The ports of a switch, by number."""

    def add(self, port_no: int, port: Any) -> None:
        """Puts a port down."""
        self[port_no] = port

    modify = add

    def remove(self, port_no: int) -> None:
        """Forgets one."""
        del self[port_no]


class DPSet(app_manager.RyuApp):
    """The switches; apps have one as the context ``dpset``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = "dpset"
        self.dps: Dict[int, Any] = {}
        self.port_state: Dict[int, PortState] = {}

    def get(self, dp_id: int) -> Any:
        """The switch of this datapath id, or none."""
        return self.dps.get(dp_id)

    def get_all(self) -> List[Tuple[int, Any]]:
        """All switches, each with its datapath id."""
        return list(self.dps.items())

    def get_port(self, dpid: int, port_no: int) -> Any:
        """A port. Raises PortNotFound."""
        try:
            return self.port_state[dpid][port_no]
        except KeyError:
            raise PortNotFound(dpid=dpid, port=port_no, network_id=None) from None

    def get_ports(self, dpid: int) -> List[Any]:
        """The ports of a switch. Raises KeyError."""
        return list(self.port_state[dpid].values())

    @set_ev_cls(
        ofp_event.EventOFPStateChange, [handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER]
    )
    def dispatcher_change(self, ev: Any) -> None:
        """A switch is connected, or no longer."""
        if ev.state == handler.MAIN_DISPATCHER:
            self._register(ev.datapath)
        elif self.dps.get(ev.datapath.id) is ev.datapath:
            self._unregister(ev.datapath)

    def _register(self, dp: Any) -> None:
        before = self.dps.get(dp.id)
        self.dps[dp.id] = dp
        ports = self.port_state.setdefault(dp.id, PortState(dp.ports))
        ev: Any = EventDP(dp, True)
        if before is not None:
            self.logger.warning("DPSET: Multiple connections from %s", dpid_to_str(dp.id))
            before.close()
            ev = EventDPReconnected(dp)
        ev.ports = list(ports.values())
        self.send_event_to_observers(ev)

    def _unregister(self, dp: Any) -> None:
        ev = EventDP(dp, False)
        ev.ports = list(self.port_state.pop(dp.id).values())
        del self.dps[dp.id]
        self.send_event_to_observers(ev)

    @set_ev_cls(ofp_event.EventOFPPortStatus, handler.MAIN_DISPATCHER)
    def port_status_handler(self, ev: Any) -> None:
        """A port has come, gone or changed."""
        dp, port = ev.msg.datapath, ev.msg.desc
        ports = self.port_state.get(dp.id)
        if ports is None:
            return
        if ev.msg.reason == dp.ofproto.OFPPR_DELETE:
            ports.pop(port.port_no, None)
            self.send_event_to_observers(EventPortDelete(dp, port))
            return
        ports.add(port.port_no, port)
        is_new = ev.msg.reason == dp.ofproto.OFPPR_ADD
        self.send_event_to_observers((EventPortAdd if is_new else EventPortModify)(dp, port))


handler.register_service("ryu.controller.dpset")
