"""``ryu.ofproto.ofproto_v1_4``: the number of OpenFlow 1.4, over which no app of Ryu runs here."""

from weir.ryu.ofproto.later import absent

OFP_VERSION = 0x05

__getattr__ = absent("ofproto_v1_4", "1.4")
