"""``ryu.ofproto.ofproto_parser``: the classes of messages and structures, made from rows.

A row gives a class's name and its fields in the order of the wire; from it follow ``__init__`` with
Ryu's keywords and defaults, the attributes, the bytes both ways, text and JSON. Classes are made
when they are asked for. Fields are ``name:type=default`` or ``Nx`` for padding; the types are

``B H I Q``
    unsigned numbers
``mac``
    an Ethernet address as text
``sN``
    text, filled up with zeros
``NT``
    a list of N numbers
``type`` ``len`` ``alen``
    the number of the class, the length of the whole, and that of the actions
``bytes`` ``text`` ``match`` ``[Class]`` ``one_Class``
    the rest, the same as text, a match, instances of a class or family up to the end, and one
"""

from __future__ import annotations

import collections
import re
import socket
import struct
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from weir.ryu.exception import OFPTruncatedMessage  # noqa: F401
from weir.ryu.lib import stringify
from weir.ryu.lib.mac import haddr_to_bin
from weir.ryu.missing import missing

HEADER = struct.Struct("!BBHI")


def header(buf: bytes) -> Tuple[int, int, int, int]:
    """Version, type, length and xid of a message."""
    return HEADER.unpack_from(bytes(buf[:8]))


def msg_pack_into(fmt: str, buf: bytearray, offset: int, *args: Any) -> None:
    """``struct.pack_into``, which makes the buffer as long as it needs."""
    size = offset + struct.calcsize(fmt)
    if len(buf) < size:
        buf += bytes(size - len(buf))
    struct.pack_into(fmt, buf, offset, *args)


def msg(
    datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes
) -> "Optional[MsgBase]":
    """The message of these bytes."""
    from weir.ryu.ofproto import get_ofp_module

    made: Optional[MsgBase] = get_ofp_module(version)[1].parse(datapath, bytes(buf[:msg_len]))
    return made


def ofp_msg_from_jsondict(dp: Any, jsondict: Dict[str, Any]) -> Any:
    """The message of a dict with its class's name."""
    ((name, value),) = jsondict.items()
    cls = getattr(dp.ofproto_parser, name)
    if not issubclass(cls, MsgBase):
        raise ValueError(f"{name} is no message")
    return cls.from_jsondict(value, datapath=dp)


def ofp_instruction_from_jsondict(dp: Any, jsonlist: List[Any], encap: bool = True) -> List[Any]:
    """Instructions of dicts; actions among them are applied, before all others."""
    parser = dp.ofproto_parser
    actions: List[Any] = []
    result: List[Any] = []
    for jsondict in jsonlist:
        ((name, value),) = jsondict.items()
        cls = getattr(parser, name)
        is_action = issubclass(cls, parser.OFPAction)
        if not is_action and not (encap and issubclass(cls, parser.OFPInstruction)):
            raise ValueError(f"{name} is no action and no instruction")
        (actions if is_action and encap else result).append(cls.from_jsondict(value))
    if actions:
        apply = parser.OFPInstructionActions(dp.ofproto.OFPIT_APPLY_ACTIONS, actions)
        return [apply, *result]
    return result


class StringifyMixin(stringify.StringifyMixin):
    """Text and JSON of the classes of OpenFlow."""

    _class_prefixes = ["OFP", "ONF", "MT", "NX"]


class Record(StringifyMixin):
    """A structure on the wire."""

    #: Attributes that JSON has as text.
    _shown: Dict[str, Callable[[Any], str]] = {}

    @classmethod
    def _encode_value(cls, k: str, v: Any, *others: Any) -> Any:
        return cls._shown[k](v) if k in cls._shown else super()._encode_value(k, v, *others)

    @classmethod
    def _decode_value(cls, k: str, json_value: Any, *others: Any, **more: Any) -> Any:
        if k in cls._shown:
            return json_value
        return super()._decode_value(k, json_value, *others, **more)

    def _pack(self) -> bytes:
        raise NotImplementedError

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> Tuple[Any, int]:
        raise NotImplementedError

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        """The structure at a place of a message."""
        return cls._take(bytes(buf), offset, len(buf))[0]

    def serialize(self, buf: Optional[bytearray] = None, offset: int = 0) -> Any:
        """Writes the structure into a message; the bytes themselves without one."""
        data = self._pack()
        if buf is None:
            return bytearray(data)
        buf[offset : offset + len(data)] = data
        return len(data)


