"""A stream as it is sent to the generator: the words are those of a profile."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional, Union


@dataclasses.dataclass
class Stream:
    """Frames of one header stack; docs/generator.md explains each word.

    What is left out (``None``) has the generator's default.
    """

    #: The headers from the outside in: ``"eth/vlan(vid=5)/ipv4(dst=10.0.0.2)/udp(dst=53)"``.
    packet: Optional[str] = None
    #: ``"80%"``, ``"1.5Mpps"``, ``"500Mbps"``, ``"1Gbps_l1"`` or ``"max"``.
    rate: Optional[str] = None
    #: Bytes with FCS: ``64``, ``[64, 128]``, ``{"imix": "simple"}``, ``{"min": 64, "max": 1518}``.
    size: Union[int, List[int], Dict[str, Any], None] = None
    #: Unique among the streams of a port; ``stream-N`` where it is left out.
    name: Optional[str] = None
    #: The port, where ``add_streams`` is not told of ports.
    port: Optional[int] = None
    #: Fields that differ from frame to frame.
    modifiers: Optional[List[Dict[str, Any]]] = None
    #: ``"continuous"``, ``{"burst": 5}`` or
    #: ``{"bursts": {"count": 3, "packets": 10, "gap_us": 5}}``.
    mode: Union[str, Dict[str, Any], None] = None
    #: ``"constant"`` or ``{"poisson": SEED}``.
    arrival: Union[str, Dict[str, int], None] = None
    #: Seconds from the start of the port, or of the chain, to the first frame.
    start_after_s: Optional[float] = None
    #: The stream that starts when this one has ended.
    next: Optional[str] = None
    #: Whether it starts with its port.
    self_start: Optional[bool] = None
    #: Whether frames carry a sequence number and a time stamp.
    probe: Optional[bool] = None
    #: A frame that arrives so many microseconds after it was due counts as late.
    late_after_us: Optional[float] = None
    #: Whether all checksums of each frame that arrives are checked.
    verify_checksums: Optional[bool] = None
    #: The bytes behind the headers: ``"zero"``, ``"abc"`` or ``{"user": "text"}``.
    pattern: Union[str, Dict[str, str], None] = None
    #: The frames of a file instead: ``{"file": "x.pcap", "timing": "original", "loops": 1}``.
    capture: Optional[Dict[str, Any]] = None

    def words(self) -> Dict[str, Any]:
        """The stream as the generator reads it."""
        words = dataclasses.asdict(self)
        return {word: value for word, value in words.items() if value is not None}
