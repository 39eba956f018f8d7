"""Weir in Mininet: a switch and a controller for `mn --custom contrib/mininet/weir.py`.

    mn --custom contrib/mininet/weir.py --switch weir --topo tree,2 --test pingall
    mn --custom contrib/mininet/weir.py --switch weir --controller weir --topo linear,4

The program is $WEIR, or `weir` on the path. Options of the switch, behind `--switch weir,`:

    protocols=OpenFlow13         versions to speak, joined by `+` (default: all that Weir speaks)
    fail_mode=standalone         what happens without a controller (default: secure, but standalone
                                 in a network that has none)
    probe=0                      seconds of silence until the controller is probed
    backoff=1                    most seconds between two attempts to reach the controller
    tables=16                    flow tables
    opts='--log info'            anything else that `weir switch` takes

Options of the controller, behind `--controller weir,`: `app=hub` (default: learning-switch),
`port=6653`, `protocols=OpenFlow13`.
"""
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


def program():
    """The program's path; ends Mininet with a remedy when there is none."""
    named = os.environ.get("WEIR")
    if named:
        return named
    pathCheck("weir", moduleName="Weir (set WEIR, or put `weir` on the path)")
    return "weir"


class WeirSwitch(Switch):
    """`weir switch` on the interfaces that Mininet makes, one process a switch."""

    def __init__(self, name, protocols=None, fail_mode=None, probe=None, backoff=1,
                 tables=None, **kwargs):
        Switch.__init__(self, name, **kwargs)
        self.program = program()
        self.protocols = protocols
        self.fail_mode = fail_mode
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
        fail_mode = self.fail_mode or ("secure" if controllers else "standalone")
        words = ["switch", "--dpid", self.dpid, "--dp-desc", self.name,
                 "--control", self.control, "--fail-mode", fail_mode,
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
        return words + shlex.split(self.opts or "")

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
            return bool(json.loads(self.dpctl("--json", "show"))["controllers"])
        except (ValueError, KeyError):
            return False

    def dpctl(self, *args):
        """Runs `weir ctl`, such as `dpctl dump-flows` in Mininet's command line."""
        done = subprocess.run([self.program, "ctl", "--control", self.control, *args],
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


class WeirController(Controller):
    """`weir controller` with one of its apps."""

    def checkListening(self):
        """Refuses a port where something else listens."""
        try:
            socket.create_connection((self.ip, self.port), 1).close()
        except OSError:
            return
        raise RuntimeError(f"something listens on port {self.port} already")

    def __init__(self, name, app="learning-switch", protocols=None, **kwargs):
        arguments = f"controller {app} --listen tcp:127.0.0.1:%d"
        if protocols:
            arguments += " --protocols " + protocols.replace("+", ",")
        kwargs.setdefault("port", 6653)
        Controller.__init__(self, name, command=program(), cargs=arguments, **kwargs)


switches = {"weir": WeirSwitch}
controllers = {"weir": WeirController}
topos, tests = {}, {}