class MsgBase(Record):
    """A message."""

    _base_attributes = ["datapath", "version", "msg_type", "msg_len", "xid", "buf"]
    cls_msg_type: int = -1
    cls_version: int = 0

    version: Optional[int] = None
    msg_type: Optional[int] = None
    msg_len: Optional[int] = None
    xid: Optional[int] = None
    buf: Optional[bytes] = None

    def __init__(self, datapath: Any) -> None:
        self.datapath = datapath

    def set_datapath(self, datapath: Any) -> None:
        """Takes the switch from which it came."""
        self.datapath = datapath

    def set_headers(self, version: int, msg_type: int, msg_len: int, xid: int) -> None:
        """Takes what the header has."""
        self.version, self.msg_type, self.msg_len, self.xid = version, msg_type, msg_len, xid

    def set_xid(self, xid: int) -> None:
        """Gives it a transaction number; it has one only once."""
        if self.xid is not None:
            raise AssertionError(f"{type(self).__name__} has the xid {self.xid} already")
        self.xid = xid

    def set_buf(self, buf: bytes) -> None:
        """Takes its bytes."""
        self.buf = bytes(buf)

    def __str__(self) -> str:
        def hexify(x: Any) -> Any:
            return hex(x) if isinstance(x, int) else x

        head = f"version={hexify(self.version)},msg_type={hexify(self.msg_type)},"
        head += f"msg_len={hexify(self.msg_len)},xid={hexify(self.xid)},"
        return head + StringifyMixin.__str__(self)

    __repr__ = __str__

    @classmethod
    def parser(cls, datapath: Any, *rest: Any) -> Any:
        """The message of version, type, length, xid and bytes."""
        return sys.modules[cls.__module__].parse(datapath, bytes(rest[-1]))

    def serialize(self, *_place: Any) -> None:
        """Makes ``buf`` of the attributes."""
        body = self._pack()
        if self.xid is None:
            self.xid = 0
        self.version, self.msg_type = self.cls_version, self.cls_msg_type
        self.msg_len = len(body) + 8
        self.buf = HEADER.pack(self.version, self.msg_type, self.msg_len, self.xid) + body


def namedtuple(typename: str, fields: Any, **kwargs: Any) -> Any:
    """A named tuple with text and JSON."""
    base = collections.namedtuple(typename, fields, **kwargs)  # type: ignore[misc]
    return type(typename, (Record, base), {})


def list_taker(take: Callable[..., Tuple[Any, int]]) -> Callable[..., List[Any]]:
    """Reads instances up to the end."""

    def taken(buf: bytes, offset: int, end: int) -> List[Any]:
        items = []
        while offset < end:
            item, after = take(buf, offset, end)
            if after <= offset:
                raise struct.error(f"a length of {after - offset} at byte {offset}")
            items.append(item)
            offset = after
        return items

    return taken


def mac_bin(text: Any) -> bytes:
    """An Ethernet address as bytes."""
    return haddr_to_bin(text) if isinstance(text, str) else bytes(text)


def ip_number(text: Any) -> int:
    """An IPv4 address as a number."""
    return text if isinstance(text, int) else int.from_bytes(socket.inet_aton(text), "big")


def text_bytes(text: Any) -> bytes:
    """A text as bytes."""
    return text.encode("utf-8") if isinstance(text, str) else bytes(text)


def packet_bytes(data: Any) -> bytes:
    """A packet: bytes, or an object of the packet library."""
    if data is None:
        return b""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if hasattr(data, "serialize") and hasattr(data, "protocols"):
        data.serialize()
        return bytes(data.data)
    return text_bytes(data)


_FIELD = re.compile(r"(?:(\w+):)?(\[\w+\]|\w+)(?:=(\S+))?$")


