"""``ryu.lib.stplib``: os-ken's, made fit for threads that run at the same time."""

from __future__ import annotations

import importlib.machinery
import sys
import threading
from typing import Any

from weir.ryu import lib

_spec = importlib.machinery.PathFinder.find_spec(__name__, list(lib.__path__)[1:])
if _spec is None or _spec.loader is None:
    _text = "No module named 'ryu.lib.stplib': `pip install os-ken` brings it"
    raise ModuleNotFoundError(_text, name=__name__)
_spec.loader.exec_module(sys.modules[__name__])


class _Waited:
    """An attribute with an event for which the thread that has set it waits.

    Others wake it and set the attribute to none, perhaps before it waits: it still sees its own.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, port: Any, _cls: Any) -> Any:
        own = port.__dict__.get((self._name, threading.get_ident()))
        return own or port.__dict__.get(self._name)

    def __set__(self, port: Any, event: Any) -> None:
        key: Any = (self._name, threading.get_ident())
        port.__dict__[self._name] = port.__dict__[key] = event
        if event is None:
            del port.__dict__[key]


for _name in ("wait_timer_event", "state_event"):
    setattr(globals()["Port"], _name, _Waited(_name))
