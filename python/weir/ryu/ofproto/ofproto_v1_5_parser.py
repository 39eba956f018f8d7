"""``ryu.ofproto.ofproto_v1_5_parser``: the messages and structures of OpenFlow 1.5.

Most are those of 1.4; the rows below take the place of some of its rows, and add others. Messages
that Weir's switch refuses and its controller does not read are not there: see ``ABSENT``.
"""

from __future__ import annotations

import base64
import struct
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from weir.ryu.ofproto import ofproto_v1_3_parser as first
from weir.ryu.ofproto import ofproto_v1_4_parser as before
from weir.ryu.ofproto import ofproto_v1_5, oxm_fields
from weir.ryu.ofproto.ofproto_parser import (
    Family,
    MsgBase,  # noqa: F401 - of BASES
    Record,
    StringifyMixin,
    Table,
    inherit,
    rows_after,
)

ofproto: Any = ofproto_v1_5

UINT64_MAX = (1 << 64) - 1
UINT32_MAX = (1 << 32) - 1
UINT16_MAX = (1 << 16) - 1

#: Rows and classes of 1.4 that 1.5 has no more.
GONE = ("OFPFlowStats", "OFPInstructionMeter", "OFPMeterConfig")

CLASSES = """
OFPFlowRemoved msg=11 table_id:B=None reason:B=None priority:H=None idle_timeout:H=None \
    hard_timeout:H=None cookie:Q=None match:match=None stats:one_OFPStats=None
OFPPacketOut msg=13 buffer_id:I=0xffffffff actions_len:alen 2x match:match=None \
    actions:[OFPAction]=None data:bytes=None
OFPGroupMod msg=15 command:H=0 type:B=0 1x group_id:I=0 bucket_array_len:alen 2x \
    command_bucket_id:I=0xffffffff buckets:[OFPBucket]=None properties:[OFPGroupProp]=None
OFPRoleRequest msg=24 role:I=None short_id:H=0 2x generation_id:Q=None
OFPRoleReply msg=25 role:I=None short_id:H=None 2x generation_id:Q=None
OFPControllerStatus msg=35 status:one_OFPControllerStatusStats=None

OFPFlowDescStatsRequest request=1 table_id:B=255 3x out_port:I=0xffffffff out_group:I=0xffffffff \
    4x cookie:Q=0 cookie_mask:Q=0 match:match=None
OFPGroupDescStatsRequest request=7 group_id:I=0xfffffffc 4x
OFPMeterDescStatsRequest request=10 meter_id:I=0xffffffff 4x
OFPPortDescStatsRequest request=13 port_no:I=0xffffffff 4x
OFPFlowDescStatsReply reply=1 OFPFlowDesc
OFPMeterDescStatsReply reply=10 OFPMeterDescStats

OFPFlowDesc struct length:len 2x table_id:B=None 1x priority:H=None idle_timeout:H=None \
    hard_timeout:H=None flags:H=None importance:H=None cookie:Q=None match:match=None \
    stats:one_OFPStats=None instructions:[OFPInstruction]=None
OFPAggregateStats struct by_hand
OFPGroupDescStats struct length:len type:B=None 1x group_id:I=None bucket_array_len:alen 6x \
    buckets:[OFPBucket]=None properties:[OFPGroupProp]=None
OFPMeterStats struct meter_id:I=None len:len 6x ref_count:I=None packet_in_count:Q=None \
    byte_in_count:Q=None duration_sec:I=None duration_nsec:I=None \
    band_stats:[OFPMeterBandStats]=None
OFPMeterDescStats struct length:len flags:H=None meter_id:I=None bands:[OFPMeterBandHeader]=None
OFPMeterFeaturesStats tuple max_meter:I band_types:I capabilities:I max_bands:B max_color:B 2x \
    features:I 4x
OFPTableFeaturesStats struct length:len table_id:B=None command:B=None features:I=None \
    name:s32=None metadata_match:Q=None metadata_write:Q=None capabilities:I=None \
    max_entries:I=None properties:[OFPTableFeatureProp]=None
OFPControllerStatusStats struct length:len short_id:H=None role:I=None reason:B=None \
    channel_status:B=None 6x properties:[OFPControllerStatusProp]=None
OFPBucket struct len:len action_array_len:alen bucket_id:I=0 actions:[OFPAction]=None \
    properties:[OFPGroupBucketProp]=None
OFPTime struct seconds:Q=None nanoseconds:I=None 4x

OFPActionCopyField action=28 by_hand
OFPActionMeter action=29 type:type len:len meter_id:I

OFPGroupBucketPropWeight bucket=0 type:H=0 length:len weight:H=None 2x
OFPGroupBucketPropWatch bucket=1 type:H=None length:len watch:I=None
OFPPortDescPropOxm portdesc=2 type:H=None length:len oxm_ids:[OFPOxmId]=None
OFPPortDescPropRecirculate portdesc=4 type:H=4 length:len port_nos:wordlist=None
OFPTableFeaturePropOxmValues prop=22 by_hand
OFPControllerStatusPropUri controller=0 type:H=0 length:len uri:text=None
OFPBundlePropTime bundle=1 type:H=1 length:len 4x scheduled_time:one_OFPTime=None
"""

