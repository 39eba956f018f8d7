"""``ryu.lib.dpid``: datapath ids as text."""

from __future__ import annotations

_DPID_LEN = 16
_DPID_FMT = "%016x"

DPID_PATTERN = r"[0-9a-f]{16}"


def dpid_to_str(dpid: int) -> str:
    """16 hexadecimal digits."""
    return f"{dpid:016x}"


def str_to_dpid(dpid_str: str) -> int:
    """The number of 16 hexadecimal digits."""
    if len(dpid_str) != _DPID_LEN:
        raise AssertionError(f"{dpid_str!r} is no datapath id of {_DPID_LEN} digits")
    return int(dpid_str, 16)
