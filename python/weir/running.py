"""Runs apps: :func:`run`, and what ``python -m weir run`` does.

The network is served by threads of the compiled part, which never wait for Python. Events come to
the thread that called :func:`run` in batches, and so go the messages that handlers send.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Type, Union

from weir import loading
from weir._weir import Core, Switch
from weir.app import TOPOLOGY, App, Controller, Timer, overrides
from weir.dispatch import RAISED, Dispatcher, Terminated
from weir.errors import WeirError
from weir.network import Keeper, Network, module_of, of_module
from weir.routes import Routes
from weir.timers import LoopTimer, check_room
from weir.topology import Host, Link, host_of, link_of

log = logging.getLogger("weir")

#: How long the apps may have the thread before other things on it get their turn.
_TURN_S = 0.01

#: Events taken at a time.
_BATCH = 1024

#: How often a changed file is looked for.
_RELOAD_S = 0.5

EXAMPLES = """\
Examples:
  weir run hub.py
      serves the apps of the file to switches that connect to port 6653 of this machine
  weir run app.py --listen tcp:127.0.0.1:6633 --protocols OpenFlow13 --reload
      only switches of this machine, only OpenFlow 1.3; a changed file is taken while it runs
  weir run app.py --rest 127.0.0.1:8080
      with REST and the page of weir controller beside the apps
  weir run app.py --network
      on the network that the file describes: hosts in namespaces, real switches (needs root)
  python3 app.py --connect tcp:192.0.2.7:6653
      the same, where the file calls weir.run; a switch that listens itself
