"""``ryu.controller.controller``: a switch, as an app of Ryu sees it."""

from __future__ import annotations

import itertools
import struct
from typing import Any, Dict, Iterator, List, Optional, Tuple

from weir.errors import NotConnected
from weir.ryu import cfg, flags  # noqa: F401
from weir.ryu.controller.handler import DEAD_DISPATCHER, HANDSHAKE_DISPATCHER
from weir.ryu.lib import hub
from weir.ryu.missing import missing
from weir.ryu.ofproto import ofproto_protocol

CONF = cfg.CONF

_HEADER = struct.Struct("!BBHI")

#: The numbers of versions on the wire, by Weir's names.
_VERSIONS = {name: number for number, (_, name) in ofproto_protocol.NAMES.items()}


class _Waiter:
    """Somebody who waits for the messages of some xids, up to the answer to a barrier."""

    def __init__(self, barrier: int) -> None:
        self.barrier = barrier
        self.messages: List[Any] = []
        self.is_lost = False
        self.done = hub.Event()


class Datapath(ofproto_protocol.ProtocolDesc):
    """A switch by one of its connections."""

    #: Names that Ryu's has and this one has not, with what is there in their place.
    _INSTEAD = {
        "socket": "connections are Weir's; close() ends none",
        "address": "`weir ctl` and the page of --rest list the peers of connections",
        "send_q": "send_msg never waits",
    }

    def __init__(self, sw: Any, xids: Tuple[int, int]) -> None:
        super().__init__(_VERSIONS[sw.version])
        #: Weir's own object of the switch.
        self.weir = sw
        self.id = sw.dpid
        self.state = HANDSHAKE_DISPATCHER
        self.is_active = True
        self.ports: Dict[int, Any] = {}
        self.flow_format = 0
        self.packet_in = self.ofproto_parser.PacketInOf
        self._send = sw._send
        self._version = self.ofproto.OFP_VERSION
        first, count = xids
        numbers = range(first, first + count)
        self._xids: Iterator[int] = itertools.chain.from_iterable(itertools.repeat(numbers))
        self._waiters: Dict[int, _Waiter] = {}

    def __getattr__(self, name: str) -> Any:
        known = [] if name in self._INSTEAD else [*dir(type(self)), *vars(self)]
        instead = self._INSTEAD.get(name, "it has id, ofproto, ofproto_parser, ports and send_msg")
        raise missing("Datapath", name, known, instead)

    @property
    def ofp_brick(self) -> Any:
        """The app that sends the events of switches."""
        from weir.ryu.base.app_manager import lookup_service_brick

        return lookup_service_brick("ofp_event")

    def set_xid(self, msg: Any) -> int:
        """Gives a message a transaction number."""
        xid = next(self._xids)
        msg.set_xid(xid)
        return xid

    def send_msg(self, msg: Any, close_socket: bool = False) -> bool:
        """Sends a message; whether the connection is there."""
        if msg.xid is None:
            msg.xid = next(self._xids)
        body = msg._pack()
        msg.version = self._version
        msg.msg_type = msg.cls_msg_type
        msg.msg_len = len(body) + 8
        msg.buf = buf = _HEADER.pack(self._version, msg.msg_type, msg.msg_len, msg.xid) + body
        return self.send(buf)

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Sends a message that is encoded already."""
        if not self.is_active:
            return False
        self._send(bytes(buf))
        return True

    def close(self) -> None:
        """Nothing is sent any more; the connection itself stays Weir's."""
        self.is_active = False
        self.state = DEAD_DISPATCHER

    # Answers that somebody waits for.

    def ask(self, msg: Any) -> List[Any]:
        """Sends a message with a barrier behind it; what comes with its number until then."""
        self.set_xid(msg)
        is_barrier = isinstance(msg, self.ofproto_parser.OFPBarrierRequest)
        barrier = msg
        if not is_barrier:
            barrier = self.ofproto_parser.OFPBarrierRequest(self)
            self.set_xid(barrier)
        waiter = _Waiter(barrier.xid)
        self._waiters[msg.xid] = self._waiters[barrier.xid] = waiter
        try:
            sent = self.send_msg(msg) and (is_barrier or self.send_msg(barrier))
            if not sent:
                raise NotConnected(f"switch {self.id} is not connected")
            from weir.ryu.base.app_manager import line

            line.flush()
            waiter.done.wait()
        finally:
            self._waiters.pop(msg.xid, None)
            self._waiters.pop(barrier.xid, None)
        if waiter.is_lost:
            raise NotConnected(f"switch {self.id} is not connected")
        return waiter.messages

    def take_waited(self, msg: Any) -> bool:
        """Gives a message to who waits for it; whether somebody does."""
        waiter = self._waiters.get(msg.xid)
        if waiter is None:
            return False
        if msg.xid != waiter.barrier or len(waiter.messages) == 0 and waiter.barrier == msg.xid:
            waiter.messages.append(msg)
        if msg.xid == waiter.barrier:
            waiter.done.set()
        return True

    def end_waiters(self) -> None:
        """The connection is over: nobody waits any longer."""
        for waiter in list(self._waiters.values()):
            waiter.is_lost = True
            waiter.done.set()

    # Ports.

    def learn_ports(self, msg: Any) -> None:
        """Takes the ports of the answers that list them."""
        name = type(msg).__name__
        if name == "OFPSwitchFeatures" and isinstance(getattr(msg, "ports", None), dict):
            self.ports.update(msg.ports)
        elif name == "OFPPortDescStatsReply":
            self.ports.update((port.port_no, port) for port in msg.body)

    def take_port_status(self, msg: Any) -> None:
        """Takes the status of a port."""
        if msg.reason == self.ofproto.OFPPR_DELETE:
            self.ports.pop(msg.desc.port_no, None)
        else:
            self.ports[msg.desc.port_no] = msg.desc

    # Shortcuts.

    def send_packet_out(
        self,
        buffer_id: int = 0xFFFFFFFF,
        in_port: Optional[int] = None,
        actions: Any = None,
        data: Any = None,
    ) -> None:
        """A packet-out."""
        port = getattr(self.ofproto, "OFPP_NONE", None) if in_port is None else in_port
        port = self.ofproto.OFPP_CONTROLLER if port is None else port
        parser = self.ofproto_parser
        # Since 1.5 the port is in a match.
        place = parser.OFPMatch(in_port=port) if self._version > 5 else port
        self.send_msg(parser.OFPPacketOut(self, buffer_id, place, actions or [], data))

    def send_delete_all_flows(self) -> None:
        """Deletes every flow entry."""
        ofproto, parser = self.ofproto, self.ofproto_parser
        if self._version == 1:
            mod = parser.OFPFlowMod(self, parser.OFPMatch(), command=ofproto.OFPFC_DELETE)
        else:
            mod = parser.OFPFlowMod(
                self,
                table_id=ofproto.OFPTT_ALL,
                command=ofproto.OFPFC_DELETE,
                out_port=ofproto.OFPP_ANY,
                out_group=ofproto.OFPG_ANY,
            )
        self.send_msg(mod)

    def send_barrier(self) -> bool:
        """A barrier request."""
        return self.send_msg(self.ofproto_parser.OFPBarrierRequest(self))

    def is_reserved_port(self, port_no: int) -> bool:
        """Whether the number is none of a port."""
        return bool(port_no > self.ofproto.OFPP_MAX)
