"""``ryu.log``: the log is set up by ``weir ryu-manager``; apps may still call these."""

from __future__ import annotations

import logging
from typing import Any


def early_init_log(level: Any = None) -> None:
    """A log on standard error, where there is none yet."""
    if not logging.getLogger().handlers:
        logging.basicConfig(format="%(message)s", level=level)


def init_log() -> None:
    """A log on standard error, where there is none yet."""
    early_init_log(logging.INFO)
