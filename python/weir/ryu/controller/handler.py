"""``ryu.controller.handler``: the decorators of handlers, and the phases of a connection."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Iterable, List, Optional, Tuple, TypeVar

HANDSHAKE_DISPATCHER = "handshake"
CONFIG_DISPATCHER = "config"
MAIN_DISPATCHER = "main"
DEAD_DISPATCHER = "dead"

Handler = TypeVar("Handler", bound=Callable[..., Any])


class _Caller:
    """The phases in which a handler gets a class of events, and the module that sends them."""

    def __init__(self, dispatchers: List[str], ev_source: Optional[str]) -> None:
        self.dispatchers, self.ev_source = dispatchers, ev_source


def _listify(may_list: Any) -> List[Any]:
    if may_list is None:
        return []
    return may_list if isinstance(may_list, list) else [may_list]


def _decorator(ev_cls: Any, dispatchers: Any, has_source: bool) -> Callable[[Handler], Handler]:
    def decorate(handler: Handler) -> Handler:
        callers = handler.__dict__.setdefault("callers", {})
        for event in _listify(ev_cls):
            source = event.__module__ if has_source else None
            callers[event] = _Caller(_listify(dispatchers), source)
        return handler

    return decorate


def set_ev_cls(ev_cls: Any, dispatchers: Any = None) -> Callable[[Handler], Handler]:
    """The method handles events of these classes, in these phases or in all."""
    return _decorator(ev_cls, dispatchers, True)


def set_ev_handler(ev_cls: Any, dispatchers: Any = None) -> Callable[[Handler], Handler]:
    """The same, but the app is not put down as an observer."""
    return _decorator(ev_cls, dispatchers, False)


def handlers_of(owner: Any) -> Iterable[Tuple[Callable[..., Any], Any, _Caller]]:
    """The handlers of an app or of its class: method, class of events, phases."""
    cls = owner if isinstance(owner, type) else type(owner)
    for name in dir(cls):
        # Of the class first: a property must not run.
        method = inspect.getattr_static(cls, name, None)
        for event, caller in (getattr(method, "__dict__", None) or {}).get("callers", {}).items():
            yield getattr(owner, name), event, caller


def register_instance(app: Any) -> None:
    """Puts down the handlers of an app."""
    for method, event, _ in handlers_of(app):
        app.register_handler(event, method)


def get_dependent_services(cls: Any) -> List[str]:
    """The apps that an app needs: those that send its events, and those that it requires."""
    from weir.ryu.utils import canonical

    services = []
    for _, event, _caller in handlers_of(cls):
        service = getattr(sys.modules[event.__module__], "_SERVICE_NAME", None)
        if service and canonical(service) != cls.__module__:
            services.append(service)
    services.extend(getattr(sys.modules[cls.__module__], "_REQUIRED_APP", []))
    return list(dict.fromkeys(services))


def register_service(service: str) -> None:
    """The app of this name sends the events of the calling module."""
    frame = inspect.currentframe()
    if frame is not None and frame.f_back is not None:
        sys.modules[frame.f_back.f_globals["__name__"]]._SERVICE_NAME = service  # type: ignore
