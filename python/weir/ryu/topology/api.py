"""``ryu.topology.api``: the switches, links and hosts that are known."""

from __future__ import annotations

from typing import Any, List, Optional

from weir.ryu.base import app_manager
from weir.ryu.topology import event


def get_switch(app: Any, dpid: Optional[int] = None) -> List[Any]:
    """The switches, or that of a datapath id."""
    switches: List[Any] = app.send_request(event.EventSwitchRequest(dpid)).switches
    return switches


def get_all_switch(app: Any) -> List[Any]:
    """The switches."""
    return get_switch(app)


def get_link(app: Any, dpid: Optional[int] = None) -> Any:
    """The links, or those that leave a switch."""
    return app.send_request(event.EventLinkRequest(dpid)).links


def get_all_link(app: Any) -> Any:
    """The links."""
    return get_link(app)


def get_host(app: Any, dpid: Optional[int] = None) -> List[Any]:
    """The hosts, or those at a switch."""
    hosts: List[Any] = app.send_request(event.EventHostRequest(dpid)).hosts
    return hosts


def get_all_host(app: Any) -> List[Any]:
    """The hosts."""
    return get_host(app)


app_manager.require_app("ryu.topology.switches", api_style=True)
