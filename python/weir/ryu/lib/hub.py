"""``ryu.lib.hub`` on threads of Python, of which one runs at a time as :mod:`scheduler` has it.

``patch`` is left out and logged: of the standard library nothing but ``time.sleep`` and
``os._exit`` is replaced, and that only by ``weir ryu-manager``.
"""

from __future__ import annotations

import logging
import os
import queue
import socket
import ssl
import threading
import time
import traceback
from collections import deque
from types import TracebackType
from typing import Any, Callable, Deque, Iterable, NoReturn, Optional, Tuple, Type

from weir.ryu.lib.scheduler import SCHEDULER, Task, TaskExit

LOG = logging.getLogger("ryu.lib.hub")

HUB_TYPE = "native"


class Timeout(BaseException):
    """Raised in the thread that has made it, where that waits when its time is over: itself, or
    ``exception``.

    ``with hub.Timeout(s, False):`` ends the block instead.
    """

    def __init__(self, seconds: Optional[float] = None, exception: Any = None) -> None:
        super().__init__(seconds)
        self.seconds, self.exception = seconds, exception
        self._task = SCHEDULER.current()
        self.deadline = 0.0
        self.start()

    def start(self) -> "Timeout":
        """The time begins."""
        if self.seconds is not None and self not in self._task.timeouts:
            self.deadline = time.monotonic() + self.seconds
            self._task.timeouts.append(self)
        return self

    def expire(self) -> None:
        """Raises what it is to raise."""
        self.cancel()
        raise self if self.exception in (None, True, False) else self.exception

    def cancel(self) -> None:
        """The time counts no more."""
        if self in self._task.timeouts:
            self._task.timeouts.remove(self)

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


class _Waiters:
    """The threads that wait for something."""

    def __init__(self) -> None:
        self._tasks: Deque[Task] = deque()

    def wait(self, is_there: Callable[[], Any], timeout: Optional[float] = None) -> bool:
        """Waits until it is there, or until the time is over; whether it is there."""
        if is_there():
            return True
        task = SCHEDULER.current()
        end = None if timeout is None else time.monotonic() + timeout
        self._tasks.append(task)
        try:
            while not is_there():
                if end is not None and time.monotonic() >= end:
                    return False
                SCHEDULER.park(task, end)
            return True
        finally:
            self._tasks.remove(task)

    def wake(self) -> None:
        """They look again, in their order."""
        for task in list(self._tasks):
            SCHEDULER.unpark(task)


class HubThread(threading.Thread):
    """A thread in the manner of eventlet's."""

    def __init__(
        self, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Any, delay_s: float = 0.0
    ) -> None:
        super().__init__(daemon=True, name=getattr(function, "__qualname__", None))
        self._raise_error = kwargs.pop("raise_error", False)
        self._work = lambda: function(*args, **kwargs)
        self._delay_s = delay_s
        self._result: Any = None
        self._error: Optional[BaseException] = None
        self._task = Task(self.name, is_member=True)
        self._waiters = _Waiters()
        self.dead = False

    def start(self) -> None:
        super().start()
        if self._delay_s <= 0:
            SCHEDULER.unpark(self._task)

    def run(self) -> None:
        try:
            self._result = SCHEDULER.run(self._task, self._delay_s, self._work)
        except TaskExit:
            pass
        except BaseException as error:  # noqa: BLE001
            if self._raise_error:
                self._error = error
            LOG.error("hub: uncaught exception: %s", traceback.format_exc())
        self.dead = True
        self._waiters.wake()

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits for its end; what its function gave back."""
        self._waiters.wait(lambda: self.dead, timeout)
        if self._error is not None:
            raise self._error
        return self._result

    def kill(self) -> None:
        """Ends it where it waits: now, or next."""
        SCHEDULER.kill(self._task)

    cancel = kill

    def __bool__(self) -> bool:
        return not self.dead


def spawn(function: Callable[..., Any], *args: Any, **kwargs: Any) -> HubThread:
    """Runs a function on a thread of its own, once the calling one waits."""
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
    task = SCHEDULER.current()
    if seconds <= 0:
        SCHEDULER.switch(task)
        return
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        SCHEDULER.park(task, end)


def patch(thread: bool = True, **_others: Any) -> None:
    """Nothing: threads are native, and the standard library stays as it is."""
    LOG.info("hub.patch is left out: apps run on threads of Python")


def patch_sleep(library_sleep: Callable[[float], None] = time.sleep) -> None:
    """``time.sleep`` lets other threads of apps run, as Ryu's manager makes it do."""

    def either(seconds: float) -> None:
        (sleep if SCHEDULER.current().is_member else library_sleep)(seconds)

    setattr(time, "sleep", either)  # noqa: B010


