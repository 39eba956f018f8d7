"""The error of a name that is not there: with the nearest one that is."""

from __future__ import annotations

import difflib
from typing import Iterable


def missing(owner: str, name: str, known: Iterable[str], instead: str = "") -> AttributeError:
    """The error; ``instead`` is what to say where no name is near."""
    near = difflib.get_close_matches(name, [other for other in known if other[:1] != "_"], 1, 0.75)
    hint = f"did you mean {near[0]}?" if near else instead
    return AttributeError(f"{owner} has no {name}" + (f": {hint}" if hint else ""))
