"""``ryu.lib.port_no``: port numbers as text."""

from __future__ import annotations

PORT_NO_PATTERN = r"[0-9a-f]{8}"


def port_no_to_str(port_no: int) -> str:
    """8 hexadecimal digits."""
    return f"{port_no:08x}"


def str_to_port_no(port_no_str: str) -> int:
    """The number of 8 hexadecimal digits."""
    if len(port_no_str) != 8:
        raise AssertionError(f"{port_no_str!r} is no port number of 8 digits")
    return int(port_no_str, 16)
