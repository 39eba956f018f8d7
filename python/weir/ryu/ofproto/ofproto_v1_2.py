"""``ryu.ofproto.ofproto_v1_2``: the number of OpenFlow 1.2, which Weir does not speak."""

from weir.ryu.ofproto.later import absent

OFP_VERSION = 0x03

__getattr__ = absent("ofproto_v1_2", "1.2")