#: Families of properties that 1.4 does not have, with the beginnings of their classes' names.
PROPERTIES = {
    "group": "OFPGroupProp",
    "bucket": "OFPGroupBucketProp",
    "controller": "OFPControllerStatusProp",
}

BASES = {**before.BASES, **PROPERTIES}
FAMILIES = {**before.FAMILIES, **dict.fromkeys(PROPERTIES, "prop")}
REQUEST_HEAD = before.REQUEST_HEAD
members_of = before.members_of


class Pairs(StringifyMixin):
    """Fields with their values, in the attribute ``_pairs``."""

    _pairs = ""

    def _get(self) -> List[Tuple[str, Any]]:
        pairs: List[Tuple[str, Any]] = getattr(self, self._pairs)
        return pairs

    def __getitem__(self, key: str) -> Any:
        return dict(self._get())[key]

    def __contains__(self, key: str) -> bool:
        return any(name == key for name, _ in self._get())

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a field, or another one."""
        return dict(self._get()).get(key, default)

    def items(self) -> List[Tuple[str, Any]]:
        """The fields with their values."""
        return self._get()

    def iteritems(self) -> Iterator[Tuple[str, Any]]:
        """The same, one after the other."""
        return iter(dict(self._get()).items())


#: The fields of statistics: number, and the format of the value.
OXS = {
    "duration": (0, struct.Struct("!II")),
    "idle_time": (1, struct.Struct("!II")),
    "flow_count": (3, struct.Struct("!I")),
    "packet_count": (4, struct.Struct("!Q")),
    "byte_count": (5, struct.Struct("!Q")),
}
_OXS_NAMES = {0x8002 << 7 | number: name for name, (number, _) in OXS.items()}


def _oxs_bytes(name: str, value: Any) -> bytes:
    """A field of statistics with its header."""
    if name in OXS:
        number, form = OXS[name]
        data = form.pack(*value) if isinstance(value, (tuple, list)) else form.pack(value)
        return (0x8002 << 16 | number << 9 | len(data)).to_bytes(4, "big") + data
    if not name.startswith("field_"):
        raise KeyError(f"unknown OXS field: {name}")
    data = base64.b64decode(value)
    return (int(name[6:]) << 9 | len(data)).to_bytes(4, "big") + data


class OFPStats(Pairs, Record):
    """Statistics of a flow entry: ``stats["packet_count"]``, ``stats["duration"]`` in two parts."""

    _pairs = "fields"

    def __init__(
        self,
        length: Optional[int] = None,
        _ordered_fields: Optional[List[Tuple[str, Any]]] = None,
        **kwargs: Any,
    ) -> None:
        self.length = length
        if _ordered_fields is None:
            _ordered_fields = sorted(kwargs.items(), key=lambda pair: _oxs_bytes(*pair)[:4])
        self.fields = _ordered_fields

    def _pack(self) -> bytes:
        data = b"".join([_oxs_bytes(name, value) for name, value in self.fields])
        self.length = length = 4 + len(data)
        return struct.pack("!HH", 0, length) + data + bytes(-length % 8)

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        _, length = struct.unpack_from("!HH", buf, offset)
        if length < 4 or offset + length > end:
            raise struct.error(f"statistics of {length} bytes at byte {offset}")
        fields: List[Tuple[str, Any]] = []
        at, stop = offset + 4, offset + length
        while at < stop:
            number = int.from_bytes(buf[at : at + 4], "big") >> 9
            value = buf[at + 4 : at + 4 + buf[at + 3]]
            at += 4 + buf[at + 3]
            name = _OXS_NAMES.get(number)
            if name is None:
                fields.append((f"field_{number}", base64.b64encode(value).decode("ascii")))
                continue
            numbers = OXS[name][1].unpack(value)
            fields.append((name, numbers if len(numbers) > 1 else numbers[0]))
        return cls(length, fields), offset + (length + 7) // 8 * 8

    def stringify_attrs(self) -> Iterator[Tuple[str, Any]]:
        yield "oxs_fields", dict(self.fields)

    def to_jsondict(self, encode_string: Any = None) -> Dict[str, Any]:
        fields = [{"OXSTlv": {"field": name, "value": value}} for name, value in self.fields]
        return {"OFPStats": {"oxs_fields": fields, "length": self.length}}

    @classmethod
    def from_jsondict(cls, dict_: Dict[str, Any], *_others: Any, **_more: Any) -> Any:
        tlvs = [field["OXSTlv"] for field in dict_["oxs_fields"]]
        return cls(dict_.get("length"), [(tlv["field"], tlv["value"]) for tlv in tlvs])


class OFPAggregateStats(Record):
    """The sums of flow entries."""

    def __init__(self, stats: Any = None, length: Optional[int] = None) -> None:
        self.stats, self.length = stats, length

    def _pack(self) -> bytes:
        data: bytes = self.stats._pack()
        self.length = len(data)
        return data

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        stats, after = OFPStats._take(buf, offset, end)
        return cls(stats, after - offset), after


class OFPMatch(before.OFPMatch):
    """A match."""

    _encode = staticmethod(oxm_fields.encode_1_5)


class OFPAction(before.OFPAction):
    """An action."""


class OFPActionSetField(before.OFPActionSetField, OFPAction):
    """Sets one field, or with a mask a part of it: ``OFPActionSetField(eth_src=(value, mask))``."""

    _encode = staticmethod(oxm_fields.encode_1_5)
    _takes_mask = True


_NAMES = {field.num: field.name for field in oxm_fields.BY_NAME_1_5.values()}


def _name_of(n: Any) -> str:
    return _NAMES.get(n, f"field_{n}")


class OFPOxmId(first.OFPOxmId):
    """The id of a match field, with the length of its value."""

    _name = staticmethod(_name_of)

    def _pack(self) -> bytes:
        field = oxm_fields.BY_NAME_1_5.get(self.type)
        if field is None:
            number = oxm_fields.oxm_from_user_header(self.type)
            head: bytes = (number << 9 | int(self.hasmask) << 8).to_bytes(4, "big")
        else:
            head = field.head_masked if self.hasmask else field.head
        self.length = length = self.length or head[3]
        return head[:3] + bytes([length]) + head[4:]


class OFPActionCopyField(OFPAction):
    """Copies bits: ``OFPActionCopyField(48, 0, 0, ["eth_src", "eth_dst"])``."""

    cls_action_type = 28
    cls_action_len = 12
    _head = struct.Struct("!HHHHH2x")

    def __init__(
        self,
        n_bits: int = 0,
        src_offset: int = 0,
        dst_offset: int = 0,
        oxm_ids: Any = None,
        type_: Optional[int] = None,
        len_: Optional[int] = None,
    ) -> None:
        if oxm_ids is None or len(oxm_ids) != 2:
            raise AssertionError("OFPActionCopyField takes two oxm_ids: source and destination")
        self.type, self.len = 28, len_ or 12
        self.n_bits, self.src_offset, self.dst_offset = n_bits, src_offset, dst_offset
        self.oxm_ids = [OFPOxmId(one) if isinstance(one, str) else one for one in oxm_ids]

    def _pack(self) -> bytes:
        data = b"".join([one._pack() for one in self.oxm_ids])
        self.len = (12 + len(data) + 7) // 8 * 8
        head = self._head.pack(28, self.len, self.n_bits, self.src_offset, self.dst_offset)
        return head + data + bytes(self.len - 12 - len(data))

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        _, length, n_bits, src_offset, dst_offset = cls._head.unpack_from(buf, offset)
        source, at = OFPOxmId._take(buf, offset + 12, end)
        destination, _ = OFPOxmId._take(buf, at, end)
        made = cls(n_bits, src_offset, dst_offset, [source, destination], len_=length)
        return made, offset + length


class OFPTableFeatureProp(first.OFPTableFeatureProp):
    """A property of a table's features."""


