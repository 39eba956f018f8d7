"""``ryu.base.app_manager``: apps, the events between them, and the manager that loads them.

Each app has a thread of its own, which takes the app's events one after the other. An app that
blocks or raises costs its own events; packet-ins beyond a bound are dropped, counted and logged.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import sys
import threading
import time
from collections import deque
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Type

from weir import aliases
from weir.dispatch import RAISED, Failures
from weir.ryu import cfg, utils
from weir.ryu.controller import event
from weir.ryu.controller.handler import get_dependent_services, handlers_of, register_instance
from weir.ryu.lib import hub
from weir.ryu.lib.scheduler import SCHEDULER, Task, TaskExit
from weir.ryu.ofproto import ofproto_protocol

LOG = logging.getLogger("ryu.base.app_manager")

#: The apps that run, by name.
SERVICE_BRICKS: Dict[str, "RyuApp"] = {}

#: Events that may wait for an app before those who send further ones wait, and packet-ins before
#: further ones are dropped, where the app takes none.
BACKLOG_MAX = 8192

#: An app that takes no event for this time while its queue is full is blocked.
PATIENCE_S = 0.2

#: Events that an app handles before what it has sent goes out.
_BATCH = 128

#: The longest time of such a batch while other threads of apps are ready.
_BATCH_S = 0.002

Route = Tuple[Any, Optional[str]]


class _Line:
    """The compiled part's batches; the manager sets them."""

    def begin(self) -> None:
        """The calling thread gathers what it sends."""

    def flush(self) -> None:
        """What it has gathered goes."""


#: The compiled part while it runs.
line: Any = _Line()

#: Logs what handlers raise, a flood of it only in part.
failures = Failures("the program is ended from outside")


def lookup_service_brick(name: str) -> "Optional[RyuApp]":
    """The app of this name."""
    return SERVICE_BRICKS.get(name)


def _lookup_service_brick_by_mod_name(mod_name: str) -> "Optional[RyuApp]":
    return lookup_service_brick(mod_name.split(".")[-1])


def _lookup_service_brick_by_ev_cls(ev_cls: Any) -> "Optional[RyuApp]":
    return _lookup_service_brick_by_mod_name(ev_cls.__module__)


def register_app(app: "RyuApp") -> None:
    """Puts down an app and its handlers."""
    if app.name in SERVICE_BRICKS:
        raise ValueError(f"two apps have the name {app.name}")
    SERVICE_BRICKS[app.name] = app
    register_instance(app)


def unregister_app(app: "RyuApp") -> None:
    """Forgets an app."""
    SERVICE_BRICKS.pop(app.name, None)


def require_app(app_name: str, api_style: bool = False) -> None:
    """The calling module needs this app; ``api_style``: so does the module that imports it."""
    frame = sys._getframe(1)
    name = frame.f_globals["__name__"]
    if api_style:
        hidden = (name, "weir.aliases")
        while name in hidden or name.startswith("importlib"):
            if frame.f_back is None:
                return
            frame = frame.f_back
            name = frame.f_globals["__name__"]
    frame.f_globals.setdefault("_REQUIRED_APP", []).append(app_name)
    LOG.debug("require_app: %s is required by %s", app_name, name)


