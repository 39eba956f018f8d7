"""``ryu.ofproto.ofproto_v1_4_parser``: nothing, since Weir does not speak OpenFlow 1.4."""

from weir.ryu.ofproto.later import absent

__getattr__ = absent("ofproto_v1_4_parser", "1.4")
