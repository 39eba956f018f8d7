"""``ryu.ofproto.ofproto_v1_0_parser``: the messages and structures of OpenFlow 1.0.

The rows below are the classes; see :mod:`weir.ryu.ofproto.ofproto_parser`. What no row can say
stands below them.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any, Dict, Optional, Tuple

from weir.ryu.lib.mac import DONTCARE, haddr_to_bin
from weir.ryu.ofproto import nicira, ofproto_v1_0
from weir.ryu.ofproto.ofproto_parser import (
    Family,
    MsgBase,
    Record,  # noqa: F401
    StatsReply,
    StringifyMixin,
    Table,
    ip_number,
    packet_bytes,
)

ofproto: Any = ofproto_v1_0

CLASSES = """
OFPHello msg=0
OFPErrorMsg msg=1 type:H=None code:H=None data:bytes=None
OFPEchoRequest msg=2 data:bytes=None
OFPEchoReply msg=3 data:bytes=None
OFPVendor msg=4 vendor:I=None data:bytes=None
OFPFeaturesRequest msg=5
OFPSwitchFeatures msg=6 datapath_id:Q=None n_buffers:I=None n_tables:B=None 3x \
    capabilities:I=None actions:I=None ports:bynumber_OFPPhyPort=None
OFPGetConfigRequest msg=7
OFPGetConfigReply msg=8 flags:H=None miss_send_len:H=None
OFPSetConfig msg=9 flags:H=None miss_send_len:H=None
OFPPacketIn msg=10 buffer_id:I=None total_len:H=None in_port:H=None reason:B=None 1x data:bytes=None
OFPFlowRemoved msg=11 match:match0=None cookie:Q=None priority:H=None reason:B=None 1x \
    duration_sec:I=None duration_nsec:I=None idle_timeout:H=None 2x packet_count:Q=None \
    byte_count:Q=None
OFPPortStatus msg=12 reason:B=None 7x desc:one_OFPPhyPort=None
OFPPacketOut msg=13 buffer_id:I=None in_port:H=None _actions_len:alen actions:[OFPAction]=None \
    data:bytes=None
OFPFlowMod msg=14 match:match0=None cookie:Q=0 command:H=0 idle_timeout:H=0 hard_timeout:H=0 \
    priority:H=0x8000 buffer_id:I=0xffffffff out_port:H=0xffff flags:H=0 actions:[OFPAction]=None
OFPPortMod msg=15 port_no:H=0 hw_addr:mac='00:00:00:00:00:00' config:I=0 mask:I=0 advertise:I=0 4x
OFPBarrierRequest msg=18
OFPBarrierReply msg=19
OFPQueueGetConfigRequest msg=20 port:H 2x
OFPQueueGetConfigReply msg=21 port:H=None 6x queues:[OFPPacketQueue]=None

OFPDescStatsRequest request=0
OFPFlowStatsRequest request=1 match:match0=None table_id:B=255 1x out_port:H=0xffff
OFPAggregateStatsRequest request=2 match:match0=None table_id:B=255 1x out_port:H=0xffff
OFPTableStatsRequest request=3
OFPPortStatsRequest request=4 port_no:H=0xffff 6x
OFPQueueStatsRequest request=5 port_no:H=0xfffc 2x queue_id:I=0xffffffff
OFPVendorStatsRequest request=0xffff vendor:I=None specific_data:bytes=None

OFPDescStatsReply reply=0 OFPDescStats!
OFPFlowStatsReply reply=1 OFPFlowStats
OFPAggregateStatsReply reply=2 OFPAggregateStats
OFPTableStatsReply reply=3 OFPTableStats
OFPPortStatsReply reply=4 OFPPortStats
OFPQueueStatsReply reply=5 OFPQueueStats
OFPVendorStatsReply reply=0xffff OFPVendorStats

OFPDescStats tuple mfr_desc:s256 hw_desc:s256 sw_desc:s256 serial_num:s32 dp_desc:s256
OFPFlowStats struct length:len table_id:B=None 1x match:match0=None duration_sec:I=None \
    duration_nsec:I=None priority:H=None idle_timeout:H=None hard_timeout:H=None 6x cookie:Q=None \
    packet_count:Q=None byte_count:Q=None actions:[OFPAction]=None
OFPAggregateStats tuple packet_count:Q byte_count:Q flow_count:I 4x
OFPTableStats tuple table_id:B 3x name:s32 wildcards:I max_entries:I active_count:I \
    lookup_count:Q matched_count:Q
OFPPortStats tuple port_no:H 6x rx_packets:Q tx_packets:Q rx_bytes:Q tx_bytes:Q rx_dropped:Q \
    tx_dropped:Q rx_errors:Q tx_errors:Q rx_frame_err:Q rx_over_err:Q rx_crc_err:Q collisions:Q
