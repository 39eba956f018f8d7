"""``ryu.ofproto.ofproto_v1_3_parser``: the messages and structures of OpenFlow 1.3.

The rows below are the classes; see :mod:`weir.ryu.ofproto.ofproto_parser`. What no row can say
stands below them.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from weir.ryu.ofproto import nicira, ofproto_v1_3, oxm_fields
from weir.ryu.ofproto.ofproto_parser import (
    Family,
    MsgBase,
    Record,
    StatsReply,
    StringifyMixin,
    Table,
    packet_bytes,
)

ofproto: Any = ofproto_v1_3

UINT64_MAX = (1 << 64) - 1
UINT32_MAX = (1 << 32) - 1
UINT16_MAX = (1 << 16) - 1

CLASSES = """
OFPHello msg=0 elements:[OFPHelloElemVersionBitmap]=None
OFPErrorMsg msg=1 by_hand
OFPEchoRequest msg=2 data:bytes=None
OFPEchoReply msg=3 data:bytes=None
OFPExperimenter msg=4 experimenter:I=None exp_type:I=None data:bytes=None
OFPFeaturesRequest msg=5
OFPSwitchFeatures msg=6 datapath_id:Q=None n_buffers:I=None n_tables:B=None auxiliary_id:B=None \
    2x capabilities:I=None 4x
OFPGetConfigRequest msg=7
OFPGetConfigReply msg=8 flags:H=None miss_send_len:H=None
OFPSetConfig msg=9 flags:H=0 miss_send_len:H=0
OFPPacketIn msg=10 buffer_id:I=None total_len:H=None reason:B=None table_id:B=None cookie:Q=None \
    match:match=None data:padded=None
OFPFlowRemoved msg=11 cookie:Q=None priority:H=None reason:B=None table_id:B=None \
    duration_sec:I=None duration_nsec:I=None idle_timeout:H=None hard_timeout:H=None \
    packet_count:Q=None byte_count:Q=None match:match=None
OFPPortStatus msg=12 reason:B=None 7x desc:one_OFPPort=None
OFPPacketOut msg=13 buffer_id:I=None in_port:I=None actions_len:alen 6x actions:[OFPAction]=None \
    data:bytes=None
OFPFlowMod msg=14 cookie:Q=0 cookie_mask:Q=0 table_id:B=0 command:B=0 idle_timeout:H=0 \
    hard_timeout:H=0 priority:H=0x8000 buffer_id:I=0xffffffff out_port:I=0 out_group:I=0 flags:H=0 \
    2x match:match=None instructions:[OFPInstruction]=None
OFPGroupMod msg=15 command:H=0 type:B=0 1x group_id:I=0 buckets:[OFPBucket]=None
OFPPortMod msg=16 port_no:I=0 4x hw_addr:mac='00:00:00:00:00:00' 2x config:I=0 mask:I=0 \
    advertise:I=0 4x
OFPTableMod msg=17 table_id:B 3x config:I
OFPBarrierRequest msg=20
OFPBarrierReply msg=21
OFPQueueGetConfigRequest msg=22 port:I 4x
OFPQueueGetConfigReply msg=23 port:I=None 4x queues:[OFPPacketQueue]=None
OFPRoleRequest msg=24 role:I=None 4x generation_id:Q=None
OFPRoleReply msg=25 role:I=None 4x generation_id:Q=None
OFPGetAsyncRequest msg=26
OFPGetAsyncReply msg=27 packet_in_mask:2I=None port_status_mask:2I=None flow_removed_mask:2I=None
OFPSetAsync msg=28 packet_in_mask:2I port_status_mask:2I flow_removed_mask:2I
OFPMeterMod msg=29 command:H=0 flags:H=1 meter_id:I=1 bands:[OFPMeterBandHeader]=None

OFPDescStatsRequest request=0
OFPFlowStatsRequest request=1 table_id:B=255 3x out_port:I=0xffffffff out_group:I=0xffffffff 4x \
    cookie:Q=0 cookie_mask:Q=0 match:match=None
