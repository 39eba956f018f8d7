"""``ryu.ofproto.ofproto_v1_5_parser``: nothing, since Weir does not speak OpenFlow 1.5."""

from weir.ryu.ofproto.later import absent

__getattr__ = absent("ofproto_v1_5_parser", "1.5")
