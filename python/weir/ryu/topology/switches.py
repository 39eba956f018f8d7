"""``ryu.topology.switches``: the app that knows switches, links and hosts.

Links and hosts are those of Weir's discovery, which is on where this app is loaded; ports and
switches come by their own events.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from weir.app import App
from weir.ryu import flags  # noqa: F401
from weir.ryu.base import app_manager
from weir.ryu.controller import ofp_event
from weir.ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from weir.ryu.lib.dpid import dpid_to_str
from weir.ryu.lib.port_no import port_no_to_str
from weir.ryu.topology import event


class Port:
    """A port of a switch."""

    def __init__(self, dpid: int, ofproto: Any, ofpport: Any) -> None:
        self.dpid = dpid
        self._ofproto = ofproto
        self._config, self._state = ofpport.config, ofpport.state
        self.port_no, self.hw_addr, self.name = ofpport.port_no, ofpport.hw_addr, ofpport.name

    def is_reserved(self) -> bool:
        """Whether its number is none of a port."""
        return bool(self.port_no > self._ofproto.OFPP_MAX)

    def is_down(self) -> bool:
        """Whether nothing goes through it."""
        ofproto = self._ofproto
        is_off = self._config & ofproto.OFPPC_PORT_DOWN
        return bool(self._state & ofproto.OFPPS_LINK_DOWN or is_off)

    def is_live(self) -> bool:
        """Whether it is up."""
        return not self.is_down()

    def to_dict(self) -> Dict[str, Any]:
        """The port for JSON."""
        return {
            "dpid": dpid_to_str(self.dpid),
            "port_no": port_no_to_str(self.port_no),
            "hw_addr": self.hw_addr,
            "name": self.name.decode("utf-8", "replace"),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Port):
            return NotImplemented
        return self.dpid == other.dpid and self.port_no == other.port_no

    def __hash__(self) -> int:
        return hash((self.dpid, self.port_no))

    def __str__(self) -> str:
        state = "LIVE" if self.is_live() else "DOWN"
        return f"Port<dpid={self.dpid}, port_no={self.port_no}, {state}>"


class Switch:
    """A switch with its ports."""

    def __init__(self, dp: Any) -> None:
        self.dp = dp
        self.ports: List[Port] = []

    def add_port(self, ofpport: Any) -> None:
        """Adds a port, unless its number is none of one."""
        port = Port(self.dp.id, self.dp.ofproto, ofpport)
        if not port.is_reserved():
            self.ports.append(port)

    def del_port(self, ofpport: Any) -> None:
        """Removes a port."""
        self.ports.remove(Port(self.dp.id, self.dp.ofproto, ofpport))

    def to_dict(self) -> Dict[str, Any]:
        """The switch for JSON."""
        ports = [port.to_dict() for port in self.ports]
        return {"dpid": dpid_to_str(self.dp.id), "ports": ports}

    def __str__(self) -> str:
        ports = "".join(f"{port} " for port in self.ports)
        return f"Switch<dpid={self.dp.id}, {ports}>"


class Link:
    """A link between ports of switches, one way."""

    def __init__(self, src: Port, dst: Port) -> None:
        self.src, self.dst = src, dst

    def to_dict(self) -> Dict[str, Any]:
        """The link for JSON."""
        return {"src": self.src.to_dict(), "dst": self.dst.to_dict()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Link):
            return NotImplemented
        return self.src == other.src and self.dst == other.dst

    def __hash__(self) -> int:
        return hash((self.src, self.dst))

    def __str__(self) -> str:
        return f"Link: {self.src} to {self.dst}"


class Host:
    """A host with its addresses."""

    def __init__(self, mac: str, port: Port) -> None:
        self.port, self.mac = port, mac
        self.ipv4: List[str] = []
        self.ipv6: List[str] = []

    def to_dict(self) -> Dict[str, Any]:
        """The host for JSON."""
        addresses = {"ipv4": self.ipv4, "ipv6": self.ipv6}
        return {"mac": self.mac, **addresses, "port": self.port.to_dict()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Host):
            return NotImplemented
        return self.mac == other.mac and self.port == other.port

    def __hash__(self) -> int:
        return hash((self.mac, self.port))

    def __str__(self) -> str:
        addresses = ",".join(self.ipv4) + ",".join(self.ipv6)
        return f"Host<mac={self.mac}, port={self.port},{addresses}>"


class Switches(app_manager.RyuApp):
    """The app ``switches``."""

    _EVENTS = [
        event.EventSwitchEnter, event.EventSwitchLeave, event.EventSwitchReconnected,
        event.EventPortAdd, event.EventPortDelete, event.EventPortModify,
        event.EventLinkAdd, event.EventLinkDelete,
        event.EventHostAdd, event.EventHostDelete, event.EventHostMove,
    ]  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = "switches"
        self.dps: Dict[int, Any] = {}
        #: The ports of each switch, by number.
        self.port_state: Dict[int, Dict[int, Any]] = {}
        #: Weir's app that gets what is discovered.
        self.discovery = Discovery(self)

    # Switches and ports.

    def _get_switch(self, dpid: int) -> Optional[Switch]:
        dp = self.dps.get(dpid)
        if dp is None:
            return None
        switch = Switch(dp)
        for ofpport in list(self.port_state[dpid].values()):
            switch.add_port(ofpport)
        return switch

    def _get_port(self, at: Any) -> Optional[Port]:
        """A port that discovery names, if its switch is connected."""
        dp, ports = self.dps.get(at.dpid), self.port_state.get(at.dpid, {})
        ofpport = ports.get(at.port_no)
        if dp is None or ofpport is None:
            return None
        return Port(dp.id, dp.ofproto, ofpport)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change_handler(self, ev: Any) -> None:
        """A switch is connected, or no longer."""
        dp = ev.datapath
        if ev.state == MAIN_DISPATCHER:
            before = self.dps.get(dp.id)
            self.dps[dp.id] = dp
            self.port_state.setdefault(dp.id, dict(dp.ports))
            entered = event.EventSwitchEnter if before is None else event.EventSwitchReconnected
            self.send_event_to_observers(entered(self._get_switch(dp.id)))
        elif dp.id in self.dps and self.dps[dp.id] is dp:
            switch = self._get_switch(dp.id)
            del self.dps[dp.id], self.port_state[dp.id]
            self.send_event_to_observers(event.EventSwitchLeave(switch))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status_handler(self, ev: Any) -> None:
        """A port has come, gone or changed."""
        dp, ofpport = ev.msg.datapath, ev.msg.desc
        ports = self.port_state.get(dp.id)
        if ports is None:
            return
        port = Port(dp.id, dp.ofproto, ofpport)
        if ev.msg.reason == dp.ofproto.OFPPR_DELETE:
            ports.pop(ofpport.port_no, None)
            self.send_event_to_observers(event.EventPortDelete(port))
            return
        ports[ofpport.port_no] = ofpport
        is_new = ev.msg.reason == dp.ofproto.OFPPR_ADD
        kind = event.EventPortAdd if is_new else event.EventPortModify
        self.send_event_to_observers(kind(port))

    # Links and hosts.

    def link_of(self, found: Any) -> Optional[Link]:
        """A link that discovery names, if both of its switches are connected."""
        src, dst = self._get_port(found.src), self._get_port(found.dst)
        return None if src is None or dst is None else Link(src, dst)

    def host_of(self, found: Any, at: Any = None) -> Optional[Host]:
        """A host that discovery names, at its port or at another."""
        port = self._get_port(at or found.port)
        if port is None:
            return None
        host = Host(found.mac, port)
        host.ipv4, host.ipv6 = list(found.ipv4), list(found.ipv6)
        return host

    @set_ev_cls(event.EventSwitchRequest)
    def switch_request_handler(self, req: Any) -> None:
        """Answers a question for switches."""
        dpids = list(self.dps) if req.dpid is None else [req.dpid]
        switches = [switch for switch in map(self._get_switch, dpids) if switch is not None]
        self.reply_to_request(req, event.EventSwitchReply(req.src, switches))

    @set_ev_cls(event.EventLinkRequest)
    def link_request_handler(self, req: Any) -> None:
        """Answers a question for links."""
        found = [self.link_of(link) for link in self.discovery.controller.links()]
        known = [link for link in found if link is not None]
        # With a time as Ryu's: some apps iterate, others ask for the items.
        links: Any = {link: 0.0 for link in known if req.dpid in (None, link.src.dpid)}
        reply = links if req.dpid is None else list(links)
        self.reply_to_request(req, event.EventLinkReply(req.src, req.dpid, reply))

    @set_ev_cls(event.EventHostRequest)
    def host_request_handler(self, req: Any) -> None:
        """Answers a question for hosts."""
        found = [self.host_of(host) for host in self.discovery.controller.hosts()]
        known = [host for host in found if host is not None]
        hosts = [host for host in known if req.dpid in (None, host.port.dpid)]
        self.reply_to_request(req, event.EventHostReply(req.src, req.dpid, hosts))


class Discovery(App):
    """Passes what Weir discovers on to the app."""

    def __init__(self, switches: Switches) -> None:
        self._switches = switches

    def _send(self, kind: Any, *values: Any) -> None:
        if None not in values:
            self._switches.send_event_to_observers(kind(*values))

    def link_add(self, link: Any) -> None:
        self._send(event.EventLinkAdd, self._switches.link_of(link))

    def link_delete(self, link: Any) -> None:
        self._send(event.EventLinkDelete, self._switches.link_of(link))

    def host_add(self, host: Any) -> None:
        self._send(event.EventHostAdd, self._switches.host_of(host))

    def host_move(self, host: Any, before: Any) -> None:
        was = self._switches.host_of(host, before)
        self._send(event.EventHostMove, was, self._switches.host_of(host))

    def host_delete(self, host: Any) -> None:
        self._send(event.EventHostDelete, self._switches.host_of(host))