class _Code:
    """The code of one class in the making."""

    def __init__(self, table: "Table", kind: str, number: Optional[str], words: List[str]) -> None:
        self.table, self.kind, self.number = table, kind, number
        self.parameters: List[str] = []
        self.stores: List[str] = []
        self.format = ""
        self.size = 0
        self.puts: List[str] = []
        self.gets: List[str] = []
        self.converts: List[str] = []
        self.tails: List[str] = []
        self.tail_reads: List[str] = []
        #: Attributes that JSON has as text.
        self.shown: Dict[str, Callable[[Any], str]] = {}
        #: Whether a match that is not given is one of all packets.
        self.makes_match = kind in ("msg", "request")
        self.length: Optional[str] = None
        #: The field with the length of the first list, and the list's name.
        self.actions_length: Optional[str] = None
        self.measured: Optional[str] = None
        self.names: List[str] = []
        self.types: Dict[str, List[str]] = {}
        for word in words:
            self.field(word)

    def field(self, word: str) -> None:
        """Adds a field."""
        if re.fullmatch(r"\d+x", word):
            self.format += word
            return
        match = _FIELD.match(word)
        if match is None or match[1] is None:
            raise ValueError(f"no field: {word}")
        name, kind, default = match.groups()
        if kind in ("type", "len", "alen"):
            self.special(name, kind)
            return
        self.names.append(name)
        is_keyword = name in ("type", "len", "property", "id")
        parameter = f"{name}_" if is_keyword else name
        self.parameters.append(parameter if default is None else f"{parameter}={default}")
        is_list = kind.startswith("[") and default == "None" and self.kind != "tuple"
        if is_list and self.kind in ("msg", "request", "tlv", "prop"):
            self.stores.append(f"self.{name} = {parameter} if {parameter} else []")
        elif kind in ("match", "match0") and default == "None" and self.makes_match:
            self.stores.append(f"self.{name} = M() if {parameter} is None else {parameter}")
        else:
            self.stores.append(f"self.{name} = {parameter}")
        self.wire(name, kind)

    def special(self, name: str, kind: str) -> None:
        """A field that follows from the others."""
        if kind == "type":
            self.format += "H"
            self.puts.append(f"self.{name}")
            self.gets.append(f"self.{name}")
            self.stores.append(f"self.{name} = {self.number}")
            return
        self.format += "H"
        if kind == "alen":
            self.actions_length = name
            self.puts.append("alen")
            self.gets.append("alen")
        else:
            self.length = name
            self.puts.append(f"self.{name}")
            self.gets.append(f"self.{name}")

    def wire(self, name: str, kind: str) -> None:
        """The way of a field to the wire and back."""
        value = f"self.{name}"
        if kind in ("B", "H", "I", "Q"):
            self.format += kind
            self.puts.append(value)
            self.gets.append(value)
        elif kind == "mac":
            self.format += "6s"
            self.puts.append(f"mac_bin({value})")
            self.gets.append(value)
            self.converts.append(f"{value} = {value}.hex(':')")
            self.types.setdefault("ascii", []).append(name)
        elif kind == "mac0":
            self.format += "6s"
            self.puts.append(value)
            self.gets.append(value)
            self.stores[-1] = f"self.{name} = mac_bin({name})"
            self.shown[name] = lambda data: data.hex(":")
        elif kind == "ip0":
            self.format += "I"
            self.puts.append(value)
            self.gets.append(value)
            self.stores[-1] = f"self.{name} = ip_number({name})"
            self.shown[name] = lambda number: socket.inet_ntoa(number.to_bytes(4, "big"))
        elif kind == "match0":
            self.format += "40s"
            self.puts.append(f"{value}._pack()")
            self.gets.append(value)
            self.converts.append(f"{value} = M._take({value}, 0, 40)[0]")
        elif match := re.fullmatch(r"s(\d+)", kind):
            self.format += f"{match[1]}s"
            self.puts.append(f"text_bytes({value})")
            self.gets.append(value)
            self.converts.append(f"{value} = {value}.rstrip(b'\\0')")
            self.types.setdefault("utf-8" if name == "name" else "ascii", []).append(name)
        elif match := re.fullmatch(r"(\d)([BHIQ])", kind):
            self.format += kind
            self.puts.append(f"*{value}")
            places = [f"{name}_{place}" for place in range(int(match[1]))]
            self.gets.extend(places)
            self.converts.append(f"{value} = [{', '.join(places)}]")
        else:
            self.variable(name, kind, value)

    def variable(self, name: str, kind: str, value: str) -> None:
        """A field of any length."""
        if kind in ("bytes", "text"):
            self.tails.append(f"packet_bytes({value})")
            self.tail_reads.append(f"{value} = buf[offset:end]; offset = end")
            if kind == "text":
                self.types.setdefault("ascii", []).append(name)
        elif kind == "match":
            self.tails.append(f"{value}._pack()")
            self.tail_reads.append(f"{value}, offset = M._take(buf, offset, end)")
        elif kind == "padded":
            self.tails.append(f"b'\\0\\0' + packet_bytes({value})")
            self.tail_reads.append(f"{value} = buf[offset + 2:end]; offset = end")
        elif kind == "wordlist":
            self.tails.append(f"b''.join([i.to_bytes(4, 'big') for i in {value} or ()])")
            step = "int.from_bytes(buf[i:i + 4], 'big') for i in range(offset, end, 4)"
            self.tail_reads.append(f"{value} = [{step}]; offset = end")
        elif kind == "bytelist":
            self.tails.append(f"bytes({value} or ())")
            self.tail_reads.append(f"{value} = list(buf[offset:end]); offset = end")
        elif kind.startswith("bynumber_"):
            self.tails.append(f"b''.join([i._pack() for i in ({value} or {{}}).values()])")
            taken = f"takers['{kind[9:]}'](buf, offset, end)"
            self.tail_reads.append(f"{value} = {{i.port_no: i for i in {taken}}}; offset = end")
        elif kind.startswith("one_"):
            self.tails.append(f"{value}._pack()")
            self.tail_reads.append(f"{value}, offset = classes.{kind[4:]}._take(buf, offset, end)")
        else:
            words = f"b''.join([i._pack() for i in {value}])"
            self.tails.append(f"({words} if {value} else b'')")
            limit = "end"
            if self.actions_length and self.measured is None:
                self.measured = name
                limit = "offset + alen"
            self.tail_reads.append(f"limit = {limit}")
            self.tail_reads.append(f"{value} = takers['{kind[1:-1]}'](buf, offset, limit)")
            self.tail_reads.append("offset = limit")

    def source(self) -> str:
        """The functions of the class."""
        self.size = struct.calcsize("!" + self.format)
        lines = []
        first = ["self"] + (["datapath"] if self.kind in ("msg", "request", "reply") else [])
        parameters = self.parameters
        extra = []
        if self.length:
            extra = [f"{self.length}_=None" if self.length == "len" else f"{self.length}=None"]
        if self.actions_length:
            extra.append(f"{self.actions_length}=None")
        if self.number is not None and self.kind in ("tlv", "queueprop", "request"):
            word = "property_" if self.kind == "queueprop" else "type_"
            if word not in parameters:
                extra.append(f"{word}=None")
        lines.append(f"def __init__({', '.join(first + parameters + extra)}):")
        body = list(self.stores)
        if "datapath" in first:
            body.insert(0, "self.datapath = datapath")
        if self.actions_length:
            body.append(f"self.{self.actions_length} = 0")
        if self.length:
            fixed = str(self.size) if not self.tails else "None"
            given = f"{self.length}_" if self.length == "len" else self.length
            body.append(f"self.{self.length} = {given if fixed == 'None' else fixed}")
        lines.extend(f"    {line}" for line in body or ["pass"])
        lines += self.pack_source()
        lines += self.take_source()
        return "\n".join(lines)

    def pack_source(self) -> List[str]:
        """``_pack``."""
        lines = ["def _pack(self):"]
        if self.tails:
            if self.actions_length:
                at = next(i for i, t in enumerate(self.tails) if "_pack() for i" in t)
                lines.append(f"    acts = {self.tails[at]}")
                lines.append("    alen = len(acts)")
                lines.append(f"    self.{self.actions_length} = alen")
                self.tails[at] = "acts"
            lines.append(f"    tail = {' + '.join(self.tails)}")
            if self.length:
                lines.append(f"    self.{self.length} = {self.size} + len(tail)")
            if self.kind == "prop":
                lines.append(f"    tail += bytes(-(len(tail) + {self.size}) % 8)")
            lines.append(f"    return pack({', '.join(self.puts)}) + tail")
        else:
            padding = f" + bytes({-self.size % 8})" if self.kind == "prop" else ""
            lines.append(f"    return pack({', '.join(self.puts)}){padding}")
        return lines

    def take_source(self) -> List[str]:
        """``_take``."""
        lines = ["def _take(cls, buf, offset, end):", "    self = cls.__new__(cls)"]
        if self.gets:
            gets = ", ".join(self.gets)
            lines.append(f"    ({gets},) = unpack(buf, offset)")
        if self.length:
            lines.append(f"    end = offset + self.{self.length}")
        lines.append(f"    offset += {self.size}")
        lines += [f"    {line}" for line in self.converts + self.tail_reads]
        if self.length and not self.tail_reads:
            lines.append("    offset = end")
        if self.kind == "prop":
            lines.append("    offset = (end + 7) // 8 * 8")
        if self.actions_length:
            lines.append(f"    self.{self.actions_length} = alen")
        lines.append("    return self, offset")
        return lines


