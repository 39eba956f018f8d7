"""``ryu.ofproto``."""

from __future__ import annotations

from types import ModuleType
from typing import Dict, Tuple

from weir.aliases import extend
from weir.ryu.ofproto import ofproto_protocol

__path__ = extend(__name__, __path__)


def get_ofp_modules() -> Dict[int, Tuple[ModuleType, ModuleType]]:
    """Constants and classes of all versions, by number."""
    return ofproto_protocol._versions.all()


def get_ofp_module(ofp_version: int) -> Tuple[ModuleType, ModuleType]:
    """Constants and classes of a version."""
    return ofproto_protocol._versions[ofp_version]
