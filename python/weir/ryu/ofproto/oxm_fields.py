"""``ryu.ofproto.oxm_fields``: match fields of OpenFlow 1.3 and of Open vSwitch, one row each."""

from __future__ import annotations

import base64
import functools
import ipaddress
import socket
import struct
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from weir.ryu.lib.mac import haddr_to_bin
from weir.ryu.ofproto.ofproto_parser import msg_pack_into

#: Classes of fields: number, and the experimenter of those that have one.
CLASSES = {
    "of": (0x8000, None),
    "xreg": (0x8001, None),
    "nxm0": (0x0000, None),
    "nxm1": (0x0001, None),
    "onf": (0xFFFF, 0x4F4E4600),
    "nx": (0xFFFF, 0x00002320),
    "nsh": (0xFFFF, 0x005AD650),
}

#: Of each class the names, with the kind of value; ``@N`` is the number of the next one.
ROWS = """
of in_port:4 in_phy_port:4 metadata:8 eth_dst:mac eth_src:mac eth_type:2 vlan_vid:2 vlan_pcp:1
of @8 ip_dscp:1 ip_ecn:1 ip_proto:1 ipv4_src:ip4 ipv4_dst:ip4 tcp_src:2 tcp_dst:2 udp_src:2
of @16 udp_dst:2 sctp_src:2 sctp_dst:2 icmpv4_type:1 icmpv4_code:1 arp_op:2 arp_spa:ip4 arp_tpa:ip4
of @24 arp_sha:mac arp_tha:mac ipv6_src:ip6 ipv6_dst:ip6 ipv6_flabel:4 icmpv6_type:1 icmpv6_code:1
of @31 ipv6_nd_target:ip6 ipv6_nd_sll:mac ipv6_nd_tll:mac mpls_label:4 mpls_tc:1 mpls_bos:1
of @37 pbb_isid:3 tunnel_id:8 ipv6_exthdr:2
onf @2560 pbb_uca:1 @42 tcp_flags:2 actset_output:4
xreg xreg0:8 xreg1:8 xreg2:8 xreg3:8 xreg4:8 xreg5:8 xreg6:8 xreg7:8
nxm0 in_port_nxm:2 eth_dst_nxm:mac eth_src_nxm:mac eth_type_nxm:2 vlan_tci:2 nw_tos:1
nxm0 @6 ip_proto_nxm:1 ipv4_src_nxm:ip4 ipv4_dst_nxm:ip4 tcp_src_nxm:2 tcp_dst_nxm:2
nxm0 @11 udp_src_nxm:2 udp_dst_nxm:2 icmpv4_type_nxm:1 icmpv4_code_nxm:1 arp_op_nxm:2
nxm0 @16 arp_spa_nxm:ip4 arp_tpa_nxm:ip4
nxm1 reg0:4 reg1:4 reg2:4 reg3:4 reg4:4 reg5:4 reg6:4 reg7:4 reg8:4 reg9:4 reg10:4 reg11:4
nxm1 @12 reg12:4 reg13:4 reg14:4 reg15:4 tunnel_id_nxm:8 arp_sha_nxm:mac arp_tha_nxm:mac
nxm1 @19 ipv6_src_nxm:ip6 ipv6_dst_nxm:ip6 icmpv6_type_nxm:1 icmpv6_code_nxm:1 nd_target:ip6
nxm1 @24 nd_sll:mac nd_tll:mac ip_frag:1 ipv6_label:4 ip_ecn_nxm:1 nw_ttl:1 mpls_ttl:1
nxm1 @31 tun_ipv4_src:ip4 tun_ipv4_dst:ip4 pkt_mark:4 tcp_flags_nxm:2 @36 _recirc_id:4 conj_id:4
nxm1 @38 tun_gbp_id:2 tun_gbp_flags:1 @104 tun_flags:2 ct_state:4 ct_zone:2 ct_mark:4 ct_label:16
nxm1 @109 tun_ipv6_src:ip6 tun_ipv6_dst:ip6 xxreg0:16 xxreg1:16 xxreg2:16 xxreg3:16
nx _dp_hash:4
nsh @1 nsh_flags:1 nsh_mdtype:1 nsh_np:1 nsh_spi:4 nsh_si:1 nsh_c1:4 nsh_c2:4 nsh_c3:4 nsh_c4:4
nsh @10 nsh_ttl:1
"""


def _int_bytes(size: int) -> Callable[[Any], bytes]:
    mask = (1 << 8 * size) - 1

    def of(value: Any) -> bytes:
        return bytes((value & mask).to_bytes(size, "big"))

    return of


