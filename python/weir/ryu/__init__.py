"""Matches, actions and instructions by the names that Ryu gives them, and the package that apps of
Ryu and os-ken import as ``ryu`` and ``os_ken`` under ``weir ryu-manager`` and ``weir run``.

They make the same values as the text of ``weir ctl``, so that scripts for Ryu keep their lines::

    from weir.ryu import OFPActionOutput, OFPActionSetField, OFPMatch

    match = OFPMatch(in_port=1, eth_dst="02:00:00:00:00:02")
    sw.add_flow(match=match, actions=[OFPActionSetField(eth_dst=other), OFPActionOutput(2)])
"""

from __future__ import annotations

import re
from typing import Any, Optional, Sequence

from weir._weir import Action, Instruction, Match, Switch
from weir.aliases import extend
from weir.errors import WordError

__path__ = extend(__name__, __path__)

#: The version whose interface this is.
__version__ = "4.34"

#: Ryu's class of this name and that of this package are called with the same keywords.
OFPMatch = Match

OFPP_IN_PORT = 0xFFFFFFF8
OFPP_TABLE = 0xFFFFFFF9
OFPP_NORMAL = 0xFFFFFFFA
OFPP_FLOOD = 0xFFFFFFFB
OFPP_ALL = 0xFFFFFFFC
OFPP_CONTROLLER = 0xFFFFFFFD
OFPP_LOCAL = 0xFFFFFFFE
OFPP_ANY = 0xFFFFFFFF
OFPCML_NO_BUFFER = 0xFFFF
OFP_NO_BUFFER = 0xFFFFFFFF
OFPVID_PRESENT = 0x1000
OFPIT_APPLY_ACTIONS = 4
OFPIT_WRITE_ACTIONS = 3
OFPIT_CLEAR_ACTIONS = 5


def OFPActionOutput(port: int, max_len: int = OFPCML_NO_BUFFER) -> Action:
    """Output to a port."""
    if port == OFPP_CONTROLLER:
        return Action(f"CONTROLLER:{max_len}")
    return Action(f"output:{port}")


def OFPActionSetField(**field: Any) -> Action:
    """Set one field: ``OFPActionSetField(eth_src="02:00:00:00:00:01")``."""
    if len(field) != 1:
        raise WordError(f"OFPActionSetField takes one field, not {len(field)}")
    [(name, value)] = field.items()
    if isinstance(value, tuple):
        raise WordError("OFPActionSetField takes no mask in OpenFlow 1.3")
    return Action(f"set_field:{value}->{name}")


def OFPActionGroup(group_id: int) -> Action:
    """Process by a group."""
    return Action(f"group:{group_id}")


def OFPActionSetQueue(queue_id: int) -> Action:
    """Choose the queue of outputs behind it."""
    return Action(f"set_queue:{queue_id}")


def OFPActionPushVlan(ethertype: int = 0x8100) -> Action:
    """Push a VLAN tag."""
    return Action(f"push_vlan:{ethertype:#06x}")


def OFPActionPopVlan() -> Action:
    """Pop the outermost VLAN tag."""
    return Action("pop_vlan")


def OFPActionPushMpls(ethertype: int = 0x8847) -> Action:
    """Push an MPLS entry."""
    return Action(f"push_mpls:{ethertype:#06x}")


def OFPActionPopMpls(ethertype: int = 0x0800) -> Action:
    """Pop the outermost MPLS entry."""
    return Action(f"pop_mpls:{ethertype:#06x}")


def OFPActionPushPbb(ethertype: int = 0x88E7) -> Action:
    """Push a PBB tag."""
    return Action(f"push_pbb:{ethertype:#06x}")


def OFPActionPopPbb() -> Action:
    """Pop the PBB tag."""
    return Action("pop_pbb")


def OFPActionSetNwTtl(nw_ttl: int) -> Action:
    """Set the TTL of IP."""
    return Action(f"mod_nw_ttl:{nw_ttl}")