def lines_of(rows: str) -> List[str]:
    """The rows of a text, one line each."""
    return rows.replace("\\\n", " ").splitlines()


def rows_after(before: str, gone: Tuple[str, ...], rows: str) -> str:
    """The rows of a version: those of the one before without ``gone``, and its own."""
    kept = [row for row in lines_of(before) if not row.startswith(gone)]
    return "\n".join([*kept, rows])


def inherit(modname: str, before: ModuleType, gone: Tuple[str, ...]) -> None:
    """Gives the parser of a version the classes of the one before that no row makes.

    They are subclasses, so that families and versions are those of their module. A class that the
    module has already, and names that begin with ``gone``, are left alone.
    """
    names = vars(sys.modules[modname])
    made: Dict[type, type] = {}
    for name, old in vars(before).items():
        if not isinstance(old, type) or old.__module__ != before.__name__:
            continue
        is_made = before.TABLE.rows.get(old.__name__, ["", "by_hand"])[1:] != ["by_hand"]
        if is_made or name.startswith(("_", *gone)):
            continue
        if name not in names:
            if old not in made:
                bases = (old, *(made[base] for base in old.__bases__ if base in made))
                members: Dict[str, Any] = {"__module__": modname, "__doc__": old.__doc__}
                if hasattr(old, "cls_version"):
                    members["cls_version"] = names["ofproto"].OFP_VERSION
                made[old] = type(name, bases, members)
            names[name] = made[old]
        made.setdefault(old, names[name])


