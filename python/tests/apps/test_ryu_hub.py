"""``ryu.lib.hub``: one thread runs at a time and changes only where it waits, as Ryu's do."""

from __future__ import annotations

import logging
import sys
import threading
import time
import unittest
from typing import Any, Callable, Dict, List

from weir.ryu.lib import hub
from weir.ryu.lib.scheduler import SCHEDULER

#: Far more than any wait here takes.
LONG_S = 60


def compute() -> int:
    """Takes many steps of Python, and waits nowhere."""
    return sum(number & 3 for number in range(300))


#: Places where a thread waits, each a function that lets others run.
WAITS: Dict[str, Callable[[], Any]] = {
    "sleep(0)": hub.sleep,
    "sleep": lambda: hub.sleep(0.0001),
    "an event": lambda: hub.Event().wait(0.0001),
    "a queue": lambda: hub.spawn(hub.Queue().put, 1).wait(),
    "a semaphore": lambda: hub.Semaphore(0).acquire(timeout=0.0001),
    "a join": lambda: hub.joinall([hub.spawn(compute)]),
    "a timeout": lambda: timed_out(0.0001),
}


def timed_out(seconds: float) -> bool:
    with hub.Timeout(seconds, False):
        hub.Event().wait()
        return False
    return True


class HubTest(unittest.TestCase):
    def setUp(self) -> None:
        before = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, before)
        # Threads that are free to run change at almost every step.
        sys.setswitchinterval(1e-6)

    def test_threads_change_only_where_they_wait(self) -> None:
        for name, wait in WAITS.items():
            with self.subTest(name):
                count = [0]

                def work(wait: Callable[[], Any] = wait, count: List[int] = count) -> None:
                    for _ in range(30):
                        seen = count[0]
                        compute()
                        count[0] = seen + 1
                        wait()

                hub.joinall([hub.spawn(work) for _ in range(4)])
                self.assertEqual(count, [120])

    def test_threads_run_in_the_order_in_which_they_became_ready(self) -> None:
        order: List[Any] = []
        event, queue = hub.Event(), hub.Queue(1)

        def waiter(name: str) -> None:
            event.wait()
            order.append(name)

        def fill() -> None:
            for number in range(3):
                queue.put(number)

        def main() -> None:
            for name in "abc":
                hub.spawn(waiter, name)
            hub.spawn(order.append, "first")
            hub.sleep()
            order.append("main")
            event.set()
            order.append("set")
            hub.sleep()
            hub.spawn(fill)
            order.extend(queue.get() for _ in range(3))

        hub.spawn(main).wait()
        self.assertEqual(order, ["first", "main", "set", *"abc", 0, 1, 2])

    def test_a_kill_takes_effect_at_once_or_before_the_start(self) -> None:
        never = hub.Event()

        def yields() -> None:
            while True:
                hub.sleep()

        for name, wait in {
            "before the start": None,
            "sleep": lambda: hub.sleep(3600),
            "an event": never.wait,
            "a queue": hub.Queue().get,
            "ready to run": yields,
        }.items():
            with self.subTest(name):
                steps: List[str] = []

                def victim(wait: Any = wait, steps: List[str] = steps) -> None:
                    steps.append("started")
                    try:
                        (wait or compute)()
                        steps.append("not killed")
                    finally:
                        steps.append("ended")

                def killer(wait: Any = wait, steps: List[str] = steps) -> None:
                    thread = hub.spawn(victim)
                    if wait is not None:
                        hub.sleep()
                    hub.kill(thread)
                    steps.append("killed")
                    hub.joinall([thread])
                    steps.append("dead" if thread.dead else "alive")

                hub.spawn(killer).wait()
                before = [] if wait is None else ["started", "ended"]
                self.assertEqual(steps, [*before, "killed", "dead"])

    def test_a_timeout_ends_a_wait_and_nothing_else(self) -> None:
        def main() -> List[Any]:
            event = hub.Event()
            found: List[Any] = [timed_out(0.001)]
            with hub.Timeout(0.001) as timeout:
                end = time.monotonic() + 0.01
                while time.monotonic() < end:
                    compute()
                # It is over, but nothing waits here.
                event.set()
                found.append(event.wait())
            try:
                with hub.Timeout(0.001, KeyError("own")):
                    hub.sleep(3600)
            except KeyError as error:
                found.append(error.args)
            timeout.cancel()
            hub.sleep(0.002)
            return found

        self.assertEqual(hub.spawn(main).wait(), [True, True, ("own",)])

    def test_a_thread_that_blocks_elsewhere_keeps_no_other_waiting(self) -> None:
        blocked, go_on = threading.Event(), threading.Event()

        def blocks() -> None:
            blocked.set()
            go_on.wait(LONG_S)
            hub.sleep()

        for name, computes in {"blocks": False, "computes": True}.items():
            with self.subTest(name):
                go_on.clear()
                stop = threading.Event()

                def busy(stop: threading.Event = stop) -> None:
                    while not stop.is_set():
                        compute()

                with self.assertLogs("ryu.lib.hub", logging.WARNING) as logged:
                    first = hub.spawn(busy if computes else blocks)
                    self.assertEqual(hub.spawn(lambda: 7).wait(LONG_S), 7)
                    end = time.monotonic() + LONG_S
                    while not logged.output and time.monotonic() < end:
                        hub.sleep(0.01)
                stop.set()
                go_on.set()
                first.wait(LONG_S)
                self.assertTrue(first.dead)
                self.assertIn("neither returns nor waits in ryu.lib.hub", logged.output[0])

    def test_the_sleep_of_the_library_lets_others_run_once_it_is_replaced(self) -> None:
        self.addCleanup(setattr, time, "sleep", time.sleep)
        hub.patch_sleep()
        sleeper = hub.spawn(time.sleep, 3600)
        with self.assertNoLogs("ryu.lib.hub"):
            self.assertEqual(hub.spawn(lambda: 7).wait(LONG_S), 7)
        hub.kill(sleeper)
        sleeper.wait(LONG_S)
        self.assertTrue(sleeper.dead)

    def test_a_thread_of_another_kind_may_wait_and_wake(self) -> None:
        queue, event = hub.Queue(), hub.Event()

        def waits() -> None:
            event.wait()
            queue.put("from within")

        hub.spawn(waits)
        event.set()
        self.assertEqual(queue.get(timeout=LONG_S), "from within")
        taken = hub.spawn(queue.get)
        queue.put("from without")
        self.assertEqual(taken.wait(LONG_S), "from without")
        with self.assertRaises(hub.QueueEmpty):
            queue.get_nowait()
        with SCHEDULER.entered():
            waiting = hub.spawn(lambda: 7)
            compute()
            self.assertFalse(waiting.dead)
            self.assertEqual(waiting.wait(), 7)


if __name__ == "__main__":
    unittest.main()
