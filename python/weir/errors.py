"""The exceptions of the package.

What a switch answers with ``OFPT_ERROR`` is an exception of the error's own name::

    try:
        await sw.checked.add_flow("priority=5,in_port=1,actions=output:2")
    except weir.errors.OFPFMFC_TABLE_FULL:
        ...

Each of these is an :class:`OpenFlowError`.
"""

from __future__ import annotations

from typing import Dict, Optional, Type


class WeirError(Exception):
    """Any error of this package but wrong types of arguments."""


class WordError(WeirError, ValueError):
    """A word of a match, an action or a message that is unknown or has a bad value.

    The text names what is allowed. Nothing was sent.
    """


class NotConnected(WeirError):
    """The switch is not connected, or no longer by the connection that this object is of."""


class QueueFull(WeirError):
    """The switch does not take what is sent to it fast enough; nothing was sent."""


class SwitchSilent(WeirError):
    """The switch does not answer."""


class HttpError(WeirError):
    """A request for a route of an app is answered with this status, and the text as its error."""

    def __init__(self, status: int, text: str) -> None:
        if not 400 <= status <= 599:
            raise ValueError(f"a status of an error is from 400 to 599, not {status}")
        super().__init__(text)
        self.status, self.text = status, text


class OpenFlowError(WeirError):
    """The switch refuses a message: ``OFPT_ERROR``."""

    def __init__(
        self,
        name: str,
        error_type: int,
        code: int,
        data: bytes = b"",
        index: Optional[int] = None,
        advice: str = "",
    ) -> None:
        #: The specification's name of the code, such as ``OFPFMFC_TABLE_FULL``; ``unknown`` for
        #: numbers without a name.
        self.name = name
        self.error_type = error_type
        self.code = code
        #: The beginning of the message that was refused.
        self.data = data
        #: Which of several messages was refused, from 0.
        self.index = index
        #: Why the switch refuses so, and what to change.
        self.advice = advice
        place = "" if index is None else f", message {index}"
        why = f": {advice}" if advice else ""
        super().__init__(
            f"the switch refuses it: {name} (type {error_type}, code {code}{place}){why}"
        )


_classes: Dict[str, Type[OpenFlowError]] = {}


def _class_of(name: str) -> Type[OpenFlowError]:
    """The class of an error's name; the same one each time."""
    found = _classes.get(name)
    if found is None:
        doc = f"The switch refuses a message with ``{name}``."
        found = type(name, (OpenFlowError,), {"__doc__": doc, "__module__": __name__})
        _classes[name] = found
    return found


def refused(
    name: Optional[str],
    error_type: int,
    code: int,
    data: bytes,
    index: Optional[int],
    advice: Optional[str] = None,
) -> OpenFlowError:
    """The exception of an error message."""
    if name is None:
        return OpenFlowError("unknown", error_type, code, data, index)
    return _class_of(name)(name, error_type, code, data, index, advice or "")


def __getattr__(name: str) -> Type[OpenFlowError]:
    if name.startswith("OFP"):
        from weir._weir import error_names

        if name in error_names():
            return _class_of(name)
    raise AttributeError(f"module 'weir.errors' has no attribute {name!r}")