class Table:
    """The rows of a version's parser, and the classes that were made of them."""

    def __init__(
        self, module: ModuleType, ofproto: ModuleType, rows: str, absent: Mapping[str, str]
    ) -> None:
        self.module, self.ofproto = module, ofproto
        #: Sentences for names that are not there, by the beginnings of the names.
        self.absent = absent
        self.rows: Dict[str, List[str]] = {}
        for row in lines_of(rows):
            words = row.split()
            if words:
                self.rows[words[0]] = words[1:]
        self.takers: Dict[str, Callable[..., List[Any]]] = _Takers(self)
        self.by_type: Dict[Tuple[str, int], str] = {}
        for name, words in self.rows.items():
            family, _, number = words[0].partition("=")
            if number and family not in ("msg",) or family == "msg":
                self.by_type[(family, int(number, 0))] = name

    def __contains__(self, name: str) -> bool:
        return name in self.rows

    def parse(self, datapath: Any, data: bytes) -> Optional[MsgBase]:
        """The message of these bytes; ``None`` where its type has no class."""
        version, msg_type, length, xid = HEADER.unpack_from(data)
        family, number = "msg", msg_type
        for name in ("request", "reply"):
            # Of these the number behind the header decides.
            if msg_type == getattr(self.module, self.module.BASES[name]).cls_msg_type:
                family, number = name, int.from_bytes(data[8:10], "big")
        name = self.by_type.get((family, number), "")
        if not name:
            return None
        made: MsgBase = getattr(self.module, name)._take(data, 8, length)[0]
        made.set_datapath(datapath)
        made.set_headers(version, msg_type, length, xid)
        made.buf = data
        return made

    def attribute(self, name: str) -> Any:
        """The ``__getattr__`` of the module: classes are made when they are asked for."""
        from weir.ryu.ofproto import nicira

        module = self.module
        if name == "PacketInOf":
            made = lazy_packet_in(
                module.OFPPacketIn, lambda data: module.OFPMatch._take(data, 0, len(data))[0]
            )
        elif name in self.rows:
            made = self.make(name)
        elif name.startswith(nicira.PREFIXES):
            return nicira.class_of(module, name)
        else:
            instead = next((self.absent[key] for key in self.absent if name.startswith(key)), "")
            owner = module.__name__.rpartition(".")[2]
            known = [] if instead else [*self.rows, *vars(module)]
            raise missing(owner, name, known, instead)
        setattr(module, name, made)
        return made

    def make(self, name: str) -> Any:
        """The class of a row."""
        family, _, number = self.rows[name][0].partition("=")
        words = self.rows[name][1:]
        if family == "reply":
            return self._reply(name, number, words)
        if family == "request":
            words = [*self.module.REQUEST_HEAD.split(), *words]
        kind = self.module.FAMILIES.get(family, family)
        base = getattr(self.module, self.module.BASES[family])
        if kind == "tuple":
            return self._tuple(name, words)
        code = _Code(self, kind, number or None, words)
        source = code.source()
        record = struct.Struct("!" + code.format)
        scope: Dict[str, Any] = {
            "pack": record.pack,
            "unpack": record.unpack_from,
            "takers": self.takers,
            "classes": self.module,
            "mac_bin": mac_bin,
            "ip_number": ip_number,
            "text_bytes": text_bytes,
            "packet_bytes": packet_bytes,
        }
        if "M" in source:
            scope["M"] = self.module.OFPMatch
        exec(compile(source, f"<{self.module.__name__}.{name}>", "exec"), scope)
        members = {
            "__module__": self.module.__name__,
            "__init__": scope["__init__"],
            "_pack": scope["_pack"],
            "_take": classmethod(scope["_take"]),
            "_size": record.size,
            "_names": code.names,
        }
        if code.types:
            members["_TYPE"] = code.types
        if code.shown:
            members["_shown"] = code.shown
        if family == "msg":
            members["cls_msg_type"] = int(number, 0)
            members["cls_version"] = self.ofproto.OFP_VERSION
        members.update(self.module.members_of(family, number, code))
        return type(name, (base,), members)

    def _reply(self, name: str, number: str, words: List[str]) -> Any:
        """An answer to a multipart request: of instances of one class, or of one instance."""
        body, single = words[0].rstrip("!"), words[0].endswith("!")
        base = getattr(self.module, self.module.BASES["reply"])
        members = {
            "__module__": self.module.__name__,
            "cls_stats_type": int(number, 0),
            "cls_body": body,
            "cls_body_single_struct": single,
        }
        return type(name, (base,), members)

    def _tuple(self, name: str, words: List[str]) -> Any:
        code = _Code(self, "tuple", None, words)
        record = struct.Struct("!" + code.format)
        fields = code.names
        base = namedtuple(name, fields)
        source = "\n".join(
            [
                "def _pack(self):",
                f"    return pack({', '.join(code.puts)})",
                "def _take(cls, buf, offset, end):",
                f"    ({', '.join(get.removeprefix('self.') for get in code.gets)},) = "
                "unpack(buf, offset)",
                *(f"    {line.replace('self.', '')}" for line in code.converts),
                f"    made = cls({', '.join(fields)})",
                f"    made.length = {record.size}",
                f"    return made, offset + {record.size}",
            ]
        )
        scope: Dict[str, Any] = {
            "pack": record.pack,
            "unpack": record.unpack_from,
            "mac_bin": mac_bin,
            "text_bytes": text_bytes,
        }
        exec(compile(source, f"<{self.module.__name__}.{name}>", "exec"), scope)
        members = {
            "__module__": self.module.__name__,
            "_pack": scope["_pack"],
            "_take": classmethod(scope["_take"]),
            "_TYPE": code.types,
            "_size": record.size,
        }
        return type(name, (base,), members)


