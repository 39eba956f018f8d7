"""``ryu.lib.packet.ether_types``."""

from weir.ryu.ofproto.ether import *  # noqa: F403