OFPAggregateStatsRequest request=2 table_id:B=255 3x out_port:I=0xffffffff \
    out_group:I=0xffffffff 4x cookie:Q=0 cookie_mask:Q=0 match:match=None
OFPTableStatsRequest request=3
OFPPortStatsRequest request=4 port_no:I=0xffffffff 4x
OFPQueueStatsRequest request=5 port_no:I=0xffffffff queue_id:I=0xffffffff
OFPGroupStatsRequest request=6 group_id:I=0xfffffffc 4x
OFPGroupDescStatsRequest request=7
OFPGroupFeaturesStatsRequest request=8
OFPMeterStatsRequest request=9 meter_id:I=0xffffffff 4x
OFPMeterConfigStatsRequest request=10 meter_id:I=0xffffffff 4x
OFPMeterFeaturesStatsRequest request=11
OFPTableFeaturesStatsRequest request=12 body:[OFPTableFeaturesStats]=None
OFPPortDescStatsRequest request=13
OFPExperimenterStatsRequest request=0xffff experimenter:I=None exp_type:I=None data:bytes=None

OFPDescStatsReply reply=0 OFPDescStats!
OFPFlowStatsReply reply=1 OFPFlowStats
OFPAggregateStatsReply reply=2 OFPAggregateStats!
OFPTableStatsReply reply=3 OFPTableStats
OFPPortStatsReply reply=4 OFPPortStats
OFPQueueStatsReply reply=5 OFPQueueStats
OFPGroupStatsReply reply=6 OFPGroupStats
OFPGroupDescStatsReply reply=7 OFPGroupDescStats
OFPGroupFeaturesStatsReply reply=8 OFPGroupFeaturesStats!
OFPMeterStatsReply reply=9 OFPMeterStats
OFPMeterConfigStatsReply reply=10 OFPMeterConfigStats
OFPMeterFeaturesStatsReply reply=11 OFPMeterFeaturesStats
OFPTableFeaturesStatsReply reply=12 OFPTableFeaturesStats
OFPPortDescStatsReply reply=13 OFPPort
OFPExperimenterStatsReply reply=0xffff OFPExperimenterMultipart!

OFPDescStats tuple mfr_desc:s256 hw_desc:s256 sw_desc:s256 serial_num:s32 dp_desc:s256
OFPFlowStats struct length:len table_id:B=None 1x duration_sec:I=None duration_nsec:I=None \
    priority:H=None idle_timeout:H=None hard_timeout:H=None flags:H=None 4x cookie:Q=None \
    packet_count:Q=None byte_count:Q=None match:match=None instructions:[OFPInstruction]=None
OFPAggregateStats tuple packet_count:Q byte_count:Q flow_count:I 4x
OFPTableStats tuple table_id:B 3x active_count:I lookup_count:Q matched_count:Q
OFPPortStats tuple port_no:I 4x rx_packets:Q tx_packets:Q rx_bytes:Q tx_bytes:Q rx_dropped:Q \
    tx_dropped:Q rx_errors:Q tx_errors:Q rx_frame_err:Q rx_over_err:Q rx_crc_err:Q collisions:Q \
    duration_sec:I duration_nsec:I
OFPQueueStats tuple port_no:I queue_id:I tx_bytes:Q tx_packets:Q tx_errors:Q duration_sec:I \
    duration_nsec:I
OFPGroupStats struct length:len 2x group_id:I=None ref_count:I=None 4x packet_count:Q=None \
    byte_count:Q=None duration_sec:I=None duration_nsec:I=None bucket_stats:[OFPBucketCounter]=None
OFPBucketCounter struct packet_count:Q byte_count:Q
OFPGroupDescStats struct length:len type:B=None 1x group_id:I=None buckets:[OFPBucket]=None
OFPGroupFeaturesStats tuple types:I capabilities:I max_groups:4I actions:4I
OFPMeterStats struct meter_id:I=None len:len 6x flow_count:I=None packet_in_count:Q=None \
    byte_in_count:Q=None duration_sec:I=None duration_nsec:I=None \
    band_stats:[OFPMeterBandStats]=None