"""


def parser(program: str) -> argparse.ArgumentParser:
    """The options of a run."""
    options = argparse.ArgumentParser(
        prog=program,
        description="Run apps of a file as an OpenFlow controller.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = options.add_argument
    add(
        "--listen",
        action="append",
        metavar="ENDPOINT",
        help="accept switches here (may be given several times) [default: tcp:0.0.0.0:6653, "
        "unless --connect is given]",
    )
    add(
        "--connect",
        action="append",
        metavar="ENDPOINT",
        help="connect to a switch that listens here (may be given several times)",
    )
    add("--protocols", metavar="VERSIONS", help="OpenFlow versions to offer, joined by commas")
    add("--shards", type=int, metavar="N", help="threads that serve switches [default: 1]")
    add("--reload", action="store_true", help="take the file again whenever it changes")
    add(
        "--network",
        action="store_true",
        help="make the network that the file describes (weir.Network) and serve its switches; "
        "further ones only where --listen or --connect says so",
    )
    add(
        "--observe-links",
        action="store_true",
        help="discover links and hosts; it is done where an app has a handler for them",
    )
    add(
        "--rest",
        metavar="HOST:PORT",
        help="serve REST here, the endpoints of Ryu's apps (described at /openapi.json), and at / "
        "a page to look at",
    )
    add(
        "--rest-token-file",
        metavar="FILE",
        help="demand the token in this file of every request of REST; without it REST is served on "
        "loopback addresses only",
    )
    add(
        "--metrics",
        metavar="ADDRESS:PORT",
        help="serve metrics for Prometheus here, at /metrics, for example 127.0.0.1:9438",
    )
    add("--private-key", metavar="FILE", help="TLS: the controller's private key, in PEM")
    add("--certificate", metavar="FILE", help="TLS: the controller's certificate, in PEM")
    add("--ca-cert", metavar="FILE", help="TLS: the certificate of the switches' CA, in PEM")
    add(
        "--check-peer-name",
        action="store_true",
        help="TLS: a switch that is connected to must also have a certificate for its host",
    )
    add(
        "--probe-interval",
        type=float,
        metavar="S",
        help="ask a switch that was silent for S seconds whether it is there; 0 never asks "
        "[default: 5]",
    )
    add("--stats-interval", type=float, metavar="S", help="print rates every S seconds")
    add("--debug", action="store_true", help="log more, with the messages of the network's threads")
    return options


def run(
    *apps: Union[Type[App], App],
    argv: Optional[Sequence[str]] = None,
    listen: Union[str, Sequence[str], None] = None,
    connect: Union[str, Sequence[str], None] = None,
    protocols: Union[str, Sequence[str], None] = None,
    shards: Optional[int] = None,
    network: Optional[Network] = None,
) -> None:
    """Serves switches with these apps, in this order, until Ctrl-C, SIGTERM or ``stop()``.

    Apps are classes, which are called without arguments, or values. The program's arguments are
    read as those of ``weir run``, unless ``argv`` gives others; they go before the keywords here.
    With ``--network`` the network is made that is given here, or that the apps' file describes.

    Raises :class:`weir.WeirError` when an endpoint cannot be opened.
    """
    if not apps:
        raise TypeError("weir.run needs at least one app, such as weir.run(Hub)")
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "weir.run"
    options = parser(program).parse_args(sys.argv[1:] if argv is None else list(argv))
    options.listen = options.listen or _list(listen)
    options.connect = options.connect or _list(connect)
    options.protocols = options.protocols or ",".join(_list(protocols) or [])
    options.shards = options.shards or shards
    source = loading.Source.of_classes(apps) if options.reload else None
    if options.network:
        options.network = network or of_module(module_of(apps[0]))
    serve(loading.made(apps), options, source, Path(program).stem)


def _list(given: Union[str, Sequence[str], None]) -> Optional[List[str]]:
    return [given] if isinstance(given, str) else None if given is None else list(given)


def serve(
    apps: List[App],
    options: argparse.Namespace,
    source: Optional[loading.Source] = None,
    name: str = "net",
) -> None:
    """Serves switches with the apps until the end of the run, on a network of their own where
    ``options.network`` is one."""
    _log_to_stderr(options.debug)
    with _terminable(), contextlib.suppress(Terminated):
        if not options.network:
            _serve(apps, options, source, None)
            return
        keeper = Keeper(options.network, name)
        try:
            options.listen = [*(options.listen or []), keeper.listen]
            _serve(apps, options, source, keeper)
        finally:
            keeper.end()


def _serve(
    apps: List[App],
    options: argparse.Namespace,
    source: Optional[loading.Source],
    keeper: Optional[Keeper],
) -> None:
    tls_files = (options.private_key, options.certificate, options.ca_cert)
    if any(tls_files) and not all(tls_files):
        raise WeirError("TLS needs --private-key, --certificate and --ca-cert together")
    if options.rest_token_file is not None and options.rest is None:
        raise WeirError("--rest-token-file needs --rest HOST:PORT")
    routes = Routes(apps).rows()
    if routes and options.rest is None:
        log.warning("the routes of the apps are served with --rest HOST:PORT only")
    discovers = options.observe_links or _wants_topology(apps)
    core = Core(
        listen=options.listen or [],
        connect=options.connect or [],
        protocols=options.protocols or "",
        shards=1 if options.shards is None else options.shards,
        tls=tls_files if all(tls_files) else None,
        check_peer_name=options.check_peer_name,
        probe_interval_s=5.0 if options.probe_interval is None else options.probe_interval,
        stats_interval_s=options.stats_interval,
        debug=options.debug,
        discover=discovers,
        rest=options.rest,
        rest_token_file=options.rest_token_file,
        metrics=options.metrics,
        routes=routes,
    )
    loop = asyncio.new_event_loop()
    runner = Runner(core, loop, apps, source)
    runner.discovers = discovers
    is_lost = False

    def lose() -> None:
        nonlocal is_lost
        is_lost = True
        loop.stop()

    try:
        core.start()
        if keeper is not None:
            keeper.watch(loop, lose)
        runner.begin()
        loop.run_forever()
    except Terminated:
        pass
    finally:
        # The switches' connections end first: nothing comes any more.
        core.stop()
        if keeper is not None:
            keeper.unwatch(loop)
        runner.end()
    if is_lost:
        raise WeirError("the network has ended")


def _wants_topology(apps: List[App]) -> bool:
    return any(overrides(app, handler) for app in apps for handler in TOPOLOGY)


def _log_to_stderr(debug: bool) -> None:
    """Lines of ``weir`` on standard error, where the program has not decided otherwise."""
    if not logging.getLogger().handlers and not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.DEBUG if debug else logging.INFO)
        log.propagate = False


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and, where the program has not decided otherwise, SIGINT end the run, also a handler
    that never returns. A KeyboardInterrupt that an app raises is neither."""

    def terminate(_number: int, _frame: Optional[FrameType]) -> None:
        raise Terminated

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    try:
        before = [(number, signal.signal(number, terminate)) for number in numbers]
    except ValueError:
        # Another thread than the main one: signals are the program's own affair.
        yield
        return
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


