"""``ryu.lib.packet.in_proto``."""

from weir.ryu.ofproto.inet import *  # noqa: F403
