"""Drives the controller's page in headless Chromium, with real switches behind it.

    check.py WEIR [PICTURES]

WEIR is the program; with a folder PICTURES, screenshots at three widths, light and dark, of 3 and
of 300 switches are written there. Needs root (network namespaces), chromium and chromedriver.
Each check prints a line; the last line has the totals.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

from webdriver import Browser, Failure, free_port, wait

WIDTHS = [("wide", 1440, 900), ("tablet", 900, 1100), ("phone", 390, 844)]


def bridges(count, links, hosts=()):
    """The switch's configuration: `count` bridges, pairs joined by wires in memory."""
    ports = {number: [] for number in range(1, count + 1)}
    for index, (left, right) in enumerate(links):
        ports[left].append(f"memory:wire{index}?end=a")
        ports[right].append(f"memory:wire{index}?end=b")
    for number, device in hosts:
        ports[number].append(f"af_packet:{device}")
    tables = [
        f'[[bridge]]\nname = "s{number}"\ndpid = "{number:x}"\n'
        f"port = {json.dumps(its)}\n"
        for number, its in ports.items()
    ]
    return "\n".join(tables)


class Net:
    """Two hosts in namespaces, each with a device of the switch in this one."""

    def __init__(self):
        mark = os.getpid() % 10000
        self.names = [f"pg{mark}a", f"pg{mark}b"]
        self.devices = [f"pg{mark}va", f"pg{mark}vb"]
        try:
            for index, (name, device) in enumerate(zip(self.names, self.devices), start=1):
                ip("netns", "add", name)
                ip("link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", name)
                ip("link", "set", device, "up")
                ip("-n", name, "addr", "add", f"10.99.0.{index}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
        except BaseException:
            self.close()
            raise

    def ping(self, count=2, every_s=1):
        words = ["ip", "netns", "exec", self.names[0], "ping", "-c", str(count), "-i", str(every_s),
                 "-W", "2", "10.99.0.2"]
        return subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 0

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
        for device in self.devices:
            subprocess.run(["ip", "link", "del", device], stderr=subprocess.DEVNULL, check=False)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Run:
    """A controller with its page, and a process of switches."""

    def __init__(self, weir, folder, config):
        self.processes = []
        self.weir, self.folder = weir, folder
        self.page = free_port()
        openflow = free_port()
        log = open(os.path.join(folder, "controller.log"), "wb")
        self._start(
            [weir, "controller", "shortest-path", "--observe-links",
             "--rest", f"127.0.0.1:{self.page}", "--listen", f"tcp:127.0.0.1:{openflow}"], log)
        path = os.path.join(folder, "switch.toml")
        with open(path, "w", encoding="ascii") as file:
            file.write(f'controller = ["tcp:127.0.0.1:{openflow}"]\n')
            file.write(f'control = "{folder}/switch.ctl"\n\n{config}')
        log = open(os.path.join(folder, "switch.log"), "wb")
        self._start([weir, "switch", "--config", path], log)

    def _start(self, words, log):
        self.processes.append(subprocess.Popen(words, stdout=log, stderr=log))

    @property
    def address(self):
        return f"http://127.0.0.1:{self.page}/"

    def json(self, path):
        with urllib.request.urlopen(self.address + path, timeout=20) as reply:
            return json.load(reply)

    def ctl(self, bridge, *words):
        line = [self.weir, "ctl", "--control", f"{self.folder}/switch.ctl", "--bridge", bridge]
        return subprocess.run([*line, *words], check=True, capture_output=True, text=True).stdout

    def close(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, run):
        try:
            run()
        except (Failure, AssertionError, OSError) as error:
            self.failed += 1
            print(f"FAIL {what}: {error}", flush=True)
        else:
            self.passed += 1
            print(f"ok   {what}", flush=True)


def small(checks, browser, weir, folder, pictures):
    """Three switches in a line, a host at each end."""
    net = Net()
    run = None
    try:
        hosts = [(1, net.devices[0]), (3, net.devices[1])]
        run = Run(weir, folder, bridges(3, [(1, 2), (2, 3)], hosts))
        browser.size(*WIDTHS[0][1:])
        wait("page", lambda: _opened(browser, run.address))
        checks.check("three switches and two links show", lambda: wait(
            "map", lambda: browser.run(
                "return document.querySelectorAll('#nodes .switch').length === 3"
                " && document.querySelectorAll('#edges line:not(.to-host)').length === 2")))
        checks.check("hosts that speak show", lambda: wait(
            "hosts", lambda: net.ping() and browser.run(
                "return document.querySelectorAll('#nodes .host').length === 2")))
        checks.check(
            "links show the ports at their ends and their load", lambda: _loads(browser, net))
        checks.check(
            "a link that fails stays, in red, and comes back", lambda: _fails(browser, run))
        checks.check("a click on a switch shows its ports", lambda: _ports(browser))
        checks.check("two ports need no scroll bar", lambda: _fits(browser))
        checks.check("the flow table has what REST says", lambda: _flows(browser, run))
        checks.check("flow entries read as weir ctl prints them", lambda: _texts(browser, run))
        checks.check("a flow entry is added, and its packets count", lambda: _add(browser, net))
        checks.check("the search narrows", lambda: _search(browser))
        checks.check("a refused entry says the switch's error", lambda: _refused(browser))
        checks.check("a flow entry is deleted", lambda: _delete(browser, run))
        checks.check("a link that goes down is an event", lambda: _down(browser, net))
        checks.check("nothing is wider than the screen", lambda: _narrow(browser))
        checks.check("a page that is opened late has the last events",
                     lambda: _late(browser, run, net))
        checks.check("a switch has one name", lambda: _named(browser))
        checks.check("the page complains of nothing", lambda: _quiet(browser))
        if pictures:
            wait("hosts", lambda: net.ping() and browser.run(
                "return document.querySelectorAll('#nodes .host').length === 2"))
        _pictures(browser, pictures, "3")
    finally:
        if run:
            run.close()
        net.close()


def _opened(browser, address):
    browser.open(address)
    return browser.run("return document.title") == "Weir controller"


def _ports(browser):
    browser.run(
        "const node = [...document.querySelectorAll('#nodes .switch')]"
        ".find((one) => one.dataset.id.endsWith('2'));"
        "node.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))")
    wait("ports of switch 2", lambda: browser.run("return state.selected").endswith("2")
         and browser.run("return document.querySelectorAll('#table tbody tr').length") == 2)


def _loads(browser, net):
    texts = lambda kind: browser.run(
        f"return [...document.querySelectorAll('#edges text.{kind}')]"
        ".map((one) => one.textContent)")
    ports = sorted(texts("port"))
    assert ports == ["1", "1", "1", "2"], f"the ports of the links are {ports}"
    wait("a load", lambda: net.ping(200, 0.01) and all("b/s" in text for text in texts("load")))


def _fails(browser, run):
    failed = lambda: browser.run("return document.querySelectorAll('#edges line.failed').length")
    run.ctl("s2", "mod-port", "1", "down")
    wait("a link in red", lambda: failed() == 1)
    colour = browser.run("return getComputedStyle(document.querySelector('line.failed')).stroke")
    assert colour == "rgb(179, 38, 30)", colour
    run.ctl("s2", "mod-port", "1", "up")
    wait("the link again", lambda: failed() == 0 and browser.run(
        "return document.querySelectorAll('#edges line:not(.to-host)').length === 2"))


def _fits(browser):
    wide = browser.run("const table = document.getElementById('table');"
                       "return table.scrollWidth - table.clientWidth")
    assert wide == 0, f"the table is {wide} pixels wider than its place"


def _texts(browser, run):
    lines = [line for line in run.ctl("s2", "dump-flows").splitlines() if "n_packets=" in line]
    rules = sorted(line.rsplit(" ", 2)[-2:] for line in lines)
    rules = [
        (re.sub(r"^priority=\d+,?", "", rule) or "any", does.removeprefix("actions="))
        for rule, does in rules]
    cells = browser.run(
        "return [...document.querySelectorAll('#table tbody tr')].map((row) =>"
        " [...row.querySelectorAll('.code')].map((cell) => cell.innerText.replace(/\\s/g, '')))")
    shown = sorted(tuple(row) for row in cells)
    assert shown == sorted(rules), f"{shown} in place of {sorted(rules)}"


def _late(browser, run, net):
    wait("page", lambda: _opened(browser, run.address))
    wait("events", lambda: "switch 1 is ready" in browser.text("#events")
         and f"({net.devices[1]}) is down" in browser.text("#events"))


def _named(browser):
    wait("names", lambda: browser.run("return document.body.innerText").count("switch 2") > 0)
    shown = browser.run("return document.body.innerText.match(/\\b0{8}[0-9a-f]{8}\\b/g)")
    assert not shown, f"datapath ids {shown}"


def _tab(browser, name):
    browser.click(f"[data-tab={name}]")


def _rows(browser):
    return browser.run(
        "return [...document.querySelectorAll('#table tbody tr')].map((row) => row.innerText)")


def _flows(browser, run):
    _tab(browser, "flows")
    wait("as many rows as REST has", lambda: len(_rows(browser)) ==
         len(next(iter(run.json("stats/flow/0x2").values()))) > 0)


def _add(browser, net):
    browser.click("#add-open")
    browser.type("#add [name=priority]", "777")
    browser.type("#add [name=match]", "eth_type=0x800, ipv4_src=10.99.0.1")
    browser.type("#add [name=actions]", "OUTPUT:2")
    browser.click("#add [type=submit]")
    def counted():
        net.ping()
        cells = [row.split("\t") for row in _rows(browser) if "\t777\t" in row]
        return cells and int(cells[0][4].replace(",", "")) > 0
    wait("the entry with packets", counted)


def _search(browser):
    browser.type("#search", "10.99.0.1")
    wait("one row", lambda: len(_rows(browser)) == 1 and "777" in _rows(browser)[0])
    browser.type("#search", " ")


def _refused(browser):
    browser.click("#add-open")
    browser.type("#add [name=match]", "ipv4_src=10.99.0.1")
    browser.type("#add [name=actions]", "OUTPUT:2")
    browser.click("#add [type=submit]")
    wait("the error", lambda: "PREREQ" in browser.text("#problem").upper())
    browser.click("#add-cancel")


def _delete(browser, run):
    browser.run(
        "[...document.querySelectorAll('#table tbody tr')]"
        ".find((row) => row.innerText.includes('777')).querySelector('button').click()")
    has = lambda: any(row["priority"] == 777
                      for row in next(iter(run.json("stats/flow/0x2").values())))
    wait("the switch without the entry", lambda: not has())
    wait("the page without it", lambda: not any("\t777\t" in row for row in _rows(browser)))


def _down(browser, net):
    device = net.devices[1]
    ip("link", "set", device, "down")
    wait("event", lambda: f"({device}) is down" in browser.text("#events"))
    ip("link", "set", device, "up")
    wait("event", lambda: f"({device}) is up" in browser.text("#events"))


def _narrow(browser):
    for name, width, height in WIDTHS:
        browser.size(width, height)
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= width, f"{name}: {wide} pixels in {width}"
    browser.size(*WIDTHS[0][1:])


def _touch(browser):
    browser.size(*WIDTHS[2][1:])
    browser.run("graph.touched = false; graph.fit()")
    least = browser.run(
        "const all = [...document.querySelectorAll('#nodes .switch rect')];"
        "return Math.min(...all.map((node) => node.getBoundingClientRect().width))")
    assert least >= 5, f"a switch is {least} pixels wide"
    # A finger beside a switch means it.
    chosen = browser.run(
        "const at = document.querySelector('#nodes [data-id=\"0000000000000014\"] rect')"
        ".getBoundingClientRect();"
        "const told = {clientX: at.x + at.width / 2 + 2, clientY: at.y + at.height / 2 + 2,"
        " pointerId: 1, bubbles: true};"
        "const map = document.getElementById('map');"
        "map.setPointerCapture = () => {};"
        "map.dispatchEvent(new PointerEvent('pointerdown', told));"
        "map.dispatchEvent(new PointerEvent('pointerup', told));"
        "return state.selected")
    assert chosen == "0000000000000014", f"chosen is {chosen}"
    browser.size(*WIDTHS[0][1:])
    browser.run("graph.touched = false; graph.fit()")


def _quiet(browser):
    # The refused entry is an answer 400, which Chromium logs by itself.
    said = [line for line in browser.complaints() if "flowentry/add" not in line]
    assert not said, said


def _pictures(browser, folder, name):
    if not folder:
        return
    for scheme in ["light", "dark"]:
        browser.colours(scheme)
        browser.run("theme(arguments[0])", scheme)
        for width_name, width, height in WIDTHS:
            browser.size(width, height)
            browser.run("graph.touched = false; graph.fit()")
            browser.run("return new Promise((done) => setTimeout(done, 1200))")
            browser.picture(os.path.join(folder, f"page-{name}-{width_name}-{scheme}.png"))
    browser.size(*WIDTHS[0][1:])


def large(checks, browser, weir, folder, pictures):
    """300 switches: 15 rows of 20."""
    rows, columns = 15, 20
    number = lambda row, column: row * columns + column + 1
    links = [(number(row, column), number(row, column + 1))
             for row in range(rows) for column in range(columns - 1)]
    links += [(number(row, 0), number(row + 1, 0)) for row in range(rows - 1)]
    run = Run(weir, folder, bridges(rows * columns, links))
    try:
        wait("page", lambda: _opened(browser, run.address))
        # The page before said that its controller had ended.
        browser.complaints()
        checks.check("300 switches and their links show", lambda: wait(
            "map", lambda: browser.run(
                "return document.querySelectorAll('#nodes .switch').length") == rows * columns
            # On a busy machine a link's probe may be late, and the link is gone for a moment.
            and browser.run("return document.querySelectorAll('#edges line').length")
            >= 0.9 * len(links), 120))
        def found():
            browser.type("#find", "switch 12c")
            browser.type("#find", "12c")
            return browser.run("return document.querySelectorAll('#nodes .found').length") == 1
        checks.check("a switch of 300 is found by its name", lambda: wait("switch 12c", found))
        checks.check("on a telephone 300 switches can be seen and touched", lambda: _touch(browser))
        checks.check("the page complains of nothing", lambda: _quiet(browser))
        _pictures(browser, pictures, "300")
    finally:
        run.close()


def main():
    weir = os.path.abspath(sys.argv[1])
    pictures = sys.argv[2] if len(sys.argv) > 2 else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    checks = Checks()
    browser = Browser()
    try:
        for scene in [small, large]:
            with tempfile.TemporaryDirectory(prefix="weir-page.") as folder:
                try:
                    scene(checks, browser, weir, folder, pictures)
                except (Failure, OSError, subprocess.SubprocessError) as error:
                    checks.failed += 1
                    print(f"FAIL {scene.__name__}: {error}", flush=True)
    finally:
        browser.close()
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
