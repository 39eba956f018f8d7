"""``ryu.topology.event``: events of switches, ports, links and hosts, and questions for them."""

from __future__ import annotations

from typing import Any, List, Optional

from weir.ryu.controller import event, handler


class EventSwitchBase(event.EventBase):
    """An event of a switch."""

    def __init__(self, switch: Any) -> None:
        super().__init__()
        self.switch = switch

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}<dpid={self.switch.dp.id}, {len(self.switch.ports)} ports>"


class EventSwitchEnter(EventSwitchBase):
    """A switch is connected."""


class EventSwitchLeave(EventSwitchBase):
    """A switch is connected no longer."""


class EventSwitchReconnected(EventSwitchBase):
    """A switch has another connection before the end of the first was known."""


class EventPortBase(event.EventBase):
    """An event of a port."""

    def __init__(self, port: Any) -> None:
        super().__init__()
        self.port = port

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.port}>"


class EventPortAdd(EventPortBase):
    """A switch has a port more."""


class EventPortDelete(EventPortBase):
    """A port is gone."""


class EventPortModify(EventPortBase):
    """A port has changed."""


class EventLinkBase(event.EventBase):
    """An event of a link, which goes one way."""

    def __init__(self, link: Any) -> None:
        super().__init__()
        self.link = link

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.link}>"


class EventLinkAdd(EventLinkBase):
    """A link was discovered."""


class EventLinkDelete(EventLinkBase):
    """A link is gone."""


class EventHostBase(event.EventBase):
    """An event of a host."""

    def __init__(self, host: Any) -> None:
        super().__init__()
        self.host = host

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.host}>"


class EventHostAdd(EventHostBase):
    """A host was seen for the first time."""


class EventHostDelete(EventHostBase):
    """A host has been silent for an hour, or its port is gone."""


class EventHostMove(event.EventBase):
    """A host is at another port: the host before, and now."""

    def __init__(self, src: Any, dst: Any) -> None:
        super().__init__()
        self.src, self.dst = src, dst

    def __str__(self) -> str:
        return f"{type(self).__name__}<src={self.src}, dst={self.dst}>"


class _Request(event.EventRequestBase):
    """A question for those of one switch, or for all."""

    def __init__(self, dpid: Optional[int] = None) -> None:
        super().__init__()
        self.dst = "switches"
        self.dpid = dpid

    def __str__(self) -> str:
        return f"{type(self).__name__}<src={self.src}, dpid={self.dpid}>"


class EventSwitchRequest(_Request):
    """A question for switches."""


class EventLinkRequest(_Request):
    """A question for links."""


class EventHostRequest(_Request):
    """A question for hosts."""


class EventSwitchReply(event.EventReplyBase):
    """Switches."""

    def __init__(self, dst: Optional[str], switches: List[Any]) -> None:
        super().__init__(dst)
        self.switches = switches


class EventLinkReply(event.EventReplyBase):
    """Links."""

    def __init__(self, dst: Optional[str], dpid: Optional[int], links: Any) -> None:
        super().__init__(dst)
        self.dpid, self.links = dpid, links


class EventHostReply(event.EventReplyBase):
    """Hosts."""

    def __init__(self, dst: Optional[str], dpid: Optional[int], hosts: List[Any]) -> None:
        super().__init__(dst)
        self.dpid, self.hosts = dpid, hosts


handler.register_service("ryu.topology.switches")