OFPMeterBandStats struct packet_band_count:Q byte_band_count:Q
OFPMeterConfigStats struct length:len flags:H=None meter_id:I=None bands:[OFPMeterBandHeader]=None
OFPMeterFeaturesStats tuple max_meter:I band_types:I capabilities:I max_bands:B max_color:B 2x
OFPTableFeaturesStats struct length:len table_id:B=None 5x name:s32=None metadata_match:Q=None \
    metadata_write:Q=None config:I=None max_entries:I=None properties:[OFPTableFeatureProp]=None
OFPExperimenterMultipart struct experimenter:I=None exp_type:I=None data:bytes=None
OFPPort tuple port_no:I 4x hw_addr:mac 2x name:s16 config:I state:I curr:I advertised:I \
    supported:I peer:I curr_speed:I max_speed:I
OFPBucket struct len:len weight:H=0 watch_port:I=0xffffffff watch_group:I=0xffffffff 4x \
    actions:[OFPAction]=None
OFPPacketQueue struct queue_id:I port:I len:len 6x properties:[OFPQueueProp]=None

OFPActionOutput action=0 type:type len:len port:I max_len:H=0xffe5 6x
OFPActionCopyTtlOut action=11 type:type len:len 4x
OFPActionCopyTtlIn action=12 type:type len:len 4x
OFPActionSetMplsTtl action=15 type:type len:len mpls_ttl:B 3x
OFPActionDecMplsTtl action=16 type:type len:len 4x
OFPActionPushVlan action=17 type:type len:len ethertype:H=0x8100 2x
OFPActionPopVlan action=18 type:type len:len 4x
OFPActionPushMpls action=19 type:type len:len ethertype:H=0x8847 2x
OFPActionPopMpls action=20 type:type len:len ethertype:H=0x0800 2x
OFPActionSetQueue action=21 type:type len:len queue_id:I
OFPActionGroup action=22 type:type len:len group_id:I=0
OFPActionSetNwTtl action=23 type:type len:len nw_ttl:B 3x
OFPActionDecNwTtl action=24 type:type len:len 4x
OFPActionSetField action=25 by_hand
OFPActionPushPbb action=26 type:type len:len ethertype:H 2x
OFPActionPopPbb action=27 type:type len:len 4x
OFPActionExperimenterUnknown action=0xffff by_hand

OFPInstructionGotoTable instruction=1 type:type len:len table_id:B 3x
OFPInstructionWriteMetadata instruction=2 type:type len:len 4x metadata:Q metadata_mask:Q
OFPInstructionActions instruction=4 type:H len:len 4x actions:[OFPAction]=None
OFPInstructionMeter instruction=6 type:type len:len meter_id:I=1

OFPMeterBandDrop band=1 type:type len:len rate:I=0 burst_size:I=0 4x
OFPMeterBandDscpRemark band=2 type:type len:len rate:I=0 burst_size:I=0 prec_level:B=0 3x
OFPMeterBandExperimenter band=0xffff type:type len:len rate:I=0 burst_size:I=0 experimenter:I=None

OFPQueuePropMinRate queueprop=1 property:type len:len 4x rate:H 6x
OFPQueuePropMaxRate queueprop=2 property:type len:len 4x rate:H 6x
OFPQueuePropExperimenter queueprop=0xffff property:type len:len 4x experimenter:I 4x \
    data:bytelist=None

OFPTableFeaturePropInstructions prop=0 type:H=None length:len \
    instruction_ids:[OFPInstructionId]=None
OFPTableFeaturePropNextTables prop=2 type:H=None length:len table_ids:bytelist=None
OFPTableFeaturePropActions prop=4 type:H=None length:len action_ids:[OFPActionId]=None
OFPTableFeaturePropOxm prop=8 type:H=None length:len oxm_ids:[OFPOxmId]=None
OFPTableFeaturePropExperimenter prop=0xfffe type:H=None length:len experimenter:I=None \
    exp_type:I=None data:wordlist=None
