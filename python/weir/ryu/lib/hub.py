"""``ryu.lib.hub`` on threads of Python.

``patch`` is left out and logged: nothing of the standard library is replaced. A thread that is
killed ends at its next step of Python, and at once where it waits in :func:`sleep` or in
:class:`Event`.
"""

from __future__ import annotations

import ctypes
import logging
import queue
import socket
import ssl
import threading
import time
import traceback
from types import TracebackType
from typing import Any, Callable, Iterable, Optional, Tuple, Type

LOG = logging.getLogger("ryu.lib.hub")

HUB_TYPE = "native"

#: The longest step in which a waiting thread looks whether it was killed.
_STEP_S = 0.2


class TaskExit(BaseException):
    """Ends a thread that was killed."""


class Timeout(BaseException):
    """Raised in the thread that has made it when its time is over: itself, or ``exception``.

    ``with hub.Timeout(s, False):`` ends the block instead.
    """

    def __init__(self, seconds: Optional[float] = None, exception: Any = None) -> None:
        super().__init__(seconds)
        self.seconds, self.exception = seconds, exception
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._timer: Optional[threading.Timer] = None
        self.start()

    def start(self) -> "Timeout":
        """The time begins."""
        if self.seconds is not None and self._timer is None:
            self._timer = threading.Timer(self.seconds, self._raise)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _raise(self) -> None:
        raised = self if self.exception in (None, True, False) else self.exception
        # Another thread raises a class; this one makes no object of its own.
        made = {"__new__": lambda _cls: raised() if isinstance(raised, type) else raised}
        with self._lock:
            if self._timer is not None:
                _raise_in(self._thread, type("Timeout", (Timeout,), made))

    def cancel(self) -> None:
        """The time counts no more."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def __enter__(self) -> "Timeout":
        return self.start()

    def __exit__(
        self,
        _kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> bool:
        self.cancel()
        return error is self and self.exception is False


def _raise_in(thread: int, kind: Type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


class HubThread(threading.Thread):
    """A thread in the manner of eventlet's."""

    def __init__(
        self, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Any, delay_s: float = 0.0
    ) -> None:
        super().__init__(daemon=True, name=getattr(function, "__qualname__", None))
        self._raise_error = kwargs.pop("raise_error", False)
        self._function, self._args_, self._kwargs_ = function, args, kwargs
        self._delay_s = delay_s
        self._result: Any = None
        self._error: Optional[BaseException] = None
        self.killed = threading.Event()

    def run(self) -> None:
        try:
            if self._delay_s > 0 and self.killed.wait(self._delay_s):
                return
            self._result = self._function(*self._args_, **self._kwargs_)
        except TaskExit:
            pass
        except BaseException as error:  # noqa: BLE001
            if self._raise_error:
                self._error = error
            LOG.error("hub: uncaught exception: %s", traceback.format_exc())

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits for its end; what its function gave back."""
        self.join(timeout)
        if self._error is not None:
            raise self._error
        return self._result

    def kill(self) -> None:
        """Ends it."""
        self.killed.set()
        if self.is_alive() and self.ident is not None and self is not threading.current_thread():
            _raise_in(self.ident, TaskExit)

    cancel = kill

    @property
    def dead(self) -> bool:
        """Whether it has ended."""
        return not self.is_alive()

    def __bool__(self) -> bool:
        return self.is_alive()


def spawn(function: Callable[..., Any], *args: Any, **kwargs: Any) -> HubThread:
    """Runs a function on a thread of its own."""
    thread = HubThread(function, args, kwargs)
    thread.start()
    return thread


def spawn_after(
    seconds: float, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> HubThread:
    """Runs a function on a thread of its own after a time."""
    thread = HubThread(function, args, kwargs, seconds)
    thread.start()
    return thread


def kill(thread: HubThread) -> None:
    """Ends a thread."""
    thread.kill()


def joinall(threads: Iterable[HubThread]) -> None:
    """Waits for the end of threads."""
    for thread in threads:
        thread.wait()


def getcurrent() -> threading.Thread:
    """The thread that runs this."""
    return threading.current_thread()


def sleep(seconds: float = 0) -> None:
    """Waits; other threads go on."""
    thread = threading.current_thread()
    if not isinstance(thread, HubThread):
        time.sleep(seconds)
    elif thread.killed.wait(seconds):
        raise TaskExit


def patch(thread: bool = True, **_others: Any) -> None:
    """Nothing: threads are native, and the standard library stays as it is."""
    LOG.info("hub.patch is left out: apps run on threads of Python")


class Event:
    """A flag to wait for."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._event.is_set()

    def set(self) -> None:
        """Wakes all who wait."""
        self._event.set()

    def clear(self) -> None:
        """Who waits from now on waits."""
        self._event.clear()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is set, or until the time is over; whether it is set."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _STEP_S if end is None else min(_STEP_S, end - time.monotonic())
            if self._event.wait(max(left, 0.0)):
                return True
            if end is not None and time.monotonic() >= end:
                return False


