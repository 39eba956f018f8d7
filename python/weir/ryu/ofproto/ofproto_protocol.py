"""``ryu.ofproto.ofproto_protocol``: the versions that the apps may speak."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Dict, Iterable, Optional, Tuple

#: The versions over which apps run, by their number on the wire.
NAMES = {
    0x01: ("v1_0", "OpenFlow10"),
    0x04: ("v1_3", "OpenFlow13"),
    0x05: ("v1_4", "OpenFlow14"),
    0x06: ("v1_5", "OpenFlow15"),
}


def spoken(form: str = "") -> str:
    """The versions over which apps run, for an error; ``form`` takes the number on the wire."""
    names = [f"1.{version - 1}{form % version if form else ''}" for version in NAMES]
    return f"{', '.join(names[:-1])} and {names[-1]}"


#: Those of apps that name none.
USUAL = {0x01, 0x04}

_supported_versions = set(USUAL)
_is_named = False


class _Versions(Dict[int, Tuple[ModuleType, ModuleType]]):
    """Constants and classes of each version, imported when they are asked for."""

    def __missing__(self, version: int) -> Tuple[ModuleType, ModuleType]:
        if version not in NAMES:
            raise KeyError(version)
        base = f"weir.ryu.ofproto.ofproto_{NAMES[version][0]}"
        self[version] = importlib.import_module(base), importlib.import_module(f"{base}_parser")
        return self[version]

    def all(self) -> "_Versions":
        """The same, whole."""
        for version in NAMES:
            self[version]
        return self


_versions = _Versions()


def set_app_supported_versions(vers: Iterable[int], app: str = "an app") -> None:
    """An app speaks these versions only."""
    global _supported_versions, _is_named
    wanted = set(vers)
    if not wanted & set(NAMES):
        # 1.0 is the first, and 1.5 the sixth.
        names = ", ".join(f"OpenFlow 1.{version - 1} ({version:#x})" for version in sorted(wanted))
        raise ValueError(f"{app} needs {names}; apps of Ryu run over {spoken(' (%#x)')}")
    left = (_supported_versions if _is_named else set(NAMES)) & wanted
    if not left:
        raise ValueError(f"{app}: no version is in the OFP_VERSIONS of all apps")
    _supported_versions, _is_named = left, True


def protocols() -> str:
    """The versions that all apps speak, as ``--protocols`` takes them."""
    return ",".join(NAMES[version][1] for version in sorted(_supported_versions))


class ProtocolDesc:
    """Constants and classes of a version."""

    def __init__(self, version: Optional[int] = None) -> None:
        self.set_version(max(_supported_versions) if version is None else version)

    def set_version(self, version: int) -> None:
        """Another version."""
        self.ofproto, self.ofproto_parser = _versions[version]

    @property
    def supported_ofp_version(self) -> "set[int]":
        """The versions that all apps speak."""
        return _supported_versions