def patch_exit(library_exit: Callable[[int], NoReturn] = os._exit) -> None:
    """``os._exit`` ends the handler or thread that calls it, as ``sys.exit`` does, and the program
    only where an app has made that by a fork."""
    own = os.getpid()

    def either(status: int) -> NoReturn:
        if os.getpid() != own:
            library_exit(status)
        LOG.error("os._exit(%s) of an app does not end the program", status)
        raise SystemExit(status)

    setattr(os, "_exit", either)  # noqa: B010


class Event:
    """A flag to wait for."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiters = _Waiters()

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Wakes all who wait."""
        self._is_set = True
        self._waiters.wake()

    def clear(self) -> None:
        """Who waits from now on waits."""
        self._is_set = False

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is set, or until the time is over; whether it is set."""
        return self._waiters.wait(self.is_set, timeout)


QueueEmpty = queue.Empty
QueueFull = queue.Full


class Queue:
    """A queue between threads; without a bound for 0 and None."""

    def __init__(self, maxsize: Optional[int] = 0) -> None:
        self.maxsize = maxsize or 0
        self.queue: Deque[Any] = deque()
        self._getters, self._putters, self._joiners = _Waiters(), _Waiters(), _Waiters()
        self._unfinished = 0

    def qsize(self) -> int:
        """The number of its items."""
        return len(self.queue)

    def empty(self) -> bool:
        """Whether it has none."""
        return not self.queue

    def full(self) -> bool:
        """Whether it takes no more."""
        return 0 < self.maxsize <= len(self.queue)

    def put(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """Puts an item behind the others. Raises QueueFull."""
        if not self._putters.wait(lambda: not self.full(), timeout if block else 0):
            raise QueueFull
        self._unfinished += 1
        self.queue.append(item)
        self._getters.wake()

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """Takes the first item. Raises QueueEmpty."""
        while True:
            if not self._getters.wait(lambda: self.queue, timeout if block else 0):
                raise QueueEmpty
            try:
                item = self.queue.popleft()
            except IndexError:
                # A thread that takes no part was faster.
                continue
            self._putters.wake()
            return item

    def put_nowait(self, item: Any) -> None:
        """Puts an item behind the others. Raises QueueFull."""
        self.put(item, False)

    def get_nowait(self) -> Any:
        """Takes the first item. Raises QueueEmpty."""
        return self.get(False)

    def task_done(self) -> None:
        """An item that was taken is done."""
        self._unfinished -= 1
        if self._unfinished <= 0:
            self._joiners.wake()

    def join(self) -> None:
        """Waits until all items are done."""
        self._joiners.wait(lambda: self._unfinished <= 0)


LightQueue = Queue


class Semaphore:
    """A counter that is not to be below zero."""

    def __init__(self, value: int = 1) -> None:
        self.counter = value
        self._waiters = _Waiters()

    def acquire(self, blocking: bool = True, timeout: Optional[float] = None) -> bool:
        """Takes one, or waits for it; whether there was one."""
        if not self._waiters.wait(lambda: self.counter > 0, timeout if blocking else 0):
            return False
        self.counter -= 1
        return True

    def release(self) -> None:
        """Gives one back."""
        self.counter += 1
        self._waiters.wake()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_error: Any) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    """One that refuses more than it had."""

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._most = value

    def release(self) -> None:
        """Gives one back. Raises ValueError."""
        if self.counter >= self._most:
            raise ValueError("Semaphore released too many times")
        super().release()
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
    with SCHEDULER.blocking():
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
            with SCHEDULER.blocking():
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
            with SCHEDULER.blocking():
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