class Queue(queue.Queue):  # type: ignore[type-arg]
    """A queue of threads; without a bound for 0 and None."""

    def __init__(self, maxsize: Optional[int] = 0) -> None:
        super().__init__(maxsize or 0)

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        if not block or timeout is not None:
            return super().get(block, timeout)
        while True:
            # In steps, so that a kill takes effect.
            try:
                return super().get(True, _STEP_S)
            except queue.Empty:
                continue


LightQueue = Queue
QueueEmpty = queue.Empty
QueueFull = queue.Full
Semaphore = threading.Semaphore
BoundedSemaphore = threading.BoundedSemaphore


def listen(
    address: Any, family: int = socket.AF_INET, backlog: int = 50, **_others: Any
) -> socket.socket:
    """A socket that listens."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(backlog)
    return listener


def connect(address: Any, family: int = socket.AF_INET, bind: Any = None) -> socket.socket:
    """A socket that is connected."""
    connected = socket.socket(family, socket.SOCK_STREAM)
    if bind is not None:
        connected.bind(bind)
    connected.connect(address)
    return connected


class StreamServer:
    """Accepts connections, each on a thread of its own."""

    def __init__(
        self, listen_info: Any, handle: Any = None, backlog: Any = None, spawn: Any = "default",
        **ssl_args: Any,
    ) -> None:
        host = listen_info[0]
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.server = listen(tuple(listen_info), family)
        self.handle = handle
        if ssl_args:
            context = ssl_args.pop("ssl_ctx", None) or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(ssl_args.pop("certfile"), ssl_args.pop("keyfile"))
            if "cert_reqs" in ssl_args:
                context.verify_mode = ssl_args.pop("cert_reqs")
            if "ca_certs" in ssl_args:
                context.load_verify_locations(ssl_args.pop("ca_certs"))
            self.handle = lambda sock, peer: handle(context.wrap_socket(sock, True), peer)

    def serve_forever(self) -> None:
        """Accepts connections."""
        while True:
            accepted, peer = self.server.accept()
            spawn(self.handle, accepted, peer)


class StreamClient:
    """Connects again and again."""

    def __init__(self, addr: Any, timeout: Optional[float] = None, **_ssl: Any) -> None:
        self.addr, self.timeout = addr, timeout
        self._is_active = True

    def connect(self) -> Optional[socket.socket]:
        """A connection, if there is one."""
        try:
            return socket.create_connection(self.addr, self.timeout)
        except OSError:
            return None

    def connect_loop(self, handle: Callable[..., Any], interval: float) -> None:
        """Serves a connection, and connects anew."""
        while self._is_active:
            connected = self.connect()
            if connected is not None:
                handle(connected, self.addr)
            sleep(interval)

    def stop(self) -> None:
        """Connects no more."""
        self._is_active = False