OFPQueueStats tuple port_no:H 2x queue_id:I tx_bytes:Q tx_packets:Q tx_errors:Q
OFPVendorStats struct specific_data:bytes=None
OFPPhyPort tuple port_no:H hw_addr:mac name:s16 config:I state:I curr:I advertised:I supported:I \
    peer:I
OFPPacketQueue struct queue_id:I len:len 2x properties:[OFPQueuePropHeader]=None

OFPActionOutput action=0 type:type len:len port:H max_len:H=0xffe5
OFPActionVlanVid action=1 type:type len:len vlan_vid:H 2x
OFPActionVlanPcp action=2 type:type len:len vlan_pcp:B 3x
OFPActionStripVlan action=3 type:type len:len 4x
OFPActionSetDlSrc action=4 type:type len:len dl_addr:mac0 6x
OFPActionSetDlDst action=5 type:type len:len dl_addr:mac0 6x
OFPActionSetNwSrc action=6 type:type len:len nw_addr:ip0
OFPActionSetNwDst action=7 type:type len:len nw_addr:ip0
OFPActionSetNwTos action=8 type:type len:len tos:B 3x
OFPActionSetTpSrc action=9 type:type len:len tp:H 2x
OFPActionSetTpDst action=10 type:type len:len tp:H 2x
OFPActionEnqueue action=11 type:type len:len port:H 6x queue_id:I
OFPActionVendorUnknown action=0xffff by_hand

OFPQueuePropNone queueprop=0 property:type len:len 4x
OFPQueuePropMinRate queueprop=1 property:type len:len 4x rate:H 6x
"""

#: The base of the classes of each word behind a name.
BASES = {
    "msg": "MsgBase",
    "request": "OFPStatsRequest",
    "reply": "OFPStatsReply",
    "struct": "Record",
    "tuple": "Record",
    "action": "OFPAction",
    "queueprop": "OFPQueuePropHeader",
}
FAMILIES = {"action": "tlv"}
REQUEST_HEAD = "type:type flags:H=0"


def members_of(family: str, number: str, code: Any) -> Dict[str, Any]:
    """Further members of a class."""
    if family == "request":
        return {"cls_stats_type": int(number, 0)}
    if family == "action":
        return {"cls_action_type": int(number, 0), "cls_action_len": code.size}
    return {}


class OFPStatsRequest(MsgBase):
    """A request for statistics or a description."""

    cls_msg_type = 16
    cls_version = ofproto.OFP_VERSION
    cls_stats_type = -1


class OFPStatsReply(StatsReply):
    """The answer to one."""

    _head = struct.Struct("!HH")
    cls_msg_type = 17
    cls_version = ofproto.OFP_VERSION


class OFPAction(Family):
    """An action."""

    _family = "action"
    _base_attributes = ["type", "len"]


OFPActionHeader = OFPAction


class OFPQueuePropHeader(Family):
    """A property of a queue."""

    _family = "queueprop"


class OFPActionVendor(OFPAction):
    """An action of a vendor."""

    cls_action_type = 0xFFFF


OFPActionExperimenter = OFPActionVendor


class OFPActionVendorUnknown(OFPActionVendor):
    """One that is bytes here; those of Nicira's are classes of their own, where os-ken is."""

    def __init__(
        self, vendor: int, data: Any = None, type_: Any = None, len_: Any = None
    ) -> None:
        self.type, self.len, self.vendor, self.data = 0xFFFF, len_, vendor, data

    def _pack(self) -> bytes:
        data = packet_bytes(self.data)
        data += bytes(-len(data) % 8)
        self.len = 8 + len(data)
        return struct.pack("!HHI", 0xFFFF, self.len, self.vendor) + data

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        _, length, vendor = struct.unpack_from("!HHI", buf, offset)
        data = buf[offset + 8 : offset + length]
        made = nicira.action_of(sys.modules[__name__], vendor, data) or cls(vendor, data)
        made.len = length
        return made, offset + length


_MATCH = struct.Struct("!IH6s6sHBxHBB2xIIHH")

#: The fields in the order of the wire, behind the wildcards.
_FIELDS = (
    "in_port dl_src dl_dst dl_vlan dl_vlan_pcp dl_type nw_tos nw_proto nw_src nw_dst tp_src tp_dst"
).split()
_BITS = {name: getattr(ofproto, f"OFPFW_{name.upper()}", 0) for name in _FIELDS}
_PREFIXES = {"nw_src": ofproto.OFPFW_NW_SRC_SHIFT, "nw_dst": ofproto.OFPFW_NW_DST_SHIFT}


def ipv4_text(number: int) -> str:
    """An IPv4 address as text."""
    return socket.inet_ntoa(number.to_bytes(4, "big"))


