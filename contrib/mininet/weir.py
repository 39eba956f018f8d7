"""Weir in Mininet: switches and a controller for `mn --custom contrib/mininet/weir.py`.

    mn --custom contrib/mininet/weir.py --switch weir --topo tree,2 --test pingall
    mn --custom contrib/mininet/weir.py --switch weir --controller weir --topo linear,4
    mn --custom contrib/mininet/weir.py --switch weirbr --controller none --topo tree,2

The program is $WEIR, or `weir` on the path. `weir` forwards by flow entries alone, as Mininet's own
switch does; `weirbr` is a learning switch that needs no controller, as Mininet's `ovsbr`. README.md
beside this file has the options. One that neither Weir nor Mininet knows is refused.
"""
import difflib
import inspect
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from mininet.log import error, warn
from mininet.moduledeps import pathCheck
from mininet.node import Controller, Switch

READY_S = 20
END_S = 5

FAIL_MODES = ("secure", "standalone")

#: Parameters that Mininet's base classes read without declaring them.
UNDECLARED = {"isSwitch", "privateDirs", "waitExited"}


def program():
    """The program's path; ends Mininet with a remedy when there is none."""
    named = os.environ.get("WEIR")
    if named:
        return named
    pathCheck("weir", moduleName="Weir (set WEIR, or put `weir` on the path)")
    return "weir"


def check(cls, name, words, given, without=()):
    """Refuses what neither a class nor those of Mininet that it builds on know."""
    if words:
        raise TypeError(f"{name}: `{words[0]}`: write NAME=VALUE")
    functions = [vars(one)[f] for one in cls.__mro__ for f in ("__init__", "config")
                 if f in vars(one) and one is not object]
    parameters = [p for f in functions for p in inspect.signature(f).parameters.values()]
    others = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = UNDECLARED | {p.name for p in parameters if p.kind not in others}
    known -= {"self", *without}
    for word in given:
        if word not in known:
            near = "".join(f"; did you mean `{one}`?"
                           for one in difflib.get_close_matches(word, known, 1))
            raise TypeError(f"{name}: unknown parameter `{word}`{near} "
                            f"({cls.__name__} takes {', '.join(sorted(known))})")


def flag(name, parameter, value):
    """A yes or no of a program, or of `mn`, which gives texts and numbers."""
    words = {"1": True, "true": True, "0": False, "false": False, "none": False}
    if str(value).lower() not in words:
        raise ValueError(f"{name}: {parameter}={value}: write True or False")
    return words[str(value).lower()]


