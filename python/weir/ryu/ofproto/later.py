"""Versions of OpenFlow over which no app of Ryu runs: their numbers, by which apps ask for them.

Apps for several versions import them all. All else of theirs is an error that names the version.
"""

from __future__ import annotations

from typing import Any, Callable

from weir.ryu.missing import missing
from weir.ryu.ofproto.ofproto_protocol import spoken


def absent(module: str, version: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module of such a version."""

    def getattribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        instead = f"apps of Ryu run over OpenFlow {spoken()}, not {version}"
        raise missing(f"ryu.ofproto.{module}", name, (), instead)

    return getattribute
