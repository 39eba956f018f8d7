"""A network namespace with switches, an app and hosts, and what can be seen of them."""
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

import apps
import frames
import websocket

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.dirname(HERE)
REST_PORT = 8080
# Seconds without a change after which Ryu is done with a step, and seconds that Weir may take.
STILL_S, LIMIT_S = 0.8, 10.0
# Lines that are the server's, not the app's: of the start, of eventlet's access log.
SERVER_LINES = re.compile(
    r"loading app |instantiating app |creating context |BRICK |  (PROVIDES|CONSUMES) "
    r"|(\(\d+\) )?(wsgi|accepted)|127\.0\.0\.1 |move onto |connected socket|hello ev|EVENT "
    r"|switch features ev|listening on |.*: switch \S+ (is|has)"
    r"|TypeError: 'object' object is not iterable")
# Of a traceback only the exception is compared: paths and Python's marks differ.
TRACEBACK = re.compile(r"Traceback |  |During handling of|The above exception|\s*\^+")
HANDLER = re.compile(r".*: (Exception occurred during|handler \w+ of) ")


class World:
    """The namespace of this process, with everything in it."""

    def __init__(self, options, app, server, folder):
        self.app, self.server, self.folder = app, server, folder
        self.children, self.ends, self.listening = [], {}, []
        # The place in the log where the last step begins.
        self.app_since = 0
        self.log = open(os.path.join(options.out, f"{app.name}.{server}.log"), "w+b")
        run("ip", "link", "set", "lo", "up")
        self.dpids = list(range(1, app.switches + 1))
        self._start_app(options)
        if not app.refused:
            for dpid, ports in self._wire().items():
                self._start_switch(dpid, ports)

    def _start_app(self, options):
        words = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", "6653", "--wsapi-host",
                 "127.0.0.1", "--wsapi-port", str(REST_PORT), *self.app.options, *self.app.modules]
        environment = dict(os.environ)
        if self.server == "ryu":
            command = [options.ryu, os.path.join(PEERS, "rest", "ryu_run.py"), *words]
        else:
            # Ryu's own idioms need nothing else; other libraries are os-ken's.
            python = options.libraries if self.app.needs_libraries else options.weir
            command = [python, "-m", "weir", "ryu-manager", *words]
            paths = [options.package, os.path.join(options.out, "apps")]
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        self._spawn(command, environment, self.log)

    def _wire(self):
        """Makes the links; the devices of each switch, in the order of its ports.

        The far ends of the first switch's are p1 to p3, as ask.py knows them. A second switch has
        some of them: one for a link, two with a host of its own for a loop.
        """
        pairs = {f"dut{number}": f"p{number}" for number in (1, 2, 3)}
        ports = {1: list(pairs)}
        if self.app.has_local:
            pairs["local1"] = "p9"
        if self.app.switches == 2 and self.app.suite:
            ports[2] = ["p3"]
        elif self.app.switches == 2:
            pairs["dut4"] = "p4"
            ports[2] = ["dut4", "p2", "p3"]
        for number, (device, peer) in enumerate(pairs.items(), 1):
            run("ip", "link", "add", device, "address", f"02:00:00:00:01:0{number}", "type",
                "veth", "peer", "name", peer, "address", f"02:00:00:00:02:0{number}")
            quiet(device)
            quiet(peer)
        for peer in sorted(set(pairs.values()) - set(ports.get(2, []))):
            if not self.app.suite:
                self.ends[peer] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
                self.ends[peer].bind((peer, 0))
        return ports

    def _start_switch(self, dpid, ports):
        version = self.app.version
        folder = os.path.join(self.folder, str(dpid))
        os.mkdir(folder)
        environment = dict(
            os.environ, DUT_PORTS=" ".join(ports), DUT_CONTROLLER="tcp:127.0.0.1:6653",
            DUT_DPID=f"{dpid:016x}", DUT_OFP=f"OpenFlow{version}", DUT_DIR=folder,
            DUT_OFP_VERSION=f"{version[0]}.{version[1]}", DUT_MAX_BACKOFF="0.2")
        if self.app.has_local:
            environment["DUT_LOCAL"] = f"local{dpid}"
        log = open(os.path.join(self.folder, f"switch-{dpid}.log"), "wb")
        self._spawn([os.path.join(PEERS, "weir-dut.sh")], environment, log)

    def _spawn(self, command, environment, log):
        self.children.append(subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, cwd=self.folder))

    def end(self):
        while self.children:
            self._end_child(self.children.pop())

    @staticmethod
    def _end_child(child):
        """SIGTERM to a session, SIGKILL after 3 s."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if child.poll() is None:
                os.killpg(child.pid, number)
            try:
                child.wait(3)
                return
            except subprocess.TimeoutExpired:
                pass

    def output(self):
        """All that an app printed that ends by itself."""
        try:
            self.children[0].wait(LIMIT_S * 2)
        except subprocess.TimeoutExpired:
            return "it does not end"
        return self._log_text(0)

    def suite(self, ask, out):
        """The answers to a suite of requests."""
        if os.path.exists(out):
            os.remove(out)
        subprocess.run([sys.executable, ask, out, self.app.suite, self.app.version,
                        f"127.0.0.1:{REST_PORT}"], check=True)

    def run(self, expected):
        """The observations after each step."""
        seen = []
        for index, step in enumerate(self.app.steps):
            wanted = expected[index]["seen"] if expected else None
            seen.append({"step": describe(step), "seen": self._step(step, wanted)})
            if wanted is not None and seen[-1]["seen"] != wanted:
                # What follows would differ too.
                break
        return seen

    def _step(self, step, wanted):
        kind, *arguments = step
        since = self._log_size()
        frames_seen, messages = [], []
        needles = dict.fromkeys(arguments[0], 1) if kind == "start" else {}
        if kind == "wait":
            needles = arguments[0]
        elif kind == "get":
            needles = dict.fromkeys(arguments[1:], 1)
        limit_s = self.app.limit_s if needles or kind == "start" else LIMIT_S
        answer = None
        if kind == "start":
            since = 0
        elif kind == "wait":
            since = self.app_since
        elif kind == "send":
            self.ends[f"p{arguments[0]}"].send(arguments[1])
        elif kind == "do":
            answer = ask(arguments[0], arguments[1], apps.body_text(arguments[2]))
        elif kind == "rpc":
            answer = websocket.Client(REST_PORT, arguments[0]).call(json.dumps(arguments[1]))
        elif kind == "unplug":
            self._end_child(self.children.pop())
            self.dpids.pop()
        elif kind == "listen":
            self.listening.append(self._listen(arguments[0]))
        # A wait also sees the lines of the step before it, however fast the controller is.
        self.app_since = since
        began = changed = time.monotonic()
        last = None
        while True:
            self._take(frames_seen, messages)
            if kind == "get":
                answer = ask("GET", arguments[0], "")
            seen = self._seen(step, since, frames_seen, messages, answer)
            now = time.monotonic()
            if seen != last:
                last, changed = seen, now
            text = self._log_text(since) if kind == "wait" else json.dumps(seen)
            is_connected = kind != "start" or all(map(self._is_connected, self.dpids))
            is_done = is_connected and all(
                text.count(needle) >= count for needle, count in needles.items())
            if wanted is not None and seen == wanted and is_done:
                # Nothing more may come.
                is_still = now - changed > 0.3
            elif wanted is not None and self.children[0].poll() is not None:
                raise SystemExit("the app has ended: " + "; ".join(self._lines(0)[-1:]))
            else:
                is_still = wanted is None and is_done and now - changed > STILL_S
            if is_still or now - began > limit_s:
                return seen

    @staticmethod
    def _listen(path):
        """A WebSocket, as soon as the server is up."""
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                return websocket.Client(REST_PORT, path)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def _seen(self, step, since, frames_seen, messages, answer):
        kind = step[0]
        seen = {}
        if self.app.clock != apps.EVERYTHING:
            seen["flows"] = {dpid: self._flows(dpid) for dpid in map(str, self.dpids)}
        if kind == "send":
            seen["frames"] = sorted(frames_seen)
        lines = self._lines(since)
        if kind == "start":
            lines = []
        elif kind != "wait" and self.app.clock is not None:
            lines = [line for line in lines if not re.match(self.app.clock, line)]
        if kind == "wait":
            # They come by the clock.
            lines = {re.sub(r"\d+", "N", line) for line in lines if re.search(step[2], line)}
        seen["log"] = sorted(lines)
        if answer is not None:
            seen["answer"] = answer
        if messages:
            seen["messages"] = messages
        return seen

    def _take(self, frames_seen, messages):
        """The frames and messages that come within a moment."""
        sources = [*self.ends.values(), *(client.socket for client in self.listening)]
        ready = select.select(sources, [], [], 0.1)[0]
        for client in self.listening:
            if client.socket in ready:
                message = client.take()
                messages.append(message)
                if isinstance(message, dict) and "method" in message:
                    client.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": ""}))
        for name, end in self.ends.items():
            if end in ready:
                data, address = end.recvfrom(4096)
                kind = data[12:14]
                # LLDP and BPDUs come by the clock.
                if address[2] == socket.PACKET_OUTGOING or kind == b"\x88\xcc" \
                        or data[:6] == bytes.fromhex("0180c2000000"):
                    continue
                frames_seen.append(f"{name} {frames.text(data)}")

    def _flows(self, dpid):
        printed = self._ctl(dpid, "dump-flows", "--no-stats")
        # The entry by which LLDP comes is that of the server's own discovery.
        lines = [line.strip() for line in printed.splitlines() if "dl_type=0x88cc" not in line]
        return sorted(line for line in lines if "actions=" in line)

    def _is_connected(self, dpid):
        printed = self._ctl(dpid, "show")
        return "controller" in printed and "not connected" not in printed

    def _ctl(self, dpid, *words):
        control = os.path.join(self.folder, str(dpid), "weir.ctl")
        weir = os.environ.get("WEIR", "weir")
        ended = subprocess.run([weir, "ctl", "--control", control, *words],
                               capture_output=True, text=True)
        return ended.stdout

    def _log_size(self):
        return os.fstat(self.log.fileno()).st_size

    def _log_text(self, since):
        size = self._log_size() - since
        return os.pread(self.log.fileno(), size, since).decode("utf-8", "replace")

    def _lines(self, since):
        lines = [line.rstrip() for line in self._log_text(since).splitlines()]
        return [line for line in lines if line and not (
            SERVER_LINES.match(line) or TRACEBACK.match(line) or HANDLER.match(line))]


def describe(step):
    """A step in a few words."""
    return " ".join(frames.text(word)[:45] if isinstance(word, bytes) else str(word)
                    for word in step)


def ask(method, path, body):
    """[status, answer] of a request; the answer parsed where it is JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", REST_PORT, timeout=5)
    try:
        connection.request(method, path, body.encode() or None,
                           {"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        kind = response.getheader("Content-Type") or ""
        if response.status >= 400:
            return [response.status]
        return [response.status, kind.split(";")[0],
                json.loads(text) if kind.startswith("application/json") and text else text]
    except (OSError, http.client.HTTPException) as error:
        return [0, str(error)]
    finally:
        connection.close()


def run(*command):
    """Runs a command that must not fail."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def quiet(interface):
    """No IPv6 chatter and no offloads: frames on the wire look as they are."""
    with open(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6", "w") as file:
        file.write("1")
    subprocess.run(["ethtool", "-K", interface, "rx", "off", "tx", "off", "tso", "off", "gso",
                    "off", "gro", "off", "rxvlan", "off", "txvlan", "off"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run("ip", "link", "set", interface, "up")
