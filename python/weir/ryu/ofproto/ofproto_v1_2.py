"""``ryu.ofproto.ofproto_v1_2``: the number of OpenFlow 1.2, over which no app of Ryu runs here."""

from weir.ryu.ofproto.later import absent

OFP_VERSION = 0x03

# Libraries take these from here for switches of 1.3 too; they are the same there.
OFPPC_PORT_DOWN = 1 << 0
OFPPC_NO_RECV = 1 << 2
OFPPC_NO_FWD = 1 << 5
OFPPC_NO_PACKET_IN = 1 << 6

__getattr__ = absent("ofproto_v1_2", "1.2")
