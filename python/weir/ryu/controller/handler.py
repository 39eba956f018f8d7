"""``ryu.controller.handler``: the decorators of handlers, and the phases of a connection."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Iterable, List, Optional, Tuple, TypeVar

HANDSHAKE_DISPATCHER = "handshake"
CONFIG_DISPATCHER = "config"
MAIN_DISPATCHER = "main"
DEAD_DISPATCHER = "dead"

#: The phases of the connection of a switch, as their names begin.
PHASES = (HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER, DEAD_DISPATCHER)

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
    events, phases = _listify(ev_cls), _listify(dispatchers)
    for event in events:
        _check(event, phases)

    def decorate(handler: Handler) -> Handler:
        if inspect.iscoroutinefunction(handler):
            what = "a handler is no `async def`; hub.spawn runs what waits for long"
            raise TypeError(f"set_ev_cls on {handler.__qualname__}: {what}")
        callers = handler.__dict__.setdefault("callers", {})
        for event in events:
            callers[event] = _Caller(phases, event.__module__ if has_source else None)
        return handler

    return decorate


def _check(event: Any, phases: List[Any]) -> None:
    """Refuses what would never be an event, or never come."""
    if not isinstance(event, type):
        what = "a class of events is needed, such as ofp_event.EventOFPPacketIn"
        raise TypeError(f"set_ev_cls({event!r}): {what}")
    if event.__module__ != f"{__package__}.ofp_event":
        return
    for phase in phases:
        if phase not in PHASES:
            what = "a phase is one of " + ", ".join(f"{name.upper()}_DISPATCHER" for name in PHASES)
            what += ", or a list of some, from ryu.controller.handler"
            raise ValueError(f"set_ev_cls({event.__name__}, {phase!r}): {what}")


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
