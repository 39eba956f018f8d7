"""``weir ryu-manager``: apps of Ryu and os-ken, unmodified, on Weir's controller.

The apps run on threads of their own behind one app of Weir, :class:`RyuApps`, so that everything
that an app of Weir has beside it (TLS, REST and the page, several listeners) is there for them too.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from weir import aliases, running
from weir.app import App
from weir.errors import WeirError
from weir.loading import LoadError, described
from weir.ryu import flags  # noqa: F401
from weir.ryu.cfg import CONF, ConfigFilesNotFoundError
from weir.ryu.ofproto import ofproto_protocol

log = logging.getLogger("weir")

#: An app whose handler runs this number of ticks is logged as blocked.
_BLOCKED_TICKS = 2

#: The import that every app of Ryu has.
_BASE = re.compile(r"^\s*(?:from|import)\s+(?:ryu|os_ken)\.base\b", re.MULTILINE)

DESCRIPTION = "Run apps of Ryu or os-ken, unmodified, as an OpenFlow controller."

EXAMPLES = """\
Examples:
  weir ryu-manager simple_switch_13.py
      serves the app to switches that connect to port 6653 of this machine, or to 6633
  weir ryu-manager --ofp-tcp-listen-port 6633 app.py ryu.app.rest_topology --observe-links
      two apps, one of them of Ryu's package, whose folder is in PYTHONPATH
  weir ryu-manager app.py --listen tcp:127.0.0.1:6633 --rest 127.0.0.1:8080
      with the options of weir run, and Weir's page beside the app
"""


class RyuApps(App):
    """Passes the events of Weir's controller on to apps of Ryu."""

    def __init__(self, handler: Any, manager: Any) -> None:
        self._handler, self._manager = handler, manager
        self._seen: Dict[str, Tuple[int, int]] = {}
        self._xids = (0, 0)

    def started(self) -> None:
        from weir.ryu.base import app_manager

        core = getattr(self.controller, "core")  # noqa: B009
        self._xids = core.xids()
        app_manager.line = core
        self.controller.call_every(1.0, self._watch)

    def switch_ready(self, sw: Any) -> None:
        self._handler.switch_ready(sw, self._xids)

    def switch_down(self, dpid: int) -> None:
        self._handler.switch_down(dpid)

    def packet_in(self, sw: Any, pkt: Any) -> None:
        self._handler.packet_in(sw, pkt)

    def message(self, sw: Any, message: Any) -> None:
        self._handler.message(sw, message)

    port_status: Any = message
    flow_removed: Any = message
    error: Any = message

    def stopped(self) -> None:
        self._manager.close()

    def _watch(self) -> None:
        """Logs each app whose handler does not return."""
        for name, app in list(self._manager.applications.items()):
            handled, ticks = self._seen.get(name, (-1, 0))
            running_now = app.running
            ticks = ticks + 1 if running_now is not None and app.handled == handled else 0
            self._seen[name] = (app.handled, ticks)
            if ticks == _BLOCKED_TICKS:
                what = getattr(running_now, "__name__", running_now)
                log.warning("%s: handler %s does not return; other apps go on", name, what)


class _NoPacketIns(RyuApps):
    """The same for apps without a handler of packet-ins, which are then not queued at all."""

    packet_in: Any = App.packet_in


def load(names: Sequence[str], own: Sequence[str] = ()) -> List[App]:
    """The apps of these modules and files, ready, behind apps of Weir; ``own`` are options that
    only their modules know.

    Raises :class:`weir.loading.LoadError`.
    """
    aliases.install()
    from weir.ryu.base import app_manager
    from weir.ryu.lib.hub import patch_exit, patch_sleep
    from weir.ryu.lib.scheduler import SCHEDULER

    patch_sleep()
    patch_exit()
    aliases.explain_names()
    manager = app_manager.AppManager.get_instance()
    try:
        # What apps spawn while they are made runs once all of them are.
        with SCHEDULER.entered():
            # Without it nothing of a switch comes; an app that handles no event of one needs it
            # too.
            manager.load_apps([*names, "ryu.controller.ofp_handler"])
            left = CONF.read_arguments(own)
            if left:
                raise WeirError(f"unrecognized arguments: {' '.join(left)}")
            manager.instantiate_apps(**manager.create_contexts())
    except WeirError:
        raise
    except (Exception, SystemExit) as error:
        raise LoadError(described(error)) from error
    handler: Any = app_manager.lookup_service_brick("ofp_event")
    bridge = (RyuApps if handler.wants_packet_ins() else _NoPacketIns)(handler, manager)
    switches: Any = app_manager.lookup_service_brick("switches")
    return [bridge] if switches is None else [bridge, switches.discovery]


