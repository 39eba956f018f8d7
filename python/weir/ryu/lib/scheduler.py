"""The threads of apps of Ryu: of those that take part, one runs at a time.

Ryu's threads are green ones, which change only where one of them waits: in ``hub.sleep``, at an
event, a queue, a join. Apps rely on that, and change what they share without a lock. So a thread
here runs until it waits, and those that are ready run in the order in which they became so. One
that blocks elsewhere (in a socket, at a lock of its own) or computes for seconds loses the
processor to the others, and runs beside them until it waits again.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Deque, Iterator, List, Optional, Tuple

if TYPE_CHECKING:
    from weir.ryu.lib.hub import Timeout

LOG = logging.getLogger("ryu.lib.hub")

#: The time between two looks at a thread for which others wait. One that has been in the same wait
#: of the kernel for all of this time is blocked.
_LOOK_S = 0.05

#: The longest time that a thread runs while others wait, if it computes.
_RUN_MAX_S = 2.0


class TaskExit(BaseException):
    """Ends a thread that was killed."""


class Task:
    """A thread, as the scheduler knows it."""

    def __init__(self, name: str, is_member: bool = False) -> None:
        #: For the log.
        self.describe: Callable[[], str] = lambda: name
        #: Called before it waits.
        self.before_wait: Callable[[], None] = lambda: None
        #: Whether it runs only when no other does.
        self.is_member = is_member
        self.is_killed = False
        #: The times after which it is to be interrupted where it waits.
        self.timeouts: List["Timeout"] = []
        self.native_id: Optional[int] = None
        self._is_parked = is_member
        # It was unparked before it waited.
        self._has_permit = False
        self._is_logged = False
        # Released each time that it may go on.
        self._go = threading.Lock()
        self._go.acquire()


class Scheduler:
    """Decides which thread runs."""

    def __init__(self) -> None:
        #: The threads that wait for nothing but the processor.
        self.ready: Deque[Task] = deque()
        #: The one that runs.
        self.running: Optional[Task] = None
        # The count of turns: one that runs again is not the same run.
        self._grants = 0
        self._mutex = threading.Lock()
        self._contended = threading.Event()
        self._watcher: Optional[threading.Thread] = None
        self._local = threading.local()

    def current(self) -> Task:
        """The task of the calling thread."""
        task: Optional[Task] = getattr(self._local, "task", None)
        return self._adopt(Task(threading.current_thread().name)) if task is None else task

    def _adopt(self, task: Task) -> Task:
        self._local.task = task
        task.native_id = threading.get_native_id()
        return task

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread takes part within the block."""
        task = self.current()
        try:
            self._enter(task)
            yield
        finally:
            task.timeouts.clear()
            self._leave(task)

    @contextlib.contextmanager
    def blocking(self) -> Iterator[None]:
        """Others run while the calling thread is in the block."""
        task = self.current()
        if not task.is_member:
            yield
            return
        task.before_wait()
        self._leave(task)
        try:
            yield
        finally:
            self._enter(task)

    def run(self, task: Task, delay_s: float, function: Callable[[], Any]) -> Any:
        """Runs a function as a task that was made for the calling thread, once it is unparked or
        the time is over."""
        self._adopt(task)
        deadline = time.monotonic() + delay_s if delay_s > 0 else None
        try:
            self._wait(task, deadline)
            return function()
        finally:
            self._leave(task)

    def park(self, task: Task, deadline: Optional[float] = None) -> None:
        """The calling thread waits until it is unparked or the time has come, perhaps for less,
        and then until it may run.

        Raises :class:`TaskExit` where it was killed, and a timeout of its own.
        """
        task.before_wait()
        with self._mutex:
            task._is_parked = not task._has_permit and not task.is_killed
            task._has_permit = False
            self._yield_processor(task)
            if not task._is_parked:
                self._resume(task)
        self._wait(task, deadline)

    def unpark(self, task: Task, is_first: bool = False) -> None:
        """The task goes on when its turn comes, or does not wait the next time."""
        with self._mutex:
            if task._is_parked:
                task._is_parked = False
                self._resume(task, is_first)
            else:
                task._has_permit = True

    def switch(self, task: Task) -> None:
        """Other threads that are ready run before the calling one goes on."""
        task.before_wait()
        if not task.is_member:
            time.sleep(0)
        elif self.ready or self.running is not task:
            with self._mutex:
                if self.running is task:
                    self.ready.append(task)
                    self._yield_processor(task)
                else:
                    self._resume(task)
            task._go.acquire()
        self._interrupt(task, True)

    def kill(self, task: Task) -> None:
        """Ends a task: where it waits at once, else where it waits next."""
        me = self.current()
        task.is_killed = True
        if task is me:
            self._interrupt(task, False)
        self.unpark(task, True)
        if self.running is me:
            self.switch(me)

    # The states of a task; the caller holds the mutex where nothing else is written.

    def _enter(self, task: Task) -> None:
        with self._mutex:
            task.is_member = True
            self._resume(task)
        task._go.acquire()

    def _leave(self, task: Task) -> None:
        with self._mutex:
            task.is_member = False
            self._yield_processor(task)
            if task in self.ready:
                # It was interrupted by a signal while it waited.
                self.ready.remove(task)

    def _wait(self, task: Task, deadline: Optional[float]) -> None:
        """Waits until the task goes on; its state says for what."""
        ends = [timeout.deadline for timeout in task.timeouts]
        if deadline is not None:
            ends.append(deadline)
        is_over = False
        left = max(0.0, min(ends) - time.monotonic()) if ends else -1
        if not task._go.acquire(timeout=min(left, threading.TIMEOUT_MAX)):
            with self._mutex:
                is_over = task._is_parked
                if is_over:
                    task._is_parked = False
                    self._resume(task)
            task._go.acquire()
        self._interrupt(task, is_over)

    def _interrupt(self, task: Task, is_over: bool) -> None:
        """Raises what ends the wait of the calling thread early."""
        if task.is_killed:
            task.is_killed = False
            raise TaskExit
        if is_over and task.timeouts:
            first = min(task.timeouts, key=lambda timeout: timeout.deadline)
            if first.deadline <= time.monotonic():
                first.expire()

    def _resume(self, task: Task, is_first: bool = False) -> None:
        if not task.is_member:
            task._go.release()
        elif self.running is None:
            self._grant(task)
        else:
            self.ready.insert(0 if is_first else len(self.ready), task)
            if not self._contended.is_set():
                self._watch_from_now()

    def _yield_processor(self, task: Task) -> None:
        if self.running is task:
            self.running = None
            if self.ready:
                self._grant(self.ready.popleft())

    def _grant(self, task: Task) -> None:
        self.running = task
        self._grants += 1
        task._go.release()

    # Threads that block, or compute for long.

    def _watch_from_now(self) -> None:
        self._contended.set()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="hub", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        while True:
            self._contended.wait()
            before: Tuple[int, Optional[str]] = (0, None)
            began = 0.0
            while self.ready:
                running, grants = self.running, self._grants
                seen = (grants, _kernel_wait(running))
                if grants != before[0]:
                    began = time.monotonic()
                is_blocked = seen == before and seen[1] is not None
                if is_blocked or time.monotonic() - began > _RUN_MAX_S:
                    self._preempt(grants)
                before = seen
                time.sleep(_LOOK_S)
            self._contended.clear()
            if self.ready:
                # It was not seen that it is contended again.
                self._contended.set()

    def _preempt(self, grants: int) -> None:
        """Lets another thread run, if still the same runs."""
        with self._mutex:
            task = self.running
            if self._grants != grants or task is None or not self.ready:
                return
            self.running = None
            self._grant(self.ready.popleft())
        if not task._is_logged:
            task._is_logged = True
            what = "neither returns nor waits in ryu.lib.hub; others go on"
            LOG.warning(f"%s {what}", task.describe())


def _kernel_wait(task: Optional[Task]) -> Optional[str]:
    """The count of a thread's waits in the kernel, while it is in one."""
    if task is None or task.native_id is None:
        return None
    try:
        with open(f"/proc/self/task/{task.native_id}/status", errors="replace") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
    except (OSError, ValueError):
        # It has ended.
        return None
    is_waiting = lines["State"].split()[0] in "SD"
    return lines["voluntary_ctxt_switches"] if is_waiting else None


#: That of this process.
SCHEDULER = Scheduler()
