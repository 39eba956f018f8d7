"""``ryu.ofproto.ofproto_v1_2_parser``: nothing, since Weir does not speak OpenFlow 1.2."""

from weir.ryu.ofproto.later import absent

__getattr__ = absent("ofproto_v1_2_parser", "1.2")
