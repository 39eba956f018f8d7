"""``ryu.ofproto.ofproto_v1_4_parser``: the messages and structures of OpenFlow 1.4.

Most are those of 1.3; the rows below take the place of some of its rows, and add others. Messages
inside of messages (``OFPBundleAddMsg``, ``OFPRequestForward``) and flow monitors are not there.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional

from weir.ryu.missing import missing
from weir.ryu.ofproto import nicira, ofproto_v1_4, oxm_fields
from weir.ryu.ofproto import ofproto_v1_3_parser as before
from weir.ryu.ofproto.ofproto_parser import (
    Family,
    MsgBase,
    Record,  # noqa: F401 - of BASES
    Table,
    lazy_packet_in,
    parse_with,
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
OFPBundleCtrlMsg msg=33 bundle_id:I=None type:H=None flags:H=None properties:[OFPBundleProp]=None

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


def members_of(family: str, number: str, code: Any) -> Dict[str, Any]:
    """Further members of a class."""
    members = before.members_of(family, number, code)
    if "cls_version" in members:
        members["cls_version"] = ofproto.OFP_VERSION
    return members


class OFPMultipartRequest(before.OFPMultipartRequest):
    """A request for statistics or a description."""

    cls_version = ofproto.OFP_VERSION


class OFPMultipartReply(before.OFPMultipartReply):
    """The answer to one."""

    cls_version = ofproto.OFP_VERSION


class OFPErrorMsg(before.OFPErrorMsg):
    """The switch refuses a message."""

    cls_version = ofproto.OFP_VERSION


class OFPMatch(before.OFPMatch):
    """A match."""

    _encode = staticmethod(oxm_fields.encode_1_4)


class OFPAction(before.OFPAction):
    """An action."""


OFPActionHeader = OFPAction


class OFPActionSetField(OFPAction, before.OFPActionSetField):
    """Sets one field."""

    _encode = staticmethod(oxm_fields.encode_1_4)


class OFPActionExperimenter(OFPAction, before.OFPActionExperimenter):
    """An action of an experimenter."""


class OFPActionExperimenterUnknown(OFPActionExperimenter, before.OFPActionExperimenterUnknown):
    """One that is bytes here."""


class OFPInstruction(before.OFPInstruction):
    """An instruction."""


class OFPMeterBandHeader(before.OFPMeterBandHeader):
    """A band of a meter."""


OFPMeterBand = OFPMeterBandHeader


class OFPTableFeatureProp(before.OFPTableFeatureProp):
    """A property of a table's features."""


for _family, _base in PROPERTIES.items():
    globals()[_base] = type(_base, (Family,), {"__module__": __name__, "_family": _family})
    CLASSES += f"{_base}Experimenter {_family}=0xffff{EXPERIMENTER}\n"

OFPHelloElemVersionBitmap = before.OFPHelloElemVersionBitmap
OFPOxmId = before.OFPOxmId
OFPExperimenterOxmId = before.OFPExperimenterOxmId

_OLD = before.CLASSES.replace("\\\n", " ").splitlines()
_ROWS = "\n".join(row for row in _OLD if not row.startswith(GONE))
TABLE = Table(sys.modules[__name__], ofproto, _ROWS + "\n" + CLASSES)
TABLE.by_type.update(before.OTHER_TYPES)
TABLE.by_type[("prop", 16)] = "OFPTableFeaturePropNextTables"
TABLE.by_type.update({("async", number): "OFPAsyncConfigPropReasons" for number in range(12)})
TABLE.by_type[("async", 0xFFFE)] = "OFPAsyncConfigPropExperimenter"


def parse(datapath: Any, data: bytes) -> Optional[MsgBase]:
    """The message of these bytes; ``None`` where its type has no class."""
    made = parse_with(TABLE, data, {18: "request", 19: "reply"})
    if made is not None:
        made.datapath = datapath
    return made


def __getattr__(name: str) -> Any:
    if name == "PacketInOf":
        packet_in = __getattr__("OFPPacketIn")
        made = globals()[name] = lazy_packet_in(
            packet_in, lambda data: OFPMatch._take(data, 0, len(data))[0]
        )
        return made
    if name in TABLE:
        made = globals()[name] = TABLE.make(name)
        return made
    if name.startswith(nicira.PREFIXES):
        return nicira.class_of(sys.modules[__name__], name)
    instead = "messages inside of messages and flow monitors are not there"
    raise missing("ofproto_v1_4_parser", name, [*TABLE.rows, *globals()], instead)

