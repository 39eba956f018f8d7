"""``ryu.lib.mac_to_port``: :mod:`ryu.controller.mac_to_port` by its other name."""

from weir.ryu.controller.mac_to_port import MacToPortTable

__all__ = ["MacToPortTable"]