class RyuApp:
    """An app."""

    #: Objects that several apps share: the class of each, by name.
    _CONTEXTS: Dict[str, type] = {}

    #: Events that the app sends and that another module defines.
    _EVENTS: List[type] = []

    #: The versions of OpenFlow that it speaks; ``None`` for all.
    OFP_VERSIONS: Optional[Sequence[int]] = None

    @classmethod
    def context_iteritems(cls) -> Iterator[Tuple[str, type]]:
        """The shared objects that it wants."""
        return iter(cls._CONTEXTS.items())

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        super().__init__()
        self.name = self.__class__.__name__
        self.event_handlers: Dict[Any, List[Callable[..., Any]]] = {}
        self.observers: Dict[Any, Dict[str, Set[str]]] = {}
        self.threads: List[hub.HubThread] = []
        self.main_thread: Optional[hub.HubThread] = None
        self.logger = logging.getLogger(getattr(type(self), "LOGGER_NAME", self.name))
        self.CONF = cfg.CONF
        self.is_active = True
        #: Packet-ins that were dropped since the app took none.
        self.dropped = 0
        self._events: "deque[Tuple[Any, Optional[str]]]" = deque()
        #: The thread that handles events, while it has none.
        self._idle: Optional[Task] = None
        self._is_blocked = False
        self._has_left_timeouts = False
        #: What runs, and the count of what has run: for those who look whether it goes on.
        self.running: Optional[Callable[..., Any]] = None
        self.handled = 0
        self._routes: Dict[Route, List[Callable[..., Any]]] = {}

    def start(self) -> Any:
        """Called once all apps are there."""
        self.threads.append(hub.spawn(self._event_loop))
        return None

    def stop(self) -> None:
        """Ends the app's threads."""
        self.is_active = False
        if self.main_thread is not None:
            hub.kill(self.main_thread)
        self._wake()
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(1.0)

    def close(self) -> None:
        """Called at the end, for the app's own clearing up."""

    def set_main_thread(self, thread: Any) -> None:
        """The thread that :meth:`start` has given back."""
        self.main_thread = thread

    # Handlers and observers.

    def register_handler(self, ev_cls: Any, handler: Callable[..., Any]) -> None:
        """The handler gets events of this class from now on."""
        if not callable(handler):
            raise TypeError(f"{handler!r} is no handler")
        self.event_handlers.setdefault(ev_cls, []).append(handler)
        self._routes.clear()

    def unregister_handler(self, ev_cls: Any, handler: Callable[..., Any]) -> None:
        """The handler gets them no more."""
        self.event_handlers[ev_cls].remove(handler)
        if not self.event_handlers[ev_cls]:
            del self.event_handlers[ev_cls]
        self._routes.clear()

    def register_observer(self, ev_cls: Any, name: str, states: Any = None) -> None:
        """The app of this name gets events of this class from this one."""
        self.observers.setdefault(ev_cls, {}).setdefault(name, set()).update(states or ())

    def unregister_observer(self, ev_cls: Any, name: str) -> None:
        """It gets them no more."""
        self.observers.get(ev_cls, {}).pop(name, None)

    def unregister_observer_all_event(self, name: str) -> None:
        """It gets no events any more."""
        for observers in self.observers.values():
            observers.pop(name, None)

    def observe_event(self, ev_cls: Any, states: Any = None) -> None:
        """Asks the app that sends these events for them."""
        brick = _lookup_service_brick_by_ev_cls(ev_cls)
        if brick is not None:
            brick.register_observer(ev_cls, self.name, states)

    def unobserve_event(self, ev_cls: Any) -> None:
        """Asks for them no more."""
        brick = _lookup_service_brick_by_ev_cls(ev_cls)
        if brick is not None:
            brick.unregister_observer(ev_cls, self.name)

    def get_handlers(self, ev: Any, state: Optional[str] = None) -> List[Callable[..., Any]]:
        """The handlers of an event, in a phase or in any."""
        ev_cls = type(ev)
        handlers = self.event_handlers.get(ev_cls, [])
        if state is None:
            return list(handlers)

        def takes(handler: Callable[..., Any]) -> bool:
            caller = getattr(handler, "callers", {}).get(ev_cls)
            return caller is None or not caller.dispatchers or state in caller.dispatchers

        return [handler for handler in handlers if takes(handler)]

    def get_observers(self, ev: Any, state: Optional[str]) -> List[str]:
        """The names of the apps that get an event."""
        observers = self.observers.get(type(ev), {})
        return [name for name, states in observers.items() if observes(states, state)]

    # Events.

    def send_request(self, req: Any) -> Any:
        """Sends a request to the app ``req.dst``, and waits for its answer."""
        req.sync = True
        req.reply_q = hub.Queue()
        if req.dst not in SERVICE_BRICKS:
            raise LookupError(f"no app of the name {req.dst} answers {type(req).__name__}")
        self.send_event(req.dst, req)
        line.flush()
        return req.reply_q.get()

    def reply_to_request(self, req: Any, rep: Any) -> None:
        """Answers a request."""
        rep.dst = req.src
        if req.sync:
            req.reply_q.put(rep)
        else:
            self.send_event(rep.dst, rep)

    def send_event(self, name: str, ev: Any, state: Optional[str] = None) -> None:
        """Sends an event to the app of this name."""
        app = SERVICE_BRICKS.get(name)
        if app is None:
            LOG.debug("EVENT LOST %s->%s %s", self.name, name, type(ev).__name__)
            return
        if isinstance(ev, event.EventRequestBase):
            ev.src = self.name
        LOG.debug("EVENT %s->%s %s", self.name, name, type(ev).__name__)
        app._send_event(ev, state)

    def send_event_to_observers(self, ev: Any, state: Optional[str] = None) -> None:
        """Sends an event to all apps that observe it."""
        for name in self.get_observers(ev, state):
            self.send_event(name, ev, state)

    def _send_event(self, ev: Any, state: Optional[str]) -> None:
        self._events.append((ev, state))
        self._wake()

    def _wake(self) -> None:
        idle = self._idle
        if idle is not None:
            SCHEDULER.unpark(idle)

    def take_packet_in(self, ev: Any, state: Optional[str]) -> None:
        """Queues a packet-in, or drops it where the app takes none."""
        if len(self._events) >= BACKLOG_MAX and not self._has_room():
            self.dropped += 1
            return
        self._send_event(ev, state)

    def _has_room(self) -> bool:
        """Whether the app takes events: waits for it, but not twice for one that is blocked."""
        if self._is_blocked:
            return False
        end = time.monotonic() + PATIENCE_S
        handled = self.handled
        while len(self._events) >= BACKLOG_MAX:
            if self.handled != handled:
                handled, end = self.handled, time.monotonic() + PATIENCE_S
            elif time.monotonic() > end:
                self._is_blocked = True
                return False
            time.sleep(0.001)
        return True

    def _event_loop(self) -> None:
        try:
            self._handle_events(SCHEDULER.current())
        except TaskExit:
            if self.is_active:
                self._end_of_thread()
            raise

    def _end_of_thread(self) -> None:
        """The thread that handles events was killed: no more of them must wait for it."""
        LOG.error("%s: hub.kill has ended the thread of its handlers; it gets no events", self.name)
        self.is_active = False
        for other in list(SERVICE_BRICKS.values()):
            other.unregister_observer_all_event(self.name)
        unregister_app(self)
        self._events.clear()

    def _handle_events(self, task: Task) -> None:
        events, routes, ready = self._events, self._routes, SCHEDULER.ready
        task.describe, task.before_wait = self._describe, self._send_gathered
        while True:
            if not events:
                self._idle = task
                while not events:
                    if not self.is_active:
                        return
                    SCHEDULER.park(task)
                self._idle = None
            line.begin()
            end = time.monotonic() + _BATCH_S
            try:
                for _ in range(min(len(events), _BATCH)):
                    ev, state = events.popleft()
                    handlers = routes.get((type(ev), state))
                    if handlers is None:
                        handlers = routes[(type(ev), state)] = self.get_handlers(ev, state)
                    for handler in handlers:
                        self.running = handler
                        try:
                            handler(ev)
                        except TaskExit:
                            raise
                        except BaseException as error:  # noqa: BLE001
                            self._note(handler, ev, error)
                        if task.timeouts:
                            self._end_timeouts(handler, task)
                    self.handled += 1
                    if SCHEDULER.running is not task or ready and time.monotonic() > end:
                        break
            finally:
                self.running = None
                line.flush()
            if self._is_blocked:
                self._go_on()
            SCHEDULER.switch(task)

    def _end_timeouts(self, handler: Callable[..., Any], task: Task) -> None:
        """Ends the timeouts that a handler has left running: they would end the next wait of
        another one."""
        task.timeouts.clear()
        if not self._has_left_timeouts:
            self._has_left_timeouts = True
            name = getattr(handler, "__name__", repr(handler))
            what = "has left a hub.Timeout running, which ends here: write `with hub.Timeout(..):`"
            LOG.warning(f"%s: handler %s {what}", self.name, name)

    def _describe(self) -> str:
        return f"{self.name}: handler {getattr(self.running, '__name__', self.running)}"

    def _send_gathered(self) -> None:
        """A handler that waits has sent what it has sent before."""
        if self.running is not None:
            line.flush()

    def _go_on(self) -> None:
        self._is_blocked = False
        if self.dropped:
            LOG.warning("%s: goes on; %d packet-ins were dropped", self.name, self.dropped)
            self.dropped = 0

    def _note(self, handler: Callable[..., Any], ev: Any, error: BaseException) -> None:
        name = getattr(handler, "__name__", repr(handler))
        what = f"{self.name}: handler {name} of {type(ev).__name__}"
        failures.note(what, error)


