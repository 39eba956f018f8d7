"""``ryu.ofproto.ofproto_v1_5_parser``: nothing, since no app of Ryu runs over OpenFlow 1.5 here."""

from weir.ryu.ofproto.later import absent

__getattr__ = absent("ofproto_v1_5_parser", "1.5")
