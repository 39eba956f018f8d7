"""``ryu.controller.ofp_event``: an event for each message of OpenFlow.

The classes are made when they are asked for: one for each class of message in the parsers.
"""

from __future__ import annotations

import time
from typing import Any, Dict

from weir.ryu.controller import event, handler
from weir.ryu.missing import missing
from weir.ryu.ofproto import get_ofp_modules, ofproto_protocol

NAME = "ofp_event"

#: Messages that are not here: apps for several versions name them.
LATER = frozenset(
    "OFPBundleFeaturesStatsReply OFPControllerStatusStatsReply OFPFlowMonitorReply"
    " OFPFlowMonitorRequest OFPStatsReply".split()
)


class EventOFPMsgBase(event.EventBase):
    """A message of a switch: ``msg``, with the switch in ``msg.datapath``."""

    def __init__(self, msg: Any) -> None:
        self.timestamp = time.time()
        self.msg = msg


_OFP_MSG_EVENTS: Dict[str, type] = {}


def ofp_msg_to_ev_cls(msg_cls: type) -> Any:
    """The class of events for a class of messages."""
    return _event(f"Event{msg_cls.__name__}")


def ofp_msg_to_ev(msg: Any) -> Any:
    """The event of a message."""
    return ofp_msg_to_ev_cls(type(msg))(msg)


class EventOFPStateChange(event.EventBase):
    """The connection of a switch is in another phase."""

    def __init__(self, dp: Any) -> None:
        super().__init__()
        self.datapath = dp
        self.state: Any = None


class EventOFPPortStateChange(event.EventBase):
    """A port has changed; ``datapath.ports`` has it already."""

    def __init__(self, dp: Any, reason: int, port_no: int) -> None:
        super().__init__()
        self.datapath, self.reason, self.port_no = dp, reason, port_no


def _event(name: str) -> Any:
    made = _OFP_MSG_EVENTS.get(name)
    if made is None:
        made = _OFP_MSG_EVENTS[name] = type(name, (EventOFPMsgBase,), {"__module__": __name__})
    return made


def __getattr__(name: str) -> Any:
    message = name.removeprefix("Event")
    tables = [parser.TABLE for _, parser in get_ofp_modules().values()]
    if name != message and (message in LATER or any(message in table for table in tables)):
        return _event(name)
    known = [f"Event{message}" for table in tables for message in table.rows]
    instead = f"no message of OpenFlow {ofproto_protocol.spoken()} is called {message}"
    raise missing("ryu.controller.ofp_event", name, known, instead)


handler.register_service("ryu.controller.ofp_handler")
