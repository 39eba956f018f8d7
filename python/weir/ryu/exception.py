"""Ryu's exceptions."""

from __future__ import annotations

from typing import Any


class RyuException(Exception):
    """The base of them; the message is made of the keywords."""

    message = "An unknown exception"

    def __init__(self, msg: Any = None, **kwargs: Any) -> None:
        if msg is None:
            msg = self.message
        try:
            msg = msg % kwargs
        except Exception:
            msg = self.message
        super().__init__(msg)


OSKenException = RyuException


class OFPUnknownVersion(RyuException):
    message = "unknown version %(version)x"


class OFPMalformedMessage(RyuException):
    message = "malformed message"


class OFPTruncatedMessage(RyuException):
    message = "truncated message: %(orig_ex)s"

    def __init__(self, ofpmsg: Any, residue: Any, original_exception: Any, msg: Any = None) -> None:
        self.ofpmsg, self.residue = ofpmsg, residue
        self.original_exception = original_exception
        super().__init__(msg, orig_ex=str(original_exception))


class OFPInvalidActionString(RyuException):
    message = "unable to parse: %(action_str)s"


class NetworkNotFound(RyuException):
    message = "no such network id %(network_id)s"


class NetworkAlreadyExist(RyuException):
    message = "network id %(network_id)s already exists"


class PortNotFound(RyuException):
    message = "no such port (%(dpid)s, %(port)s) in network %(network_id)s"


class PortAlreadyExist(RyuException):
    message = "port (%(dpid)s, %(port)s) in network %(network_id)s already exists"


class PortUnknown(RyuException):
    message = "unknown network id for port (%(dpid)s %(port)s)"


class MacAddressDuplicated(RyuException):
    message = "MAC address %(mac)s is duplicated"


class MacAddressNotFound(RyuException):
    message = "MAC address %(mac)s is not found"
