"""The error of a name that is not there: with the nearest one that is."""

from __future__ import annotations

import difflib
import dis
import sys
from types import ModuleType
from typing import Any, Callable, Iterable, Union

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]

#: Names that are listed where none is near.
_LISTED_MAX = 20


def missing(
    owner: str, name: str, known: Iterable[str], instead: str = "", depth: int = 2
) -> Union[AttributeError, ImportError]:
    """The error; ``instead`` is what to say where no name is near.

    For ``from module import name`` it is an ImportError, since Python takes no word of another one:
    the frame that looks the name up is ``depth`` above this one.
    """
    near = difflib.get_close_matches(name, [other for other in known if other[:1] != "_"], 1, 0.75)
    hint = f"did you mean {near[0]}?" if near else instead
    text = f"{owner} has no {name}" + (f": {hint}" if hint else "")
    frame = sys._getframe(depth)
    is_import = frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM
    is_import = is_import or frame.f_globals.get("__name__") == "importlib._bootstrap"
    if is_import and name[:2] != "__":
        return ImportError(text)
    return AttributeError(text)


def getter(module: ModuleType, shown: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module without one of its own, which apps know by another name."""

    def absent(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        own = [
            other
            for other, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__ and other[:1] != "_"
        ]
        has = f"it has {', '.join(sorted(own))}" if 0 < len(own) <= _LISTED_MAX else ""
        raise missing(shown, name, own, has)

    return absent
