"""Constants of a version, from lines of a prefix and names with numbers."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any, Dict, Tuple

from weir.ryu.missing import missing


def define_after(modname: str, before: ModuleType, gone: Tuple[str, ...], text: str) -> None:
    """The same, and those of the version before whose names do not begin with ``gone``."""
    kept = {
        name: value
        for name, value in vars(before).items()
        if name.isupper() and isinstance(value, int) and not name.startswith(gone)
    }
    vars(sys.modules[modname]).update(kept)
    define(modname, text)


def define(modname: str, text: str) -> None:
    """Gives a module the constants of a text, and functions that name its numbers."""
    names = vars(sys.modules[modname])
    for line in text.split("\n"):
        prefix, *words = line.split() or [""]
        for word in words:
            name, _, number = word.partition("=")
            names[name if prefix == "." else f"{prefix}_{name}"] = int(number, 0)

    def named(number: int, prefix: str) -> str:
        for name, value in names.items():
            if name.startswith(prefix) and value == number:
                return name
        return "Unknown"

    def error(type_: int, code: int) -> Tuple[str, str]:
        type_name = named(type_, "OFPET_")
        if type_name == "Unknown":
            return type_name, type_name
        letters = "".join(re.findall("_(.)", type_name)).upper()
        if type_name == "OFPET_FLOW_MONITOR_FAILED":
            letters = "MOF"
        return type_name, named(code, f"OFP{letters}C_")

    def ofp_msg_type_to_str(type_: int) -> str:
        return f"{named(type_, 'OFPT_')}({type_})"

    def ofp_error_type_to_str(type_: int) -> str:
        return f"{named(type_, 'OFPET_')}({type_})"

    def ofp_error_code_to_str(type_: int, code: int) -> str:
        return f"{error(type_, code)[1]}({code})"

    def ofp_error_to_jsondict(type_: int, code: int) -> Dict[str, str]:
        type_name, code_name = error(type_, code)
        return {"type": f"{type_name}({type_})", "code": f"{code_name}({code})"}

    def absent(name: str) -> Any:
        instead = ""
        if name.endswith(("_SIZE", "_STR", "_LEN")):
            instead = (
                "sizes and formats of structures are not there, since the classes of the parser "
                "make the bytes"
            )
        known = [] if instead else names
        raise missing(modname.removeprefix("weir."), name, known, instead)

    for function in (
        ofp_msg_type_to_str,
        ofp_error_type_to_str,
        ofp_error_code_to_str,
        ofp_error_to_jsondict,
    ):
        names[function.__name__] = function
    names["__getattr__"] = absent