OFPInstructionId struct type:H len:len
OFPActionId struct type:H len:len
"""

#: The base of the classes of each word behind a name.
BASES = {
    "msg": "MsgBase",
    "request": "OFPMultipartRequest",
    "reply": "OFPMultipartReply",
    "struct": "Record",
    "tuple": "Record",
    "action": "OFPAction",
    "instruction": "OFPInstruction",
    "band": "OFPMeterBandHeader",
    "queueprop": "OFPQueueProp",
    "prop": "OFPTableFeatureProp",
}
FAMILIES = {"action": "tlv", "instruction": "tlv", "band": "tlv"}
REQUEST_HEAD = "type:type flags:H=0 4x"


def members_of(family: str, number: str, code: Any) -> Dict[str, Any]:
    """Further members of a class."""
    if family == "request":
        return {"cls_stats_type": int(number, 0)}
    if family == "action":
        return {"cls_action_type": int(number, 0), "cls_action_len": code.size}
    if family == "band":
        return {"cls_meter_band_type": int(number, 0), "cls_meter_band_len": code.size}
    return {}


class OFPMultipartRequest(MsgBase):
    """A request for statistics or a description."""

    cls_msg_type = 18
    cls_version = ofproto.OFP_VERSION
    cls_stats_type = -1


class OFPMultipartReply(StatsReply):
    """The answer to one."""

    cls_msg_type = 19
    cls_version = ofproto.OFP_VERSION


class OFPAction(Family):
    """An action."""

    _family = "action"


OFPActionHeader = OFPAction


class OFPInstruction(Family):
    """An instruction."""

    _family = "instruction"


class OFPMeterBandHeader(Family):
    """A band of a meter."""

    _family = "band"


OFPMeterBand = OFPMeterBandHeader


class OFPQueueProp(Family):
    """A property of a queue."""

    _family = "queueprop"


OFPQueuePropHeader = OFPQueueProp


class OFPTableFeatureProp(Family):
    """A property of a table's features."""

    _family = "prop"