class WeirSwitch(Switch):
    """`weir switch` on the interfaces that Mininet makes, one process a switch.

    The names of Mininet's own switch class mean the same: `failMode` is `fail_mode`, `reconnectms`
    is `backoff` in milliseconds.
    """

    usual_fail_mode = "secure"

    def __init__(self, name, *words, protocols=None, fail_mode=None, probe=None, backoff=None,
                 tables=None, failMode=None, reconnectms=None, datapath="user", inband=False,
                 stp=False, batch=False, **kwargs):
        # Before Mininet starts a shell for the node.
        check(type(self), name, words, kwargs)
        given = {fail_mode, failMode} - {None}
        if len(given) > 1:
            raise ValueError(f"{name}: fail_mode={fail_mode} and failMode={failMode}: give one")
        self.fail_mode = given.pop() if given else self.usual_fail_mode
        if self.fail_mode not in FAIL_MODES:
            raise ValueError(f"{name}: fail_mode={self.fail_mode}: write {' or '.join(FAIL_MODES)}")
        if flag(name, "stp", stp):
            raise ValueError(f"{name}: stp: Weir has no spanning tree: leave it out, and have a "
                             "controller or flow entries where links close a loop")
        if flag(name, "inband", inband):
            raise ValueError(f"{name}: inband: Weir reaches controllers by the host's own network "
                             "only: leave it out")
        flag(name, "batch", batch)  # Each switch is a process, started by itself.
        if datapath not in ("user", "kernel"):
            raise ValueError(f"{name}: datapath={datapath}: write user or kernel")
        if datapath == "kernel":
            warn(f"*** {name}: datapath=kernel: Weir forwards in user space\n")
        if backoff is not None and reconnectms is not None:
            raise ValueError(f"{name}: backoff and reconnectms: give one")
        if reconnectms is not None:
            backoff = int(reconnectms) / 1000 or None
        elif backoff is None:
            backoff = 1
        Switch.__init__(self, name, **kwargs)
        self.program = program()
        self.protocols = protocols
        self.probe = probe
        self.backoff = backoff
        self.tables = tables
        self.has_controllers = False
        self.process = None
        self.folder = None

    @property
    def control(self):
        """The control socket, for `weir ctl --control`."""
        return os.path.join(self.folder, "control")

    def arguments(self, controllers):
        """What `weir switch` is started with."""
        opts = shlex.split(self.opts or "")
        is_named = any(word.partition("=")[0] == "--name" for word in opts)
        words = ["switch"] + ([] if is_named else ["--name", self.name])
        words += ["--dpid", self.dpid, "--dp-desc", self.name,
                  "--control", self.control, "--fail-mode", self.fail_mode,
                  "--listen", "punix:" + os.path.join(self.folder, "openflow")]
        if self.listenPort:
            words += ["--listen", f"ptcp:{self.listenPort}:127.0.0.1"]
        if self.protocols:
            words += ["--protocols", self.protocols.replace("+", ",")]
        for option, value in (("--inactivity-probe", self.probe), ("--tables", self.tables),
                              ("--max-backoff", self.backoff)):
            if value is not None:
                words += [option, str(value)]
        for port, intf in sorted((port, intf) for intf, port in self.ports.items()):
            if intf.name != "lo":
                words += ["--port", f"{port}=af_packet:{intf.name}"]
        for controller in controllers:
            protocol = getattr(controller, "protocol", "tcp")
            words += ["--controller", f"{protocol}:{controller.IP()}:{controller.port}"]
        return words + opts

    def start(self, controllers):
        """Starts the switch and waits until it forwards and listens."""
        self.has_controllers = bool(controllers)
        self.folder = tempfile.mkdtemp(prefix=f"weir-{self.name}-")
        command = [self.program] + self.arguments(controllers)
        with open(os.path.join(self.folder, "log"), "w") as log:
            self.process = self.popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + READY_S
        while not os.path.exists(self.control):
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(os.path.join(self.folder, "log")) as log:
                    error(f"*** {self.name} did not start: {shlex.join(command)}\n{log.read()}\n")
                self.stop(deleteIntfs=False)
                raise RuntimeError(f"{self.name} did not start")
            time.sleep(0.02)

    def connected(self):
        """Whether a controller is connected, or there is none to wait for."""
        if not self.has_controllers:
            return True
        try:
            if json.loads(self.dpctl("--json", "show"))["controllers"]:
                return True
        except (ValueError, KeyError):
            pass
        return self.fail_mode == "standalone"

    def dpctl(self, *args):
        """Runs `weir ctl`, such as `dpctl dump-flows` in Mininet's command line.

        The words are joined and split as a shell does, so that entries may be quoted, and an option
        and its value may be one word.
        """
        try:
            words = shlex.split(" ".join(map(str, args)))
        except ValueError as fault:
            return f"dpctl: {fault}\n"
        done = subprocess.run([self.program, "ctl", "--control", self.control, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def attach(self, intf):
        """Not possible while it runs."""
        warn(f"*** {self.name}: {intf} becomes a port when the switch is started again\n")

    def stop(self, deleteIntfs=True):
        """Ends the switch, and takes its interfaces down."""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        Switch.stop(self, deleteIntfs)


class WeirBridge(WeirSwitch):
    """A learning switch without a controller. Links that close a loop make frames go round."""

    usual_fail_mode = "standalone"

    def __init__(self, name, *words, **kwargs):
        if "secure" in (kwargs.get("fail_mode"), kwargs.get("failMode")):
            raise ValueError(f"{name}: weirbr is the standalone switch; the secure one is weir")
        WeirSwitch.__init__(self, name, *words, **kwargs)

    def start(self, controllers):
        """Starts the switch, without the network's controllers."""
        WeirSwitch.start(self, [])


class WeirController(Controller):
    """`weir controller` with one of its apps."""

    def checkListening(self):
        """Refuses a port where something else listens."""
        try:
            socket.create_connection((self.ip, self.port), 1).close()
        except OSError:
            return
        raise RuntimeError(f"something listens on port {self.port} already")

    def __init__(self, name, *words, app="learning-switch", protocols=None, opts="", **kwargs):
        check(type(self), name, words, kwargs, without=("command", "cargs"))
        if kwargs.get("protocol", "tcp") != "tcp":
            raise ValueError(f"{name}: protocol={kwargs['protocol']}: only tcp; for TLS start "
                             "`weir controller` yourself and use RemoteController")
        kwargs.setdefault("port", 6653)
        Controller.__init__(self, name, command=program(), **kwargs)
        words = [app, *shlex.split(opts)]
        if protocols:
            words += ["--protocols", protocols.replace("+", ",")]
        # Mininet puts the port in by `%`.
        words = shlex.join(words).replace("%", "%%")
        self.cargs = f"controller {words} --listen tcp:{self.ip}:%d"


switches = {"weir": WeirSwitch, "weirbr": WeirBridge}
controllers = {"weir": WeirController}
topos, tests = {}, {}