def OFPActionDecNwTtl() -> Action:
    """Decrement the TTL of IP."""
    return Action("dec_ttl")


def OFPActionSetMplsTtl(mpls_ttl: int) -> Action:
    """Set the TTL of MPLS."""
    return Action(f"set_mpls_ttl({mpls_ttl})")


def OFPActionDecMplsTtl() -> Action:
    """Decrement the TTL of MPLS."""
    return Action("dec_mpls_ttl")


def OFPActionCopyTtlOut() -> Action:
    """Copy the TTL outwards."""
    return Action("copy_ttl_out")


def OFPActionCopyTtlIn() -> Action:
    """Copy the TTL inwards."""
    return Action("copy_ttl_in")


def OFPInstructionActions(type_: int, actions: Optional[Sequence[Action]] = None) -> Instruction:
    """Apply, write or clear actions."""
    if type_ == OFPIT_CLEAR_ACTIONS:
        return Instruction("clear_actions")
    words = {OFPIT_APPLY_ACTIONS: "apply_actions", OFPIT_WRITE_ACTIONS: "write_actions"}
    if type_ not in words:
        allowed = "OFPIT_APPLY_ACTIONS, OFPIT_WRITE_ACTIONS, OFPIT_CLEAR_ACTIONS"
        raise WordError(f"OFPInstructionActions: type {type_}; allowed are {allowed}")
    text = ",".join(str(action) for action in actions or [])
    return Instruction(f"{words[type_]}({text})")


def OFPInstructionGotoTable(table_id: int) -> Instruction:
    """Go on in another table."""
    return Instruction(f"goto_table:{table_id}")


def OFPInstructionWriteMetadata(metadata: int, metadata_mask: int = (1 << 64) - 1) -> Instruction:
    """Write metadata."""
    return Instruction(f"write_metadata:{metadata:#x}/{metadata_mask:#x}")


def OFPInstructionMeter(meter_id: int) -> Instruction:
    """Meter."""
    return Instruction(f"meter:{meter_id}")


#: What sends the messages whose classes are not here, by the beginnings of names.
_SENT_BY = {
    "OFPFlowMod": "sw.add_flow(..), sw.modify_flows(..) and sw.delete_flows(..)",
    "OFPPacketOut": "sw.packet_out(data, actions=..)",
    "OFPGroupMod": 'sw.add_group("group_id=1,type=select,bucket=output:1,bucket=output:2")',
    "OFPBucket": 'sw.add_group("group_id=1,type=select,bucket=output:1,bucket=output:2")',
    "OFPMeterMod": 'sw.add_meter("meter=1,kbps,band=type=drop,rate=1000")',
    "OFPMeterBand": 'sw.add_meter("meter=1,kbps,band=type=drop,rate=1000")',
    "OFPPortMod": "sw.set_port(2, up=False)",
    "OFPSetConfig": "sw.set_config(miss_send_len=128)",
}


def _instead(name: str) -> str:
    """The verb of a switch in place of the class of a message."""
    for beginning, verbs in _SENT_BY.items():
        if name.startswith(beginning):
            return verbs
    asked = name.removeprefix("OFP").removesuffix("Request").removesuffix("Reply")
    verb = re.sub("(?<!^)(?=[A-Z])", "_", asked).lower()
    for verb in (verb, verb.removesuffix("_stats")):
        if hasattr(Switch, verb):
            return f"await sw.{verb}(..)"
    return "a whole app of Ryu has it in ryu.ofproto, by `weir ryu-manager`"


def __getattr__(name: str) -> Any:
    if not name.startswith("OFP"):
        raise AttributeError(f"module 'weir.ryu' has no {name}")
    from weir.ryu.missing import missing
    from weir.ryu.ofproto import ofproto_v1_3

    if name.isupper() and name in vars(ofproto_v1_3):
        return vars(ofproto_v1_3)[name]
    raise missing("weir.ryu", name, globals(), _instead(name))