class OFPMatch(StringifyMixin):
    """A match: ``OFPMatch(in_port=1, eth_dst="02:00:00:00:00:02")``.

    The fields are kept as they are on the wire, and read when they are asked for.
    """

    _encode = staticmethod(oxm_fields.encode)

    def __init__(
        self,
        type_: Optional[int] = None,
        length: Optional[int] = None,
        _ordered_fields: Optional[List[Tuple[str, Any]]] = None,
        **kwargs: Any,
    ) -> None:
        self.type = 1
        self.length = length
        self._fields: Optional[List[Tuple[str, Any]]] = None
        encode = self._encode
        if _ordered_fields is not None:
            self._tlvs = [encode(name, value)[1] for name, value in _ordered_fields]
        elif kwargs:
            pairs = [encode(name, value) for name, value in kwargs.items()]
            if len(pairs) > 1:
                pairs.sort(key=_order)
            self._tlvs = [data for _, data in pairs]
        else:
            self._tlvs = []

    @property
    def _fields2(self) -> List[Tuple[str, Any]]:
        if self._fields is None:
            self._fields = [oxm_fields.decode(data) for data in self._tlvs]
        return self._fields

    def __getitem__(self, key: str) -> Any:
        return dict(self._fields2)[key]

    def __contains__(self, key: str) -> bool:
        return any(name == key for name, _ in self._fields2)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a field, or another one."""
        return dict(self._fields2).get(key, default)

    def items(self) -> List[Tuple[str, Any]]:
        """The fields with their values."""
        return self._fields2

    def iteritems(self) -> Iterator[Tuple[str, Any]]:
        """The same, one after the other."""
        return iter(dict(self._fields2).items())

    @property
    def fields(self) -> List[OFPMatchField]:
        """The fields by Ryu's first interface."""
        pairs = zip(self._tlvs, self._fields2)
        return [OFPMatchField(data, value) for data, (_, value) in pairs]

    def append_field(self, header: int, value: Any, mask: Any = None) -> None:
        """Adds a field by the number of its header (``ofproto.OXM_OF_*``)."""
        field = oxm_fields.BY_HEAD.get(header.to_bytes(4, "big"))
        if field is None:
            raise KeyError(f"unknown OXM field: {header:#x}")
        user = value if mask is None else (value, mask)
        if isinstance(value, int) and field.size in (4, 6, 16):
            packed = value.to_bytes(field.size, "big")
            user = field.to_user(packed)
            if mask is not None:
                user = (user, field.to_user(mask.to_bytes(field.size, "big")))
        order_of = self._encode(field.name, user)
        self._tlvs.append(order_of[1])
        self._tlvs.sort()
        self._fields = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("set_"):
            return _OldSetter(self, name[4:])
        raise AttributeError(f"OFPMatch has no {name}")

    def stringify_attrs(self) -> Iterator[Tuple[str, Any]]:
        yield "oxm_fields", dict(self._fields2)

    def to_jsondict(self, encode_string: Any = None) -> Dict[str, Any]:
        fields = [oxm_fields.oxm_to_jsondict(name, value) for name, value in self._fields2]
        body = {"oxm_fields": fields, "length": self.length, "type": self.type}
        return {"OFPMatch": body}

    @classmethod
    def from_jsondict(cls, dict_: Dict[str, Any], *_others: Any, **_more: Any) -> "OFPMatch":
        fields = [oxm_fields.oxm_from_jsondict(field) for field in dict_["oxm_fields"]]
        made = cls(_ordered_fields=fields)
        made._pack()
        return made

    def _pack(self) -> bytes:
        data = b"".join(self._tlvs)
        self.length = length = 4 + len(data)
        return b"\0\1" + length.to_bytes(2, "big") + data + _PADS[length & 7]

    def serialize(self, buf: bytearray, offset: int) -> int:
        """Writes it into a message; its length."""
        data = self._pack()
        buf[offset : offset + len(data)] = data
        return len(data)

    @classmethod
    def parser(cls, buf: bytes, offset: int) -> "OFPMatch":
        """The match at a place of a message."""
        return cls._take(bytes(buf), offset, len(buf))[0]

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[OFPMatch, int]":
        self = cls.__new__(cls)
        kind, length = struct.unpack_from("!HH", buf, offset)
        if length < 4 or offset + length > end:
            raise struct.error(f"a match of {length} bytes at byte {offset}")
        self.type, self.length, self._fields = kind, length, None
        self._tlvs = tlvs = []
        at, stop = offset + 4, offset + length
        while at < stop:
            after = at + 4 + buf[at + 3]
            tlvs.append(buf[at:after])
            at = after
        return self, offset + (length + 7) // 8 * 8


_PADS = [bytes(-length % 8) for length in range(8)]


def _order(pair: Tuple[int, bytes]) -> int:
    return pair[0]


#: The fields of the setters of Ryu's first interface, by the word behind ``set_``.
_OLD = {"dl_dst": "eth_dst", "dl_src": "eth_src", "dl_type": "eth_type"}


class OFPMatchField:
    """A field by Ryu's first interface: the number of its header, value and mask."""

    def __init__(self, data: bytes, value: Any) -> None:
        self.header = int.from_bytes(data[:4], "big")
        self.value, self.mask = value if isinstance(value, tuple) else (value, None)


class _OldSetter:
    """``match.set_in_port(1)``, ``match.set_ipv4_src_masked(value, mask)``."""

    def __init__(self, match: OFPMatch, word: str) -> None:
        self._match, self._is_masked = match, word.endswith("_masked")
        word = word.removesuffix("_masked")
        name = _OLD.get(word, word)
        if name not in oxm_fields.BY_NAME:
            raise AttributeError(f"OFPMatch has no set_{word}")
        self._field = oxm_fields.BY_NAME[name]

    def __call__(self, value: Any, mask: Any = None) -> None:
        if self._field.name == "vlan_vid":
            value |= 0x1000
        head = self._field.head if mask is None else self._field.head_masked
        self._match.append_field(int.from_bytes(head[:4], "big"), value, mask)