OSKenApp = RyuApp


def observes(states: Set[str], state: Optional[str]) -> bool:
    """Whether an observer of these phases gets an event of this one."""
    return not state or not states or state in states


class AppManager:
    """Loads apps, and what they need."""

    _instance: "Optional[AppManager]" = None

    @staticmethod
    def get_instance() -> "AppManager":
        """The manager of this process."""
        if AppManager._instance is None:
            AppManager._instance = AppManager()
        return AppManager._instance

    def __init__(self) -> None:
        self.applications_cls: Dict[str, Type[RyuApp]] = {}
        self.applications: Dict[str, RyuApp] = {}
        self.contexts_cls: Dict[str, Any] = {}
        self.contexts: Dict[str, Any] = {}

    def load_app(self, name: str) -> Optional[Type[RyuApp]]:
        """The class of the app in a module, or in a file: of several the first by its name."""
        module = utils.import_module(name)
        classes = [
            value
            for _, value in inspect.getmembers(module, inspect.isclass)
            if issubclass(value, RyuApp) and value.__module__ == module.__name__
        ]
        if len(classes) > 1:
            first, *others = (cls.__name__ for cls in classes)
            what = "only %s runs, as by Ryu, and not %s: a file has one app"
            LOG.warning(f"%s: {what}", name, first, ", ".join(others))
        return classes[0] if classes else None

    def load_apps(self, app_lists: Sequence[str]) -> None:
        """Loads apps and the services that they need."""
        given = list(itertools.chain.from_iterable(app.split(",") for app in app_lists))
        waiting, seen = deque(given), set()
        while waiting:
            name = waiting.popleft()
            contexts = [value.__module__ for value in self.contexts_cls.values()]
            if utils.canonical(name) in seen or utils.canonical(name) in contexts:
                continue
            seen.add(utils.canonical(name))
            LOG.info("loading app %s", name)
            cls = self.load_app(name)
            if cls is None:
                if name in given and not utils.canonical(name).startswith(f"{aliases.HOME}."):
                    what = "no app in it: write `class App(app_manager.RyuApp)`"
                    raise ValueError(f"{name}: {what}")
                continue
            self.applications_cls[name] = cls
            waiting.extend(self._services(cls))

    def _services(self, cls: Type[RyuApp]) -> List[str]:
        services: List[str] = []
        for key, context in cls.context_iteritems():
            if not isinstance(context, type):
                what = "a class is needed, of which all apps get one object"
                raise TypeError(f"{cls.__name__}._CONTEXTS[{key!r}] = {context!r}: {what}")
            known = self.contexts_cls.setdefault(key, context)
            if known is not context:
                raise ValueError(f"{cls.__name__}: another app has another context {key!r}")
            if issubclass(context, RyuApp):
                services.extend(get_dependent_services(context))
        contexts = [value.__module__ for value in self.contexts_cls.values()]
        own = get_dependent_services(cls)
        services.extend(name for name in own if utils.canonical(name) not in contexts)
        return services

    def create_contexts(self) -> Dict[str, Any]:
        """Makes the objects that apps share."""
        for key, cls in self.contexts_cls.items():
            is_app = issubclass(cls, RyuApp)
            self.contexts[key] = self._instantiate(None, cls) if is_app else cls()
            LOG.info("creating context %s", key)
        return self.contexts

    def _instantiate(self, app_name: Optional[str], cls: Any, *args: Any, **kwargs: Any) -> RyuApp:
        LOG.info("instantiating app %s of %s", app_name, cls.__name__)
        versions = cls.OFP_VERSIONS
        if versions is not None:
            is_list = isinstance(versions, (list, tuple, set, frozenset))
            if not is_list or not all(isinstance(version, int) for version in versions):
                what = "a list of versions is needed, such as [ofproto_v1_3.OFP_VERSION]"
                raise TypeError(f"{cls.__name__}.OFP_VERSIONS = {versions!r}: {what}")
            ofproto_protocol.set_app_supported_versions(cls.OFP_VERSIONS, cls.__name__)
        app: RyuApp = cls(*args, **kwargs)
        if not hasattr(app, "event_handlers"):
            raise TypeError(f"{cls.__name__}.__init__ does not call the __init__ of RyuApp")
        register_app(app)
        self.applications[app.name] = app
        return app

    def instantiate(self, cls: Any, *args: Any, **kwargs: Any) -> RyuApp:
        """Makes one app more."""
        app = self._instantiate(None, cls, *args, **kwargs)
        self._update_bricks()
        return app

    def instantiate_apps(self, *args: Any, **kwargs: Any) -> List[Any]:
        """Makes all apps, and starts them."""
        for app_name, cls in self.applications_cls.items():
            self._instantiate(app_name, cls, *args, **kwargs)
        self._update_bricks()
        threads = []
        for app in list(self.applications.values()):
            thread = app.start()
            if thread is not None:
                app.set_main_thread(thread)
                threads.append(thread)
        return threads

    @staticmethod
    def _update_bricks() -> None:
        for app in SERVICE_BRICKS.values():
            for _, ev_cls, caller in handlers_of(app):
                if not caller.ev_source:
                    continue
                brick = _lookup_service_brick_by_mod_name(caller.ev_source)
                if brick is not None:
                    brick.register_observer(ev_cls, app.name, caller.dispatchers)
                for brick in SERVICE_BRICKS.values():
                    if ev_cls in brick._EVENTS:
                        brick.register_observer(ev_cls, app.name, caller.dispatchers)

    def uninstantiate(self, name: str) -> None:
        """Ends one app."""
        app = self.applications.pop(name)
        unregister_app(app)
        for other in SERVICE_BRICKS.values():
            other.unregister_observer_all_event(name)
        app.stop()
        self._close(app)

    @staticmethod
    def _close(app: Any) -> None:
        try:
            getattr(app, "close", lambda: None)()
        except RAISED as error:
            failures.note(f"{type(app).__name__}.close", error)

    def close(self) -> None:
        """Ends all apps."""
        for name in list(self.applications):
            self.uninstantiate(name)
        for context in self.contexts.values():
            if not isinstance(context, RyuApp):
                self._close(context)
        self.contexts.clear()
        self.contexts_cls.clear()
        self.applications_cls.clear()

    @staticmethod
    def run_apps(app_lists: Sequence[str]) -> None:
        """Runs apps until the end."""
        from weir import manager

        sys.exit(manager.main(list(app_lists)))