class OFPTableFeaturePropOxmValues(Pairs, OFPTableFeatureProp):
    """Values of a field: the types of packets of a table."""

    _pairs = "oxm_values"

    def __init__(
        self,
        type_: Optional[int] = None,
        length: Optional[int] = None,
        _ordered_values: Optional[List[Tuple[str, Any]]] = None,
        **kwargs: Any,
    ) -> None:
        self.type, self.length = 22 if type_ is None else type_, length
        if _ordered_values is None:
            pairs = sorted(oxm_fields.encode_1_5(name, value) for name, value in kwargs.items())
            _ordered_values = [oxm_fields.decode(data) for _, data in pairs]
        self.oxm_values = _ordered_values

    def _pack(self) -> bytes:
        encode = oxm_fields.encode_1_5
        data = b"".join([encode(name, value)[1] for name, value in self.oxm_values])
        self.length = length = 4 + len(data)
        return struct.pack("!HH", self.type, length) + data + bytes(-length % 8)

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        kind, length = struct.unpack_from("!HH", buf, offset)
        values: List[Tuple[str, Any]] = []
        at, stop = offset + 4, offset + length
        while at < stop:
            after = at + 4 + buf[at + 3]
            values.append(oxm_fields.decode(buf[at:after]))
            at = after
        return cls(kind, length, values), offset + (length + 7) // 8 * 8

    def stringify_attrs(self) -> Iterator[Tuple[str, Any]]:
        yield "oxm_values", dict(self.oxm_values)

    def to_jsondict(self, encode_string: Any = None) -> Dict[str, Any]:
        values = [oxm_fields.oxm_to_jsondict(name, value) for name, value in self.oxm_values]
        body = {"oxm_values": values, "length": self.length, "type": self.type}
        return {"OFPTableFeaturePropOxmValues": body}

    @classmethod
    def from_jsondict(cls, dict_: Dict[str, Any], *_others: Any, **_more: Any) -> Any:
        values = [oxm_fields.oxm_from_jsondict(value) for value in dict_["oxm_values"]]
        return cls(dict_["type"], dict_.get("length"), values)