class OFPErrorMsg(MsgBase):
    """The switch refuses a message; an experimenter's error has another number for the code."""

    cls_msg_type = 1
    cls_version = ofproto.OFP_VERSION

    def __init__(
        self, datapath: Any, type_: Any = None, code: Any = None, data: Any = None, **others: Any
    ) -> None:
        super().__init__(datapath)
        self.type, self.code = type_, code
        self.data = data.encode("ascii") if isinstance(data, str) else data
        if type_ == ofproto.OFPET_EXPERIMENTER:
            self.exp_type, self.experimenter = others.get("exp_type"), others.get("experimenter")

    def _pack(self) -> bytes:
        data = packet_bytes(self.data)
        if self.type == ofproto.OFPET_EXPERIMENTER:
            return struct.pack("!HHI", self.type, self.exp_type, self.experimenter) + data
        return struct.pack("!HH", self.type, self.code) + data

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        number, code = struct.unpack_from("!HH", buf, offset)
        if number != ofproto.OFPET_EXPERIMENTER:
            return cls(None, number, code, buf[offset + 4 : end]), end
        (experimenter,) = struct.unpack_from("!I", buf, offset + 4)
        data = buf[offset + 8 : end]
        return cls(None, number, None, data, exp_type=code, experimenter=experimenter), end