def _start_web_server() -> None:
    """Serves the routes of apps, where they have some."""
    wsgi: Any = sys.modules.get("weir.ryu.app.wsgi")
    if wsgi is None:
        return
    from weir.ryu.base.app_manager import AppManager

    server = wsgi.start_service(AppManager.get_instance())
    if server is not None:
        threading.Thread(target=server, name="wsgi", daemon=True).start()


def _log_to_stderr(is_verbose: bool) -> None:
    """Lines of all loggers on standard error, the text alone."""
    if not logging.getLogger().handlers:
        logging.basicConfig(format="%(message)s", level=logging.INFO)
    if is_verbose:
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger("asyncio").setLevel(logging.INFO)


def parser() -> argparse.ArgumentParser:
    """The options: those of ``weir run``, and Ryu's."""
    options = running.parser("weir ryu-manager")
    options.description, options.epilog = DESCRIPTION, EXAMPLES
    add = options.add_argument
    add("--verbose", action="store_true", help="log more, as Ryu does")
    add("--ofp-listen-host", metavar="HOST", help="Ryu's word for the address of --listen")
    add("--ofp-tcp-listen-port", type=int, metavar="PORT", help="Ryu's word for --listen")
    add("--ofp-ssl-listen-port", type=int, metavar="PORT", help="Ryu's word for --listen by TLS")
    add("--ctl-privkey", dest="private_key", metavar="FILE", help=argparse.SUPPRESS)
    add("--ctl-cert", dest="certificate", metavar="FILE", help=argparse.SUPPRESS)
    add("--ca-certs", dest="ca_cert", metavar="FILE", help=argparse.SUPPRESS)
    add("--config-file", action="append", metavar="FILE", help="options of apps, as Ryu reads them")
    add("--app-lists", action="append", default=[], metavar="APP", help=argparse.SUPPRESS)
    add("--default-log-level", metavar="N", type=int, help="the level of the log, in numbers")
    return options


def listeners(parsed: argparse.Namespace) -> List[str]:
    """The endpoints of Ryu's options, or those that Ryu listens at without any."""
    host = parsed.ofp_listen_host or "0.0.0.0"
    has_tls = parsed.certificate is not None
    port = parsed.ofp_ssl_listen_port if has_tls else parsed.ofp_tcp_listen_port
    ports = [port] if port is not None else [6653, 6633]
    kind = "ssl" if has_tls else "tcp"
    return [f"{kind}:{host}:{port}" for port in ports]


def main(arguments: Sequence[str]) -> int:
    """``python -m weir ryu-manager APP.. [options]``; the exit code."""
    parsed, rest = parser().parse_known_args(list(arguments))
    _log_to_stderr(parsed.verbose or parsed.debug)
    if parsed.default_log_level is not None:
        logging.getLogger().setLevel(parsed.default_log_level)
    try:
        run(parsed, rest)
    except (WeirError, ValueError, OSError, ConfigFilesNotFoundError) as error:
        print(f"weir ryu-manager: {error}", file=sys.stderr)
        return 1
    return 0


def run(parsed: argparse.Namespace, words: Sequence[str]) -> None:
    """Runs apps until the end; ``words`` are their names, and options of theirs."""
    for name in ("observe_links", "ofp_listen_host", "ofp_tcp_listen_port", "ofp_ssl_listen_port"):
        if getattr(parsed, name):
            CONF.set_override(name, getattr(parsed, name))
    for path in parsed.config_file or []:
        CONF.read_file(path)
    left = CONF.read_arguments(words)
    names = [*parsed.app_lists, *(word for word in left if not word.startswith("-"))]
    if not parsed.listen and not parsed.connect:
        parsed.listen = listeners(parsed)
    serve(names, parsed, [word for word in left if word.startswith("-")])


def serve(names: Sequence[str], parsed: argparse.Namespace, own: Sequence[str] = ()) -> None:
    """Runs apps until the end; see :func:`load`."""
    _log_to_stderr(parsed.debug)
    if parsed.reload:
        raise WeirError("--reload: apps of Ryu are not taken again while they run")
    spoken = [name for _, name in ofproto_protocol.NAMES.values()]
    for word in filter(None, (parsed.protocols or "").split(",")):
        if word.strip() not in spoken:
            raise WeirError(f"--protocols {word}: apps of Ryu run over {', '.join(spoken)}")
    apps = load(names, own)
    parsed.protocols = parsed.protocols or ofproto_protocol.protocols()
    _start_web_server()
    running.serve(apps, parsed)


def is_ryu(path: Path) -> bool:
    """Whether a file is an app of Ryu or os-ken, by its imports."""
    try:
        return _BASE.search(path.read_text(errors="replace")) is not None
    except OSError:
        return False
