"""``ryu.controller.event``: the bases of events."""

from __future__ import annotations

from typing import Any, Optional


class EventBase:
    """An event."""


class EventRequestBase(EventBase):
    """An event that is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.dst: Optional[str] = None
        self.src: Optional[str] = None
        self.sync = False
        self.reply_q: Any = None


class EventReplyBase(EventBase):
    """The answer to one."""

    def __init__(self, dst: Optional[str]) -> None:
        super().__init__()
        self.dst = dst