class OFPHelloElemVersionBitmap(Record):
    """The versions that a party speaks."""

    def __init__(self, versions: Any, type_: Any = None, length: Any = None) -> None:
        self.type, self.length, self.versions = 1, length, versions

    def _pack(self) -> bytes:
        words = [0] * (max(self.versions, default=0) // 32 + 1)
        for version in self.versions:
            words[version // 32] |= 1 << version % 32
        self.length = 4 + 4 * len(words)
        data = struct.pack(f"!HH{len(words)}I", 1, self.length, *words)
        return data + bytes(-len(data) % 8)

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        kind, length = struct.unpack_from("!HH", buf, offset)
        words = struct.unpack_from(f"!{(length - 4) // 4}I", buf, offset + 4)
        versions = [
            32 * place + bit for place, word in enumerate(words) for bit in range(32)
            if word >> bit & 1
        ]
        made = cls(versions)
        made.type, made.length = kind, length
        return made, offset + (length + 7) // 8 * 8


class OFPActionSetField(OFPAction):
    """Sets one field: ``OFPActionSetField(eth_src="02:00:00:00:00:01")``."""

    cls_action_type = 25
    cls_action_len = 8
    _encode = staticmethod(oxm_fields.encode)
    _takes_mask = False

    def __init__(self, field: Any = None, **kwargs: Any) -> None:
        if len(kwargs) != 1:
            raise AssertionError(f"OFPActionSetField takes one field, not {len(kwargs)}")
        self.type, self.len = 25, 8
        ((self.key, self.value),) = kwargs.items()
        if isinstance(self.value, tuple) and not self._takes_mask:
            raise AssertionError("OFPActionSetField takes a mask since OpenFlow 1.5")
        self._encode(self.key, self.value)

    def _pack(self) -> bytes:
        data = self._encode(self.key, self.value)[1]
        self.len = (4 + len(data) + 7) // 8 * 8
        return struct.pack("!HH", 25, self.len) + data + bytes(self.len - 4 - len(data))

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        self = cls.__new__(cls)
        self.type, self.len = struct.unpack_from("!HH", buf, offset)
        self.key, self.value = oxm_fields.decode(buf[offset + 4 : offset + 8 + buf[offset + 7]])
        return self, offset + self.len

    def to_jsondict(self, encode_string: Any = None) -> Dict[str, Any]:
        field = oxm_fields.oxm_to_jsondict(self.key, self.value)
        return {"OFPActionSetField": {"field": field, "len": self.len, "type": self.type}}

    @classmethod
    def from_jsondict(cls, dict_: Dict[str, Any], *_others: Any, **_more: Any) -> Any:
        name, value = oxm_fields.oxm_from_jsondict(dict_["field"])
        made = cls(**{name: value})
        made._pack()
        return made

    def stringify_attrs(self) -> Iterator[Tuple[str, Any]]:
        yield self.key, self.value


class OFPActionExperimenter(OFPAction):
    """An action of an experimenter."""

    cls_action_type = 0xFFFF


class OFPActionExperimenterUnknown(OFPActionExperimenter):
    """One that is bytes here; those of Nicira's are classes of their own, where os-ken is."""

    def __init__(
        self, experimenter: int, data: Any = None, type_: Any = None, len_: Any = None
    ) -> None:
        self.type, self.len, self.experimenter, self.data = 0xFFFF, len_, experimenter, data

    def _pack(self) -> bytes:
        data = packet_bytes(self.data)
        data += bytes(-len(data) % 8)
        self.len = 8 + len(data)
        return struct.pack("!HHI", 0xFFFF, self.len, self.experimenter) + data

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        _, length, experimenter = struct.unpack_from("!HHI", buf, offset)
        data = buf[offset + 8 : offset + length]
        made = nicira.action_of(sys.modules[cls.__module__], experimenter, data)
        made = made or cls(experimenter, data)
        made.len = length
        return made, offset + length


class OFPOxmId(Record):
    """The id of a match field."""

    _TYPE = {"ascii": ["type"]}
    _name = staticmethod(oxm_fields.oxm_to_user_header)

    def __init__(self, type_: str, hasmask: Any = False, length: Any = None) -> None:
        self.type, self.hasmask, self.length = type_, hasmask, length

    def _pack(self) -> bytes:
        number = oxm_fields.oxm_from_user_header(self.type)
        extra = b""
        if isinstance(number, tuple):
            extra, number = number[0].to_bytes(4, "big"), number[1]
        self.length = 0
        head: bytes = (number << 9 | int(self.hasmask) << 8).to_bytes(4, "big")
        return head + extra

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        (oxm,) = struct.unpack_from("!I", buf, offset)
        hasmask, length = oxm >> 8 & 1, oxm & 0xFF
        if oxm >> 16 != 0xFFFF:
            return cls(cls._name(oxm >> 9), hasmask, length), offset + 4
        (exp_id,) = struct.unpack_from("!I", buf, offset + 4)
        made = sys.modules[cls.__module__].OFPExperimenterOxmId
        return made(cls._name(oxm >> 9), exp_id, hasmask, length), offset + 8


class OFPExperimenterOxmId(OFPOxmId):
    """The id of a match field of an experimenter."""

    def __init__(
        self, type_: str, exp_id: int, hasmask: Any = False, length: Any = None
    ) -> None:
        super().__init__(type_, hasmask, length)
        self.exp_id = exp_id

    def _pack(self) -> bytes:
        return super()._pack() + self.exp_id.to_bytes(4, "big")


#: Types whose class has a row with another number.
OTHER_TYPES = (
    {("instruction", number): "OFPInstructionActions" for number in (3, 5)}
    | {("prop", 1): "OFPTableFeaturePropInstructions", ("prop", 3): "OFPTableFeaturePropNextTables"}
    | {("prop", number): "OFPTableFeaturePropActions" for number in (5, 6, 7)}
    | {("prop", number): "OFPTableFeaturePropOxm" for number in (10, 12, 13, 14, 15)}
    | {("prop", 0xFFFF): "OFPTableFeaturePropExperimenter"}
)
TABLE = Table(
    sys.modules[__name__], ofproto, CLASSES, {"NX": "Nicira's messages are not there"}
)
TABLE.by_type.update(OTHER_TYPES)
parse = TABLE.parse
__getattr__ = TABLE.attribute
