"""``ryu.app.ofctl.exception``."""

from __future__ import annotations

from typing import Any

from weir.ryu.exception import RyuException


class _ExceptionBase(RyuException):
    def __init__(self, result: Any) -> None:
        self.result = result
        super().__init__(result=result)


class UnexpectedMultiReply(_ExceptionBase):
    """Several answers where one was asked for."""

    message = "Unexpected Multi replies %(result)s"


class OFError(_ExceptionBase):
    """The switch refuses the message."""

    message = "OpenFlow errors %(result)s"


class InvalidDatapath(_ExceptionBase):
    """The switch is not connected."""

    message = "Datapath Invalid %(result)s"
