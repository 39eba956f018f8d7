"""``ryu.ofproto.ofproto_v1_4_parser``: the messages and structures of OpenFlow 1.4.

Most are those of 1.3; the rows below take the place of some of its rows, and add others. Flow
monitors are not there.
"""

from __future__ import annotations

import base64
import struct
import sys
from typing import Any, Dict, Tuple

from weir.ryu.ofproto import ofproto_v1_4, oxm_fields
from weir.ryu.ofproto import ofproto_v1_3_parser as before
from weir.ryu.ofproto.ofproto_parser import (
    HEADER,
    Family,
    MsgBase,
    Record,  # noqa: F401 - of BASES
    Table,
    inherit,
    rows_after,
)

ofproto: Any = ofproto_v1_4

UINT64_MAX = (1 << 64) - 1
UINT32_MAX = (1 << 32) - 1
UINT16_MAX = (1 << 16) - 1

#: Rows of 1.3 that 1.4 has no more.
GONE = ("OFPQueueGetConfig", "OFPQueueProp", "OFPPacketQueue")

CLASSES = """
OFPFlowMod msg=14 cookie:Q=0 cookie_mask:Q=0 table_id:B=0 command:B=0 idle_timeout:H=0 \
    hard_timeout:H=0 priority:H=0x8000 buffer_id:I=0xffffffff out_port:I=0 out_group:I=0 flags:H=0 \
    importance:H=0 match:match=None instructions:[OFPInstruction]=None
OFPPortMod msg=16 port_no:I=0 4x hw_addr:mac='00:00:00:00:00:00' 2x config:I=0 mask:I=0 \
    properties:[OFPPortModProp]=None
OFPTableMod msg=17 table_id:B 3x config:I properties:[OFPTableModProp]=None
OFPGetAsyncReply msg=27 properties:[OFPAsyncConfigProp]=None
OFPSetAsync msg=28 properties:[OFPAsyncConfigProp]=None
OFPRoleStatus msg=30 role:I=None reason:B=None 3x generation_id:Q=None properties:[OFPRoleProp]=None
OFPTableStatus msg=31 reason:B=None 7x table:one_OFPTableDesc=None
OFPRequestForward msg=32 by_hand
OFPBundleCtrlMsg msg=33 bundle_id:I=None type:H=None flags:H=None properties:[OFPBundleProp]=None
OFPBundleAddMsg msg=34 by_hand

OFPTableDescStatsRequest request=14
OFPQueueDescStatsRequest request=15 port_no:I=0xffffffff queue_id:I=0xffffffff
OFPTableDescStatsReply reply=14 OFPTableDesc
OFPQueueDescStatsReply reply=15 OFPQueueDesc

OFPFlowStats struct length:len table_id:B=None 1x duration_sec:I=None duration_nsec:I=None \
    priority:H=None idle_timeout:H=None hard_timeout:H=None flags:H=None importance:H=None 2x \
    cookie:Q=None packet_count:Q=None byte_count:Q=None match:match=None \
    instructions:[OFPInstruction]=None
OFPPortStats struct length:len 2x port_no:I=None duration_sec:I=None duration_nsec:I=None \
    rx_packets:Q=None tx_packets:Q=None rx_bytes:Q=None tx_bytes:Q=None rx_dropped:Q=None \
    tx_dropped:Q=None rx_errors:Q=None tx_errors:Q=None properties:[OFPPortStatsProp]=None
OFPQueueStats struct length:len 6x port_no:I=None queue_id:I=None tx_bytes:Q=None \
    tx_packets:Q=None tx_errors:Q=None duration_sec:I=None duration_nsec:I=None \
    properties:[OFPQueueStatsProp]=None
OFPPort struct port_no:I=None length:len 2x hw_addr:mac=None 2x name:s16=None config:I=None \
    state:I=None properties:[OFPPortDescProp]=None
OFPTableDesc struct length:len table_id:B=None 1x config:I=None properties:[OFPTableModProp]=None
OFPQueueDesc struct port_no:I=None queue_id:I=None len:len 6x properties:[OFPQueueDescProp]=None

OFPPortDescPropEthernet portdesc=0 type:H=0 length:len 4x curr:I=None advertised:I=None \
    supported:I=None peer:I=None curr_speed:I=None max_speed:I=None
OFPPortDescPropOptical portdesc=1 type:H=1 length:len 4x supported:I=None \
    tx_min_freq_lmda:I=None tx_max_freq_lmda:I=None tx_grid_freq_lmda:I=None \
    rx_min_freq_lmda:I=None rx_max_freq_lmda:I=None rx_grid_freq_lmda:I=None tx_pwr_min:H=None \
    tx_pwr_max:H=None
OFPPortModPropEthernet portmod=0 type:H=0 length:len advertise:I=None
OFPPortModPropOptical portmod=1 type:H=1 length:len configure:I=None freq_lmda:I=None \
    fl_offset:I=None grid_span:I=None tx_pwr:I=None
OFPPortStatsPropEthernet portstats=0 type:H=0 length:len 4x rx_frame_err:Q=None rx_over_err:Q=None \
    rx_crc_err:Q=None collisions:Q=None
OFPPortStatsPropOptical portstats=1 type:H=1 length:len 4x flags:I=None tx_freq_lmda:I=None \
    tx_offset:I=None tx_grid_span:I=None rx_freq_lmda:I=None rx_offset:I=None rx_grid_span:I=None \
    tx_pwr:H=None rx_pwr:H=None bias_current:H=None temperature:H=None
OFPTableModPropEviction tablemod=2 type:H=2 length:len flags:I=None
OFPTableModPropVacancy tablemod=3 type:H=3 length:len vacancy_down:B=None vacancy_up:B=None \
    vacancy:B=None 1x
OFPQueueDescPropMinRate queuedesc=1 type:H=1 length:len rate:H=None 2x
OFPQueueDescPropMaxRate queuedesc=2 type:H=2 length:len rate:H=None 2x
OFPAsyncConfigPropReasons async=0 type:H=None length:len mask:I=None
"""