class Runner(Controller):
    """The apps on their thread."""

    def __init__(
        self,
        core: Core,
        loop: asyncio.AbstractEventLoop,
        apps: List[App],
        source: Optional[loading.Source],
    ) -> None:
        self.core, self.loop = core, loop
        self.timers: set[Timer] = set()
        #: Whether links and hosts are discovered.
        self.discovers = False
        self._source = source
        self._take_apps(apps)

    def _take_apps(self, apps: List[App]) -> None:
        for app in apps:
            app.controller = self
        self.dispatcher = Dispatcher(apps, self.loop)
        self.core.set_wants(self.dispatcher.wants())

    def begin(self) -> None:
        """Takes events from now on."""
        self.loop.add_reader(self.core.fileno(), self._ready)
        self.loop.call_later(1.0, self._tick)
        if self._source is not None:
            self.loop.call_later(_RELOAD_S, self._look)
        self.dispatcher.each("started")

    def end(self) -> None:
        """Ends the apps."""
        self._close_apps()
        self.loop.remove_reader(self.core.fileno())
        with contextlib.suppress(Terminated):
            self.loop.run_until_complete(_cancel_others())
        self.loop.close()

    def _close_apps(self) -> None:
        for timer in list(self.timers):
            timer.cancel()
        self.timers.clear()
        self.dispatcher.each("stopped")
        self.core.flush()
        self.dispatcher.close()

    def _ready(self) -> None:
        """Events wait."""
        core, dispatcher = self.core, self.dispatcher
        end = time.monotonic() + _TURN_S
        while True:
            batch = core.take(_BATCH)
            if not batch:
                return
            try:
                dispatcher.batch(batch)
            finally:
                core.flush()
            if time.monotonic() > end:
                # The descriptor stays readable while events wait.
                return

    def _tick(self) -> None:
        self.loop.call_later(1.0, self._tick)
        if self.dispatcher.wants_ticks():
            self.dispatcher.ticks(self.core.switches())

    def _look(self) -> None:
        """Takes changed files."""
        assert self._source is not None
        self.loop.call_later(_RELOAD_S, self._look)
        if not self._source.has_changed():
            return
        try:
            apps = self._source.load()
        except Terminated:
            raise
        except RAISED as error:
            # As when it was started; the apps that run go on.
            log.error("%s: not taken; the apps before go on", self._source.path, exc_info=error)
            return
        self._close_apps()
        self._take_apps(apps)
        if self.dispatcher.wants_topology() and not self.discovers:
            log.warning("links and hosts are discovered only from the start; run it again")
        log.info("%s: taken again: %s", self._source.path, _names(apps))
        self.dispatcher.each("started")
        for sw in self.core.switches():
            self.dispatcher.each("switch_ready", sw)
        self.core.flush()

    def switches(self) -> List[Switch]:
        return self.core.switches()

    def switch(self, dpid: int) -> Optional[Switch]:
        return self.core.switch(dpid)

    def links(self) -> List[Link]:
        return [link_of(told) for told in self.core.links()]

    def hosts(self) -> List[Host]:
        return [host_of(told) for told in self.core.hosts()]

    def stats(self) -> Dict[str, int]:
        stats = self.core.stats()
        stats["exceptions"] = self.dispatcher.failures.count
        stats["coroutines_refused"] = self.dispatcher.refused
        return stats

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)

    def call_later(self, delay_s: float, function: Callable[..., Any], *arguments: Any) -> Timer:
        return self._timer(delay_s, False, function, arguments)

    def call_every(self, period_s: float, function: Callable[..., Any], *arguments: Any) -> Timer:
        return self._timer(period_s, True, function, arguments)

    def _timer(
        self,
        delay_s: float,
        is_repeated: bool,
        function: Callable[..., Any],
        arguments: Tuple[Any, ...],
    ) -> Timer:
        check_room(len(self.timers))
        timer = LoopTimer(
            self.loop,
            lambda: self.dispatcher,
            delay_s,
            is_repeated,
            function,
            arguments,
            self.timers.discard,
        )
        self.timers.add(timer)
        return timer


async def _cancel_others() -> None:
    """Cancels all tasks of the loop, and waits until they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _names(apps: List[App]) -> str:
    return ", ".join(type(app).__name__ for app in apps)


def main(arguments: Sequence[str]) -> int:
    """``python -m weir run FILE [options]``; the exit code."""
    options = parser("weir run")
    options.add_argument("file", type=Path, metavar="FILE", help="the file with the apps")
    parsed = options.parse_args(list(arguments))
    _log_to_stderr(parsed.debug)
    try:
        _run_file(parsed)
    except WeirError as error:
        print(f"weir run: {error}", file=sys.stderr)
        return 1
    return 0


def _run_file(parsed: argparse.Namespace) -> None:
    from weir import manager

    if manager.is_ryu(parsed.file):
        manager.serve([str(parsed.file)], parsed)
        return
    source = loading.Source(parsed.file)
    apps = source.load()
    if parsed.network:
        parsed.network = of_module(source.module)
    serve(apps, parsed, source if parsed.reload else None, parsed.file.stem)
