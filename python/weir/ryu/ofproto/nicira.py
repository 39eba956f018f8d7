"""Nicira's actions (``NXActionLearn`` and others): the classes of an installed os-ken, over the
parsers here. They are made when the first of them is asked for, or comes from a switch.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType
from typing import Any, Dict

from weir import aliases
from weir.ryu.missing import missing
from weir.ryu.ofproto import oxm_fields
from weir.ryu.ofproto.ofproto_common import NX_EXPERIMENTER_ID
from weir.ryu.ofproto.ofproto_parser import msg_pack_into

#: The beginnings of the names of the classes.
PREFIXES = ("NXAction", "NXFlowSpec", "_NXFlowSpec")

#: In place of them, by the beginning of a name.
INSTEAD = {
    "NXActionResubmit": "OFPInstructionGotoTable",
    "NXActionRegLoad": "OFPActionSetField, and OFPInstructionWriteMetadata in place of a register",
    "NXActionSetTunnel": "OFPActionSetField(tunnel_id=..)",
    "NXActionSetQueue": "OFPActionSetQueue",
    "NXActionDecTtl": "OFPActionDecNwTtl",
    "NXActionController": "OFPActionOutput(ofproto.OFPP_CONTROLLER, max_len)",
    "NXActionPushMpls": "OFPActionPushMpls",
    "NXActionPopMpls": "OFPActionPopMpls",
    "NXActionSetMplsTtl": "OFPActionSetMplsTtl",
    "NXActionDecMplsTtl": "OFPActionDecMplsTtl",
    "NXActionSetMpls": "OFPActionSetField(mpls_label=..) and mpls_tc",
    "NXActionMultipath": "groups of the type OFPGT_SELECT",
    "NXActionBundle": "groups of the type OFPGT_SELECT",
    "NXActionFinTimeout": "the idle_timeout of OFPFlowMod",
}


def _base(parser: ModuleType) -> type:
    """The base of the actions: their header, behind which os-ken's classes write."""
    number = "vendor" if "OFPActionVendor" in vars(parser) else "experimenter"
    base: Any = parser.OFPActionExperimenter

    class Action(base):  # type: ignore[misc]
        def __init__(self, experimenter: int) -> None:
            self.type = 0xFFFF
            self.len: Any = None
            setattr(self, number, experimenter)

        def serialize(self, buf: bytearray, offset: int) -> None:
            msg_pack_into("!HHI", buf, offset, self.type, self.len, NX_EXPERIMENTER_ID)

        def _pack(self) -> bytes:
            buf = bytearray()
            self.serialize(buf, 0)
            return bytes(buf) + bytes(self.len - len(buf))

        def __getattr__(self, name: str) -> Any:
            # os-ken's ofctl asks actions that it has no text for.
            if name == "data":
                return self._pack()[10:]
            raise AttributeError(f"{type(self).__name__} has no {name}")

    return Action


@functools.lru_cache(maxsize=None)
def classes(parser: ModuleType) -> Dict[str, Any]:
    """The classes by their names; none without an os-ken."""
    aliases.install()
    try:
        source = importlib.import_module(f"{__package__}.nx_actions")
    except ModuleNotFoundError:
        return {}
    constants, over = ModuleType("ofproto"), ModuleType(parser.__name__)
    vars(constants).update(oxm_fields.FUNCTIONS)
    vars(constants).update(OFP_ACTION_EXPERIMENTER_HEADER_SIZE=8, OFP_DEFAULT_PRIORITY=0x8000)
    vars(over).update(OFPAction=parser.OFPAction, OFPActionExperimenter=_base(parser))
    # os-ken looks both up by their names.
    names = {f"{__name__}.constants": constants, f"{__name__}.over": over}
    sys.modules.update(names)
    try:
        source.generate(*names)
    finally:
        for name in names:
            del sys.modules[name]
    made = {name: value for name, value in vars(over).items() if name.startswith(("NX", "_NX"))}
    vars(parser).update(made)
    return made


def class_of(parser: ModuleType, name: str) -> Any:
    """The class of this name.

    Raises AttributeError, with the way to it and what OpenFlow has in its place.
    """
    found = classes(parser)
    if name in found:
        return found[name]
    instead = "Nicira's actions are os-ken's: `pip install os-ken`"
    for beginning, words in INSTEAD.items():
        if name.startswith(beginning):
            instead += f"; OpenFlow 1.3 has {words}"
            break
    raise missing(parser.__name__.rpartition(".")[2], name, found, instead, depth=3)


def action_of(parser: ModuleType, experimenter: int, data: bytes) -> Any:
    """The action of the bytes behind a header; ``None`` where no class takes them."""
    if experimenter != NX_EXPERIMENTER_ID or not classes(parser):
        return None
    try:
        return classes(parser)["NXAction"].parse(data)
    except Exception:
        # They are any bytes of a switch, and os-ken's classes check none.
        return None