#: Families of properties, with the beginnings of their classes' names.
PROPERTIES = {
    "portdesc": "OFPPortDescProp",
    "portmod": "OFPPortModProp",
    "portstats": "OFPPortStatsProp",
    "tablemod": "OFPTableModProp",
    "queuedesc": "OFPQueueDescProp",
    "queuestats": "OFPQueueStatsProp",
    "async": "OFPAsyncConfigProp",
    "role": "OFPRoleProp",
    "bundle": "OFPBundleProp",
}
EXPERIMENTER = " type:H=0xffff length:len experimenter:I=None exp_type:I=None data:wordlist=None"

BASES = {**before.BASES, **PROPERTIES}
FAMILIES = {**before.FAMILIES, **dict.fromkeys(PROPERTIES, "prop")}
REQUEST_HEAD = before.REQUEST_HEAD
members_of = before.members_of


class OFPMatch(before.OFPMatch):
    """A match."""

    _encode = staticmethod(oxm_fields.encode_1_4)


class OFPAction(before.OFPAction):
    """An action."""


class OFPActionSetField(before.OFPActionSetField, OFPAction):
    """Sets one field."""

    _encode = staticmethod(oxm_fields.encode_1_4)


class MsgInMsg(MsgBase):
    """A message with another one inside, the attribute ``_inner``."""

    cls_version = ofproto.OFP_VERSION
    _inner = ""

    def set_datapath(self, datapath: Any) -> None:
        super().set_datapath(datapath)
        getattr(self, self._inner).set_datapath(datapath)

    @classmethod
    def _decode_value(
        cls, k: str, json_value: Any, decode_string: Any = base64.b64decode, **others: Any
    ) -> Any:
        return cls._get_decoder(k, decode_string)(json_value, **others)

    @classmethod
    def _take_inner(cls, buf: bytes, offset: int, end: int) -> Any:
        """The message at a place, which must end before ``end``."""
        _, kind, length, _ = HEADER.unpack_from(buf, offset)
        if length < HEADER.size or offset + length > end:
            raise struct.error(f"a message of {length} bytes at byte {offset}")
        if kind in (OFPRequestForward.cls_msg_type, OFPBundleAddMsg.cls_msg_type):
            raise struct.error(f"a message of the type {kind} inside of another at byte {offset}")
        made = sys.modules[cls.__module__].parse(None, buf[offset : offset + length])
        if made is None:
            raise struct.error(f"a message of the unknown type {kind} at byte {offset}")
        return made


class OFPRequestForward(MsgInMsg):
    """A request of another controller: ``OFPGroupMod`` or ``OFPMeterMod``."""

    cls_msg_type = 32
    _inner = "request"

    def __init__(self, datapath: Any, request: Any = None) -> None:
        super().__init__(datapath)
        self.request = request

    def _pack(self) -> bytes:
        self.request.serialize()
        return bytes(self.request.buf)

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        return cls(None, cls._take_inner(buf, offset, end)), end


class OFPBundleAddMsg(MsgInMsg):
    """A message of a bundle, which gets the transaction number of this one."""

    cls_msg_type = 34
    _inner = "message"
    _head = struct.Struct("!I2xH")

    def __init__(
        self, datapath: Any, bundle_id: int, flags: int, message: Any, properties: Any = None
    ) -> None:
        super().__init__(datapath)
        self.bundle_id, self.flags, self.message = bundle_id, flags, message
        self.properties = properties if properties else []

    def _pack(self) -> bytes:
        self.message.xid = self.xid
        self.message.serialize()
        data = bytes(self.message.buf)
        if self.properties:
            data += bytes(-len(data) % 8)
        data += b"".join([one._pack() for one in self.properties])
        return self._head.pack(self.bundle_id, self.flags) + data

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> "Tuple[Any, int]":
        bundle_id, flags = cls._head.unpack_from(buf, offset)
        offset += cls._head.size
        message = cls._take_inner(buf, offset, end)
        offset += (message.msg_len + 7) // 8 * 8
        taken = sys.modules[cls.__module__].TABLE.takers["OFPBundleProp"](buf, offset, end)
        return cls(None, bundle_id, flags, message, taken), end


for _family, _base in PROPERTIES.items():
    globals()[_base] = type(_base, (Family,), {"__module__": __name__, "_family": _family})
    CLASSES += f"{_base}Experimenter {_family}=0xffff{EXPERIMENTER}\n"
inherit(__name__, before, GONE)

#: Types whose class has a row with another number.
OTHER_TYPES = {
    **before.OTHER_TYPES,
    ("prop", 16): "OFPTableFeaturePropNextTables",
    **{("async", number): "OFPAsyncConfigPropReasons" for number in range(12)},
    ("async", 0xFFFE): "OFPAsyncConfigPropExperimenter",
}
ABSENT = {
    "OFPFlowMonitor": "Weir has no flow monitors; OFPFF_SEND_FLOW_REM reports removed entries",
    "OFPFlowUpdate": "Weir has no flow monitors; OFPFF_SEND_FLOW_REM reports removed entries",
    "NX": "Nicira's messages are not there",
}
ROWS = rows_after(before.CLASSES, GONE, CLASSES)
TABLE = Table(sys.modules[__name__], ofproto, ROWS, ABSENT)
TABLE.by_type.update(OTHER_TYPES)
parse = TABLE.parse
__getattr__ = TABLE.attribute
