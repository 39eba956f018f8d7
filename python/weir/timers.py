"""Calls after a time, on the thread of the apps."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Optional, Tuple

from weir.app import Timer
from weir.dispatch import Dispatcher
from weir.errors import QueueFull

#: Timers that may wait at a time; an app that sets ever more of them must not fill the memory.
TIMERS_MAX = 65_536


def check_room(waiting: int) -> None:
    """Raises :class:`weir.QueueFull` where as many timers wait as may."""
    if waiting >= TIMERS_MAX:
        raise QueueFull(f"{TIMERS_MAX} timers wait already")


class LoopTimer(Timer):
    """A call after a time, or each time that it has passed. What it raises is logged."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dispatcher: Callable[[], Dispatcher],
        delay_s: float,
        is_repeated: bool,
        function: Callable[..., Any],
        arguments: Tuple[Any, ...],
        on_end: Optional[Callable[[Timer], None]] = None,
    ) -> None:
        super().__init__()
        if not delay_s >= 0 or (is_repeated and not delay_s > 0):
            raise ValueError(f"a time in seconds, not {delay_s}")
        self._loop, self._dispatcher = loop, dispatcher
        self._delay_s, self._is_repeated = delay_s, is_repeated
        self._function, self._arguments, self._on_end = function, arguments, on_end
        self._wait()

    def cancel(self) -> None:
        super().cancel()
        # One that is cancelled waits no longer, so its room is another's.
        if self._on_end is not None:
            self._on_end(self)

    def _wait(self) -> None:
        self._handle = self._loop.call_later(self._delay_s, self._due)

    def _due(self) -> None:
        dispatcher = self._dispatcher()
        if asyncio.iscoroutinefunction(self._function):
            dispatcher.spawn(self._function(*self._arguments))
        else:
            dispatcher.call(self._function, *self._arguments)
        if self._is_repeated and not self._cancelled:
            self._wait()
        elif self._on_end is not None:
            self._on_end(self)
