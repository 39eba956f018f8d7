"""``ryu.ofproto.ofproto_v1_5``: the number of OpenFlow 1.5, over which no app of Ryu runs here."""

from weir.ryu.ofproto.later import absent

OFP_VERSION = 0x06

__getattr__ = absent("ofproto_v1_5", "1.5")
