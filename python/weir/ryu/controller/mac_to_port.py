"""``ryu.controller.mac_to_port``: the ports of addresses, by switch."""

from __future__ import annotations

import logging
from typing import Dict, Optional

from weir.ryu.lib.mac import haddr_to_str

LOG = logging.getLogger("ryu.controller.mac_to_port")


class MacToPortTable:
    """The ports of addresses, by switch."""

    def __init__(self) -> None:
        self.mac_to_port: Dict[int, Dict[bytes, int]] = {}

    def dpid_add(self, dpid: int) -> None:
        """Makes a switch known."""
        LOG.debug("dpid_add: 0x%016x", dpid)
        self.mac_to_port.setdefault(dpid, {})

    def port_add(self, dpid: int, port: int, mac: bytes) -> Optional[int]:
        """Puts an address at a port; the port before."""
        old_port = self.mac_to_port[dpid].get(mac)
        self.mac_to_port[dpid][mac] = port
        if old_port is not None and old_port != port:
            LOG.debug("port_add: 0x%016x 0x%x %s", dpid, port, haddr_to_str(mac))
        return old_port

    def port_get(self, dpid: int, mac: bytes) -> Optional[int]:
        """The port of an address."""
        return self.mac_to_port[dpid].get(mac)

    def mac_list(self, dpid: int, port: int) -> list[bytes]:
        """The addresses at a port."""
        return [mac for mac, at in self.mac_to_port.get(dpid, {}).items() if at == port]

    def mac_del(self, dpid: int, mac: bytes) -> None:
        """Forgets an address."""
        del self.mac_to_port[dpid][mac]