class _Takers(Dict[str, Callable[..., List[Any]]]):
    """For each class or family, the function that reads instances up to the end."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def __missing__(self, name: str) -> Callable[..., List[Any]]:
        made = self[name] = list_taker(getattr(self.table.module, name)._take)
        return made


class StatsReply(MsgBase):
    """An answer to a multipart request."""

    _head = struct.Struct("!HH4x")
    cls_stats_type = -1
    cls_body = ""
    cls_body_single_struct = False

    def __init__(
        self, datapath: Any, body: Any = None, flags: Any = None, type_: Any = None
    ) -> None:
        super().__init__(datapath)
        self.body, self.flags = body, flags
        self.type = self.cls_stats_type if type_ is None else type_

    def _pack(self) -> bytes:
        items = [self.body] if self.cls_body_single_struct else self.body or []
        return self._head.pack(self.type, self.flags or 0) + b"".join(i._pack() for i in items)

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> Tuple[Any, int]:
        self = cls.__new__(cls)
        self.type, self.flags = cls._head.unpack_from(buf, offset)
        taker = sys.modules[cls.__module__].TABLE.takers[cls.cls_body]
        body = taker(buf, offset + cls._head.size, end)
        self.body = body[0] if cls.cls_body_single_struct and body else body
        return self, end


class Family(Record):
    """Structures that begin with their type and length, each type with a class of its own."""

    _family = ""
    _key = struct.Struct("!HH")

    @classmethod
    def _take(cls, buf: bytes, offset: int, end: int) -> Tuple[Any, int]:
        number, length = cls._key.unpack_from(buf, offset)
        if length < cls._key.size or offset + length > end:
            raise struct.error(f"{cls.__name__} of {length} bytes at byte {offset}")
        module = sys.modules[cls.__module__]
        name = module.TABLE.by_type.get((cls._family, number))
        if name is None:
            raise struct.error(f"{cls.__name__} of the unknown type {number}")
        taken: Tuple[Any, int] = getattr(module, name)._take(buf, offset, offset + length)
        return taken


#: The reasons of packet-ins, by the compiled part's names.
_REASONS = {
    "no_match": 0,
    "action": 1,
    "invalid_ttl": 2,
    "action_set": 3,
    "group": 4,
    "packet_out": 5,
}


def lazy_packet_in(base: Any, match_of: Any) -> Any:
    """The class of packet-ins over the compiled part's: parts are read when they are asked for."""
    ones = (1 << 32) - 1
    head = 8 + base._size + (2 if base.cls_version > 1 else 0)

    def buffer_id(pkt: Any) -> Any:
        return ones if pkt.buffer_id is None else pkt.buffer_id

    readers: Dict[str, Callable[[Any], Any]] = {
        "data": lambda pkt: pkt.data,
        "total_len": lambda pkt: pkt.total_len,
        "in_port": lambda pkt: pkt.in_port,
        "buffer_id": buffer_id,
        "reason": lambda pkt: _REASONS.get(pkt.reason, 0xFF),
        "table_id": lambda pkt: pkt.table_id,
        "cookie": lambda pkt: pkt.cookie,
    }
    names = [name for name in base._names if name in readers]
    own = {name: readers[name] for name in names}
    has_match = "match" in base._names
    if has_match:
        own["match"] = lambda pkt: match_of(pkt._match())

    class OFPPacketIn(base):  # type: ignore[misc]
        version = base.cls_version
        msg_type = base.cls_msg_type
        xid = 0

        def __init__(self, datapath: Any, pkt: Any) -> None:
            self.datapath = datapath
            self._pkt = pkt

        def __getattr__(self, name: str) -> Any:
            reader = own.get(name)
            if reader is None:
                raise missing("OFPPacketIn", name, own, f"it has {', '.join(own)}")
            value: Any = reader(self._pkt)
            self.__dict__[name] = value
            return value

        @property
        def msg_len(self) -> Any:
            match = (self.match.length + 7) // 8 * 8 if has_match else 0
            return head + match + len(self.data)

        @property
        def buf(self) -> Any:
            return self.datapath.weir._encode(self._pkt)

        @property
        def weir(self) -> Any:
            """Weir's own object of the packet-in."""
            return self._pkt

        def stringify_attrs(self) -> Any:
            return ((name, getattr(self, name)) for name in sorted(own))

        def _pack(self) -> bytes:
            for name in own:
                getattr(self, name)
            return base._pack(self)  # type: ignore[no-any-return]

    OFPPacketIn.__module__ = base.__module__
    OFPPacketIn.__qualname__ = "OFPPacketIn"
    return OFPPacketIn
