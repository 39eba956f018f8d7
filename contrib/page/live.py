"""Drives the page of `weir lab serve` in headless Chromium, while a campaign is begun, killed, gone
on with and ended behind it.

The campaign measures Weir on in-memory ports, so that it needs no root. `results.py` runs this.
"""

import json
import os
import re
import subprocess
import tempfile
import urllib.request

from check import WIDTHS
from webdriver import wait

SCENARIO = """
id = "probes"
title = "Round trips through the hub"
question = "How long is the way through switch and controller and back?"
methods = ["probe"]
starts = 200
[settings]
forwarding = "controller"
version = "1.0"
[[axis]]
name = "rate"
unit = "packets/s"
[[axis.value]]
name = "100"
set = { rate_pps = 100.0, duration_s = 0.4 }
[[axis.value]]
name = "200"
set = { rate_pps = 200.0, duration_s = 0.4 }
[[axis.value]]
name = "400"
set = { rate_pps = 400.0, duration_s = 0.4 }
[[plot]]
kind = "sweep"
metric = "probe_p50_us"
x = "rate"
"""

WORD = "return document.getElementById('live-word').textContent"
RENEWALS = "return window.weirLive ? window.weirLive.renewals : -1"


class Campaign:
    """A folder, a server that shows it, and the runs that write into it."""

    def __init__(self, weir, folder):
        self.weir, self.folder = weir, os.path.join(folder, "out")
        self.scenario = os.path.join(folder, "probes.toml")
        with open(self.scenario, "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        self.run = None
        self.server = subprocess.Popen(
            [weir, "lab", "serve", self.folder, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, text=True)
        line = self.server.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:\d+/", line)
        if not found:
            raise OSError(f"weir lab serve says {line!r}")
        self.address = found.group()

    def start(self, *more):
        self.run = subprocess.Popen(
            [self.weir, "lab", "run", self.scenario, "--testbed", "memory", "--quiet",
             "--out", self.folder, *more],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def status(self):
        with urllib.request.urlopen(self.address + "status", timeout=30) as reply:
            return json.load(reply)

    def close(self):
        for one in [self.run, self.server]:
            if one and one.poll() is None:
                one.kill()
            if one:
                one.wait(timeout=60)
        self.server.stdout.close()
        subprocess.run([self.weir, "lab", "clean"], stdout=subprocess.DEVNULL, check=False)


def _word(browser, word):
    wait(f"the word {word!r}", lambda: browser.run(WORD) == word)


def _narrow(browser):
    wide, screen = browser.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= screen, f"{wide} pixels in {screen}"


def _own(browser, address):
    """The page asks nobody but its server, and complains of nothing."""
    asked = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    foreign = [name for name in asked if not name.startswith(address)]
    assert not foreign, f"the page asks {foreign}"
    said = browser.complaints()
    assert not said, said


def _grows(browser, campaign):
    """Figures come without the page being loaded anew, and what is open stays open."""
    wait("figures", lambda: browser.run(
        "return document.querySelectorAll('table.rows tbody tr').length > 0"))
    browser.run(
        "window.isSamePage = true;"
        "const one = [...document.querySelectorAll('#conditions details')].pop();"
        "one.open = true")
    before = browser.run(RENEWALS)
    trials = campaign.status()["trials"]
    wait("two more renewals", lambda: browser.run(RENEWALS) >= before + 2)
    same, is_open = browser.run(
        "const folds = [...document.querySelectorAll('#conditions details')];"
        "return [window.isSamePage, folds.pop().open]")
    assert same and is_open, f"same page: {same}, still open: {is_open}"
    assert campaign.status()["trials"] > trials
    shown = browser.run("return document.getElementById('live-trials').textContent")
    assert re.match(r"\d", shown), shown


def _looks(checks, browser, campaign, state, pictures):
    for scheme in ["light", "dark"]:
        browser.colours(scheme)
        for name, width, height in WIDTHS:
            browser.size(width, height)
            at = f"live, {state}, {name}, {scheme}"
            browser.run("scrollTo(0, 0)")
            checks.check(f"{at}: no wider than the screen", lambda: _narrow(browser))
            if pictures:
                browser.run("return new Promise((done) => setTimeout(done, 300))")
                browser.picture(os.path.join(pictures, f"live-{state}-{name}-{scheme}.png"))
    browser.colours("light")
    browser.size(*WIDTHS[0][1:])
    checks.check(f"live, {state}: nothing foreign is asked",
                 lambda: _own(browser, campaign.address))


def scene(checks, browser, weir, pictures):
    with tempfile.TemporaryDirectory(prefix="weir-live.") as folder:
        campaign = Campaign(weir, folder)
        try:
            browser.size(*WIDTHS[0][1:])
            browser.open(campaign.address)
            checks.check("live: it waits for a campaign", lambda: _word(browser, "waiting"))
            _looks(checks, browser, campaign, "waiting", pictures)
            campaign.start()
            checks.check("live: it measures", lambda: _word(browser, "measuring"))
            checks.check("live: the report grows", lambda: _grows(browser, campaign))
            _looks(checks, browser, campaign, "measuring", pictures)
            campaign.run.kill()
            campaign.run.wait(timeout=60)
            checks.check("live: it is cut off", lambda: _word(browser, "cut off"))
            _looks(checks, browser, campaign, "cut-off", pictures)
            campaign.start("--resume", "--starts", "3")
            checks.check("live: it is gone on with and ends", lambda: _word(browser, "through"))
            checks.check("live: the parts are told", lambda: wait(
                "the parts", lambda: "2 parts" in browser.text("#conditions")))
            _looks(checks, browser, campaign, "through", pictures)
            campaign.server.kill()
            campaign.server.wait(timeout=60)
            checks.check("live: a page without its server says so", lambda: wait(
                "the words", lambda: "does not answer" in browser.text("#live")))
        finally:
            campaign.close()