def _int_value(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _mac_bytes(address: Any) -> bytes:
    if isinstance(address, int):
        return address.to_bytes(6, "big")
    packed = haddr_to_bin(address) if isinstance(address, str) else bytes(address)
    if len(packed) != 6:
        raise ValueError(f"{address!r} is no Ethernet address: give 02:00:00:00:00:01, or 6 bytes")
    return packed


def _mac_text(data: bytes) -> str:
    return data.hex(":")


def _ip_bytes(family: int, network: Any) -> Callable[[Any], Any]:
    def of(text: Any) -> Any:
        if isinstance(text, str) and "/" in text:
            net = network(text, strict=False)
            return ipaddress.ip_address(text.partition("/")[0]).packed, net.netmask.packed
        if isinstance(text, int):
            return text.to_bytes(4 if family == socket.AF_INET else 16, "big")
        return socket.inet_pton(family, text)

    return of


def _ip4_text(data: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET, data)


def _ip6_text(data: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6, data)


_KINDS: Dict[str, Tuple[int, Callable[[Any], Any], Callable[[bytes], Any]]] = {
    "mac": (6, _mac_bytes, _mac_text),
    "ip4": (4, _ip_bytes(socket.AF_INET, ipaddress.IPv4Network), _ip4_text),
    "ip6": (16, _ip_bytes(socket.AF_INET6, ipaddress.IPv6Network), _ip6_text),
}


class _Type:
    """The size of a field's value, and its way to the user and back."""

    def __init__(self, kind: str) -> None:
        number = int(kind) if kind.isdigit() else 0
        ways = _KINDS.get(kind, (number, _int_bytes(number), _int_value))
        self.size, self.from_user, self.to_user = ways


class Field:
    """A match field."""

    def __init__(self, name: str, class_name: str, number: int, kind: str) -> None:
        self.name, self.type = name, _Type(kind)
        self.oxm_class, experimenter = CLASSES[class_name]
        # The old form of ONF's extension 256 has a number of its own behind the experimenter.
        is_old = number == 2560
        self.oxm_field = 0 if is_old else number
        self.extra = b"" if experimenter is None else experimenter.to_bytes(4, "big")
        if is_old:
            self.extra += number.to_bytes(2, "big")
        self.oxm_type = self.oxm_class << 7 | self.oxm_field
        self.num: Any = self.oxm_type
        if experimenter is not None:
            self.num = (experimenter, number if is_old else self.oxm_type)
        #: The order of fields in a match.
        self.order: int = experimenter if experimenter is not None else self.oxm_type
        self.size, self.from_user, self.to_user = (
            self.type.size,
            self.type.from_user,
            self.type.to_user,
        )
        length = self.size + len(self.extra)
        self.head = self._header(0, length) + self.extra
        self.head_masked = self._header(1, length + self.size) + self.extra

    def _header(self, has_mask: int, length: int) -> bytes:
        return (self.oxm_type << 9 | has_mask << 8 | length).to_bytes(4, "big")


def _fields() -> List[Field]:
    made, number, before = [], 0, ""
    for line in ROWS.split("\n"):
        class_name, *words = line.split() or [""]
        if class_name != before:
            number, before = 0, class_name
        for word in words:
            if word.startswith("@"):
                number = int(word[1:])
                continue
            name, _, kind = word.partition(":")
            made.append(Field(name, class_name, number, kind))
            number += 1
    return made


FIELDS = _fields()
BY_NAME = {field.name: field for field in FIELDS}
BY_HEAD = {field.head[:4] + field.extra: field for field in FIELDS}
BY_HEAD.update({field.head_masked[:4] + field.extra: field for field in FIELDS})
BY_NUM = {field.num: field for field in FIELDS}

#: Fields that have a number of their own since 1.4 and since 1.5, by their names.
SINCE_1_4 = {"pbb_uca": Field("pbb_uca", "of", 41, "1")}
SINCE_1_5 = {
    **SINCE_1_4,
    "tcp_flags": Field("tcp_flags", "of", 42, "2"),
    "actset_output": Field("actset_output", "of", 43, "4"),
    "packet_type": Field("packet_type", "of", 44, "4"),
}
BY_NAME_1_5 = {**BY_NAME, **SINCE_1_5}
BY_HEAD.update({field.head: field for field in SINCE_1_5.values()})
BY_HEAD.update({field.head_masked: field for field in SINCE_1_5.values()})


def unknown(name: str) -> KeyError:
    """The error for a name of no field."""
    return KeyError(f"unknown OXM field: {name}")


def encoder(fields: Dict[str, Field]) -> Callable[[str, Any], Tuple[int, bytes]]:
    """The function that gives a field's order in a match, and its bytes with the header."""
    plain = functools.partial(_encode, fields)
    # A controller writes the same addresses and ports again and again: a hit costs a tenth.
    again = functools.lru_cache(maxsize=16_384)(plain)

    def encode(name: str, value: Any) -> Tuple[int, bytes]:
        try:
            return again(name, value)
        except TypeError:
            # A list, or another value without a hash.
            return plain(name, value)

    return encode


def _encode(fields: Dict[str, Field], name: str, value: Any) -> Tuple[int, bytes]:
    field = fields.get(name)
    if field is None:
        return _encode_unnamed(name, value)
    try:
        if isinstance(value, (tuple, list)):
            value, mask = value
            if mask is not None:
                return field.order, _masked(field, field.from_user(value), field.from_user(mask))
        data = field.from_user(value)
        if isinstance(data, tuple):
            return field.order, _masked(field, *data)
    except (TypeError, ValueError, OSError) as error:
        raise ValueError(f"{name}={value!r}: {error}") from error
    return field.order, field.head + data


encode = encoder(BY_NAME)
encode_1_4 = encoder({**BY_NAME, **SINCE_1_4})
encode_1_5 = encoder(BY_NAME_1_5)


def _masked(field: Field, value: Any, mask: Any) -> bytes:
    if isinstance(value, tuple):
        value = value[0]
    under: bytes = bytes(v & m for v, m in zip(value, mask))
    return field.head_masked + under + bytes(mask)


def _encode_unnamed(name: str, value: Any) -> Tuple[int, bytes]:
    if not name.startswith("field_"):
        raise unknown(name)
    number = int(name.split("_")[1])
    value, mask = value if isinstance(value, (tuple, list)) else (value, None)
    data = base64.b64decode(value)
    extra = base64.b64decode(mask) if mask is not None else b""
    header = number << 9 | (1 << 8 if extra else 0) | len(data) + len(extra)
    return number, header.to_bytes(4, "big") + data + extra


def decode(data: bytes) -> Tuple[str, Any]:
    """The name and value of a field's bytes."""
    header = int.from_bytes(data[:4], "big")
    extra = 0
    if header >> 16 == 0xFFFF:
        extra = 6 if data[:3] == b"\xff\xff\x00" and data[8:10] == b"\x0a\x00" else 4
    field = BY_HEAD.get(data[: 4 + extra])
    value = data[4 + extra :]
    has_mask = header >> 8 & 1
    half = len(value) // 2
    if field is None:
        text = [
            base64.b64encode(part).decode("ascii")
            for part in ([data[4:][: len(data[4:]) // 2], data[4:][len(data[4:]) // 2 :]]
                         if has_mask else [data[4:]])
        ]
        return f"field_{header >> 9}", tuple(text) if has_mask else text[0]
    if has_mask:
        return field.name, (field.to_user(value[:half]), field.to_user(value[half:]))
    return field.name, field.to_user(value)


def define_fields(modname: str) -> None:
    """Gives the module of a version the functions and constants of its fields."""
    names = vars(sys.modules[modname])
    for field in FIELDS:
        if field.oxm_class == 0x8000:
            upper = field.name.upper()
            names[f"OFPXMT_OFB_{upper}"] = field.oxm_field
            names[f"OXM_OF_{upper}"] = int.from_bytes(field.head, "big")
            names[f"OXM_OF_{upper}_W"] = int.from_bytes(field.head_masked, "big")
    names["oxm_types"] = FIELDS
    names.update(FUNCTIONS)


def oxm_get_field_info_by_name(name: str) -> Tuple[Any, _Type]:
    """Number and type of a field."""
    if name not in BY_NAME:
        raise unknown(name)
    return BY_NAME[name].num, BY_NAME[name].type


def oxm_from_user(name: str, user_value: Any) -> Tuple[Any, Optional[bytes], Optional[bytes]]:
    """Number, value and mask of a field."""
    if name not in BY_NAME:
        raise unknown(name)
    field = BY_NAME[name]
    if user_value is None:
        return field.num, None, None
    _, data = encode(name, user_value)
    value = data[4 + len(field.extra) :]
    if len(value) > field.size:
        return field.num, value[: field.size], value[field.size :]
    return field.num, value, None


def oxm_from_user_header(name: str) -> Any:
    """The number of a field."""
    if name.startswith("field_"):
        return int(name.split("_")[1])
    return oxm_get_field_info_by_name(name)[0]


def oxm_to_user(n: Any, v: Any, m: Any) -> Tuple[str, Any]:
    """Name and value of a field's number and bytes."""
    field = BY_NUM.get(n)
    name = field.name if field else f"field_{n}"
    to_user = field.to_user if field else lambda data: base64.b64encode(data).decode("ascii")
    value = None if v is None else to_user(v)
    return name, value if m is None else (value, to_user(m))


def oxm_to_user_header(n: Any) -> str:
    """The name of a field's number."""
    return oxm_to_user(n, None, None)[0]


def oxm_normalize_user(k: str, uv: Any) -> Tuple[str, Any]:
    """A value as it comes back from a switch."""
    try:
        return decode(encode(k, uv)[1])
    except (KeyError, ValueError):
        return k, uv


def oxm_to_jsondict(k: str, uv: Any) -> Dict[str, Any]:
    """A field as JSON."""
    value, mask = uv if isinstance(uv, tuple) else (uv, None)
    return {"OXMTlv": {"field": k, "value": value, "mask": mask}}


def oxm_from_jsondict(j: Dict[str, Any]) -> Tuple[str, Any]:
    """A field of JSON."""
    tlv = j["OXMTlv"]
    mask = tlv.get("mask")
    return tlv["field"], tlv["value"] if mask is None else (tlv["value"], mask)


def oxm_tlv_header(field: int, length: int) -> int:
    """The header of a field without a mask."""
    return 0x8000 << 16 | field << 9 | length


def oxm_tlv_header_w(field: int, length: int) -> int:
    """The header of a field with a mask."""
    return 0x8000 << 16 | field << 9 | 1 << 8 | length * 2


def oxm_tlv_header_extract_hasmask(header: int) -> int:
    """Whether a header says that there is a mask."""
    return header >> 8 & 1


def oxm_tlv_header_extract_length(header: int) -> int:
    """The length of the value that a header gives."""
    length = header & 0xFF
    return length // 2 if oxm_tlv_header_extract_hasmask(header) else length


def oxm_serialize_header(n: Any, buf: bytearray, offset: int) -> int:
    """Writes the header of a field without a mask into a message; its length."""
    field = BY_NUM.get(n)
    head = field.head if field else (n << 9).to_bytes(4, "big")
    msg_pack_into(f"!{len(head)}s", buf, offset, head)
    return len(head)


def oxm_serialize(n: Any, value: bytes, mask: Optional[bytes], buf: bytearray, offset: int) -> int:
    """Writes a field into a message; its length."""
    field = BY_NUM.get(n)
    data = (field.extra if field else b"") + value + (mask or b"")
    number = field.oxm_type if field else n
    header = number << 9 | bool(mask) << 8 | len(data)
    msg_pack_into(f"!I{len(data)}s", buf, offset, header, data)
    return 4 + len(data)


def oxm_parse_header(buf: bytes, offset: int) -> Tuple[Any, int]:
    """The number of the field at a place of a message, and the length of its header."""
    (header,) = struct.unpack_from("!I", buf, offset)
    if header >> 16 != 0xFFFF:
        return header >> 9, 4
    (experimenter,) = struct.unpack_from("!I", buf, offset + 4)
    if header >> 9 & 0x7F == 0 and experimenter == CLASSES["onf"][1]:
        return (experimenter, int.from_bytes(buf[offset + 8 : offset + 10], "big")), 10
    return (experimenter, header >> 9), 8


def oxm_parse(buf: bytes, offset: int) -> Tuple[Any, bytes, Optional[bytes], int]:
    """Number, value, mask and length of the field at a place of a message."""
    number, size = oxm_parse_header(buf, offset)
    length = 4 + buf[offset + 3]
    data = bytes(buf[offset + size : offset + length])
    half = len(data) // 2 if buf[offset + 2] & 1 else len(data)
    return number, data[:half], data[half:] or None, length


#: Ryu's functions of fields, by their names.
FUNCTIONS: Dict[str, Any] = {
    function.__name__: function
    for function in (
        oxm_from_user,
        oxm_to_user,
        oxm_from_user_header,
        oxm_to_user_header,
        oxm_normalize_user,
        oxm_to_jsondict,
        oxm_from_jsondict,
        oxm_get_field_info_by_name,
        oxm_tlv_header,
        oxm_tlv_header_w,
        oxm_tlv_header_extract_hasmask,
        oxm_tlv_header_extract_length,
        oxm_serialize,
        oxm_serialize_header,
        oxm_parse,
        oxm_parse_header,
    )
}


def NiciraExtended0(name: str, num: int, type_: Any) -> Optional[Field]:
    """The row of a field of os-ken's table ``nicira_ext``, whose rows are those here."""
    return BY_NAME.get(name)


NiciraExtended1 = NiciraExperimenter = NiciraNshExperimenter = NiciraExtended0
