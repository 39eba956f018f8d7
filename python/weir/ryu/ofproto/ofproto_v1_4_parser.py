"""``ryu.ofproto.ofproto_v1_4_parser``: nothing, since no app of Ryu runs over OpenFlow 1.4 here."""

from weir.ryu.ofproto.later import absent

__getattr__ = absent("ofproto_v1_4_parser", "1.4")