for _family, _base in PROPERTIES.items():
    globals()[_base] = type(_base, (Family,), {"__module__": __name__, "_family": _family})
    CLASSES += f"{_base}Experimenter {_family}=0xffff{before.EXPERIMENTER}\n"
inherit(__name__, before, GONE)

#: Types whose class has a row with another number.
OTHER_TYPES = {
    **before.OTHER_TYPES,
    **{("prop", number): "OFPTableFeaturePropOxm" for number in (18, 19, 20, 21)},
    **{("async", number): "OFPAsyncConfigPropReasons" for number in range(16)},
    ("portdesc", 3): "OFPPortDescPropOxm",
    ("bucket", 2): "OFPGroupBucketPropWatch",
}
ABSENT = {
    **before.ABSENT,
    "OFPFlowStats": "Weir has no OFPMP_FLOW_STATS; OFPFlowDescStatsRequest has entries and counts",
    "OFPInstructionMeter": "a meter is an action of OpenFlow 1.5, OFPActionMeter",
    "OFPInstructionStatTrigger": "Weir has no reports of counts at thresholds",
    "OFPMeterConfig": "OpenFlow 1.5 calls it OFPMeterDesc",
    "OFPBundleFeatures": "Weir has no features of bundles, and no bundles at a time",
    "OFPControllerStatusStatsRe": "Weir does not ask for the status of other controllers",
}
ROWS = rows_after(before.ROWS, GONE, CLASSES)
TABLE = Table(sys.modules[__name__], ofproto, ROWS, ABSENT)
TABLE.by_type.update(OTHER_TYPES)
parse = TABLE.parse
__getattr__ = TABLE.attribute
