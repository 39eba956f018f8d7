"""``ryu.ofproto.ofproto_v1_2_parser``: nothing, since no app of Ryu runs over OpenFlow 1.2 here."""

from weir.ryu.ofproto.later import absent

__getattr__ = absent("ofproto_v1_2_parser", "1.2")
