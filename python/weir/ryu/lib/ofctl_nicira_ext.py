"""``ryu.lib.ofctl_nicira_ext``: actions of Open vSwitch's extensions as text, by their bytes."""

from __future__ import annotations

import base64
from typing import Any


def action_to_str(act: Any, _ofctl_action_to_str: Any) -> str:
    """An action of Nicira's, whose kind Weir's parsers leave open."""
    data = base64.b64encode(getattr(act, "data", None) or b"").decode()
    return f"NX_UNKNOWN: {{experimenter: {act.experimenter}, data: {data}}}"