class OFPMatch(StringifyMixin):
    """A match: ``OFPMatch(in_port=1, dl_dst="02:00:00:00:00:02")``."""

    def __init__(
        self,
        wildcards: Optional[int] = None,
        in_port: Any = None,
        dl_src: Any = None,
        dl_dst: Any = None,
        dl_vlan: Any = None,
        dl_vlan_pcp: Any = None,
        dl_type: Any = None,
        nw_tos: Any = None,
        nw_proto: Any = None,
        nw_src: Any = None,
        nw_dst: Any = None,
        tp_src: Any = None,
        tp_dst: Any = None,
        nw_src_mask: int = 32,
        nw_dst_mask: int = 32,
    ) -> None:
        self.dl_vlan = self.dl_vlan_pcp = self.dl_type = self.nw_tos = self.nw_proto = 0
        self.tp_src = self.tp_dst = 0
        wc = ofproto.OFPFW_ALL
        if in_port is not None:
            wc &= ~ofproto.OFPFW_IN_PORT
        if dl_src is not None:
            wc &= ~ofproto.OFPFW_DL_SRC
        if dl_dst is not None:
            wc &= ~ofproto.OFPFW_DL_DST
        for name, value in (
            ("dl_vlan", dl_vlan),
            ("dl_vlan_pcp", dl_vlan_pcp),
            ("dl_type", dl_type),
            ("nw_tos", nw_tos),
            ("nw_proto", nw_proto),
            ("tp_src", tp_src),
            ("tp_dst", tp_dst),
        ):
            if value is not None:
                wc &= ~_BITS[name]
            setattr(self, name, value or 0)
        if nw_src is not None:
            wc &= (32 - nw_src_mask) << ofproto.OFPFW_NW_SRC_SHIFT | ~ofproto.OFPFW_NW_SRC_MASK
        if nw_dst is not None:
            wc &= (32 - nw_dst_mask) << ofproto.OFPFW_NW_DST_SHIFT | ~ofproto.OFPFW_NW_DST_MASK
        self.in_port = in_port or 0
        self.dl_src, self.dl_dst = _address(dl_src), _address(dl_dst)
        self.nw_src, self.nw_dst = ip_number(nw_src or 0), ip_number(nw_dst or 0)
        self.wildcards = wc if wildcards is None else wildcards

    def __getitem__(self, name: str) -> Any:
        if name == "wildcards":
            return self.wildcards
        if name in ("nw_src_mask", "nw_dst_mask"):
            return max(32 - (self.wildcards >> _PREFIXES[name[:6]] & 0x3F), 0)
        if name not in _FIELDS or name not in self:
            raise KeyError(name)
        value = getattr(self, name)
        if name in ("dl_src", "dl_dst"):
            return value.hex(":")
        return ipv4_text(value) if name in _PREFIXES else value

    def __contains__(self, name: str) -> bool:
        bit = getattr(ofproto, f"OFPFW_{name.upper()}_MASK", _BITS.get(name, 0))
        return bool(~self.wildcards & bit)

    def _pack(self) -> bytes:
        return _MATCH.pack(
            self.wildcards,
            self.in_port,
            _address(self.dl_src),
            _address(self.dl_dst),
            self.dl_vlan,
            self.dl_vlan_pcp,
            self.dl_type,
            self.nw_tos,
            self.nw_proto,
            ip_number(self.nw_src),
            ip_number(self.nw_dst),
            self.tp_src,
            self.tp_dst,
        )

    def serialize(self, buf: bytearray, offset: int) -> None:
        """Writes it into a message."""
        buf[offset : offset + _MATCH.size] = self._pack()

    @classmethod
    def parse(cls, buf: bytes, offset: int) -> "OFPMatch":
        """The match at a place of a message."""
        return cls(*_MATCH.unpack_from(buf, offset))

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[OFPMatch, int]":
        return cls.parse(buf, offset), offset + _MATCH.size

    def to_jsondict(self, encode_string: Any = None) -> Dict[str, Any]:
        fields = dict(self.__dict__)
        for name in ("dl_src", "dl_dst"):
            fields[name] = fields[name].hex(":")
        for name in _PREFIXES:
            fields[name] = ipv4_text(fields[name])
        return {"OFPMatch": fields}

    @classmethod
    def from_jsondict(cls, dict_: Dict[str, Any], *_others: Any, **_more: Any) -> "OFPMatch":
        return cls(**dict_)


def _address(value: Any) -> bytes:
    if isinstance(value, str):
        return haddr_to_bin(value)
    return value or DONTCARE


TABLE = Table(
    sys.modules[__name__], ofproto, CLASSES, {"NX": "Nicira's messages are not there"}
)
parse = TABLE.parse
__getattr__ = TABLE.attribute
