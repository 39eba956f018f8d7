"""``ryu.lib.stringify``: objects as text and as JSON, by their attributes."""

from __future__ import annotations

import base64
import builtins
import inspect
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

_RESERVED_KEYWORD = frozenset(dir(builtins))


class TypeDescr:
    """The base of types of attributes."""


class AsciiStringType(TypeDescr):
    @staticmethod
    def encode(v: Any) -> str:
        return v if isinstance(v, str) else str(v, "ascii")

    @staticmethod
    def decode(v: Any) -> Any:
        return v


class Utf8StringType(TypeDescr):
    @staticmethod
    def encode(v: Any) -> str:
        return v if isinstance(v, str) else str(v, "utf-8")

    @staticmethod
    def decode(v: str) -> bytes:
        return v.encode("utf-8")


class AsciiStringListType(TypeDescr):
    @staticmethod
    def encode(v: Any) -> List[str]:
        return [AsciiStringType.encode(x) for x in v]

    @staticmethod
    def decode(v: Any) -> List[Any]:
        return list(v)


class NXFlowSpecFieldType(TypeDescr):
    @staticmethod
    def encode(v: Any) -> Any:
        return list(v) if isinstance(v, tuple) else v

    @staticmethod
    def decode(v: Any) -> Any:
        return tuple(v) if isinstance(v, list) else v


_types: Dict[str, Any] = {
    "ascii": AsciiStringType,
    "utf-8": Utf8StringType,
    "asciilist": AsciiStringListType,
    "nx-flow-spec-field": NXFlowSpecFieldType,
}


class StringifyMixin:
    """Text and JSON of an object's attributes."""

    #: The attributes of each type of text.
    _TYPE: Dict[str, List[str]] = {}
    _class_prefixes: List[str] = []
    _class_suffixes: List[str] = []
    #: Attributes that are not shown.
    _base_attributes: List[str] = []
    #: Attributes that are shown although they are of the class.
    _opt_attributes: List[str] = []

    def stringify_attrs(self) -> Iterator[Tuple[str, Any]]:
        """The attributes and their values."""
        return obj_python_attrs(self)

    def __str__(self) -> str:
        parts = ",".join(f"{name}={value!r}" for name, value in self.stringify_attrs())
        return f"{type(self).__name__}({parts})"

    __repr__ = __str__

    @classmethod
    def _is_class(cls, dict_: Dict[Any, Any]) -> bool:
        if len(dict_) != 1:
            return False
        (key,) = dict_
        return isinstance(key, (bytes, str)) and (
            any(key.startswith(prefix) for prefix in cls._class_prefixes)  # type: ignore
            or any(key.endswith(suffix) for suffix in cls._class_suffixes)  # type: ignore
        )

    @classmethod
    def _get_type(cls, k: str) -> Any:
        return next((_types[kind] for kind, names in cls._TYPE.items() if k in names), None)

    @classmethod
    def _get_encoder(cls, k: str, encode_string: Any) -> Callable[[Any], Any]:
        kind = cls._get_type(k)
        return kind.encode if kind else cls._get_default_encoder(encode_string)

    @classmethod
    def _encode_value(cls, k: str, v: Any, encode_string: Any = base64.b64encode) -> Any:
        return cls._get_encoder(k, encode_string)(v)

    @classmethod
    def _get_default_encoder(cls, encode_string: Any) -> Callable[[Any], Any]:
        def encode(v: Any) -> Any:
            if isinstance(v, (bytes, bytearray, str)):
                data = v.encode("utf-8") if isinstance(v, str) else bytes(v)
                return encode_string(data).decode("ascii")
            if isinstance(v, list):
                return [encode(item) for item in v]
            if isinstance(v, dict):
                return {str(key): encode(value) for key, value in v.items()}
            return v.to_jsondict() if hasattr(v, "to_jsondict") else v

        return encode

    def to_jsondict(self, encode_string: Any = base64.b64encode) -> Dict[str, Any]:
        """The class's name with the attributes, as JSON takes it."""
        attributes = {
            name: self._encode_value(name, value, encode_string) for name, value in obj_attrs(self)
        }
        return {type(self).__name__: attributes}

    @classmethod
    def cls_from_jsondict_key(cls, k: str) -> Any:
        """The class of a name."""
        return getattr(sys.modules[cls.__module__], k)

    @classmethod
    def obj_from_jsondict(cls, jsondict: Dict[str, Any], **additional_args: Any) -> Any:
        """The object of a class's name with attributes."""
        ((name, value),) = jsondict.items()
        return cls.cls_from_jsondict_key(name).from_jsondict(value, **additional_args)

    @classmethod
    def _get_decoder(cls, k: str, decode_string: Any) -> Callable[..., Any]:
        kind = cls._get_type(k)
        return kind.decode if kind else cls._get_default_decoder(decode_string)

    @classmethod
    def _decode_value(
        cls, k: str, json_value: Any, decode_string: Any = base64.b64decode, **_others: Any
    ) -> Any:
        return cls._get_decoder(k, decode_string)(json_value)

    @classmethod
    def _get_default_decoder(cls, decode_string: Any) -> Callable[..., Any]:
        def decode(value: Any, **additional_args: Any) -> Any:
            if isinstance(value, (bytes, str)):
                return decode_string(value)
            if isinstance(value, list):
                return [decode(item) for item in value]
            if isinstance(value, dict):
                if cls._is_class(value):
                    return cls.obj_from_jsondict(value, **additional_args)
                items = {key: decode(item) for key, item in value.items()}
                try:
                    return {int(key): item for key, item in items.items()}
                except ValueError:
                    return items
            return value

        return decode

    @classmethod
    def from_jsondict(
        cls, dict_: Dict[str, Any], decode_string: Any = base64.b64decode, **additional_args: Any
    ) -> Any:
        """An object with the attributes of a dict."""
        keywords = {
            f"{key}_" if key in _RESERVED_KEYWORD else key: cls._decode_value(
                key, value, decode_string, **additional_args
            )
            for key, value in dict_.items()
        }
        return cls(**keywords, **additional_args)

    @classmethod
    def set_classes(cls, registered_dict: Dict[Any, type]) -> None:
        """Names of classes that a dict may begin with."""
        cls._class_prefixes.extend(value.__name__ for value in registered_dict.values())


def obj_python_attrs(msg_: Any) -> Iterator[Tuple[str, Any]]:
    """The attributes of an object, by name."""
    if hasattr(msg_, "_fields"):
        for name in msg_._fields:
            yield name, getattr(msg_, name)
        return
    base = getattr(msg_, "_base_attributes", [])
    optional = getattr(msg_, "_opt_attributes", [])
    cls = type(msg_)
    for name, value in inspect.getmembers(msg_):
        if name not in optional and (
            name.startswith("_") or callable(value) or name in base or hasattr(cls, name)
        ):
            continue
        yield name, value


def obj_attrs(msg_: Any) -> Iterator[Tuple[str, Any]]:
    """The same, with the names that keywords have."""
    shown = msg_.stringify_attrs() if isinstance(msg_, StringifyMixin) else obj_python_attrs(msg_)
    for name, value in shown:
        if name.endswith("_") and name[:-1] in _RESERVED_KEYWORD:
            name = name[:-1]
        yield name, value
