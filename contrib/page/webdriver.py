"""A browser by the W3C WebDriver protocol: headless Chromium behind its own chromedriver.

Only what a test of a page needs; chromedriver listens on loopback and ends with `close`.
"""

import base64
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Failure(Exception):
    """The driver refuses a command, or a condition does not come true."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    """One headless window."""

    def __init__(self, dark=False):
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.session = None
        try:
            wait("chromedriver to answer", lambda: self._ready())
            options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
            if dark:
                options.append("--force-dark-mode")
            always = {
                "browserName": "chrome",
                "goog:chromeOptions": {"args": options},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": always}})
            self.session = made["sessionId"]
        except BaseException:
            self.close()
            raise

    def _ready(self):
        try:
            return self._call("GET", "/status")["ready"]
        except OSError:
            return False

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise Failure(f"{value['error']}: {value['message']}") from None

    def _on(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def open(self, address):
        self._on("POST", "/url", {"url": address})

    def size(self, width, height):
        """Sets the page's own width and height, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        command = {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}
        self._on("POST", "/goog/cdp/execute", command)

    def colours(self, scheme):
        """`light` or `dark`, as the system would ask for it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self._on("POST", "/goog/cdp/execute", command)

    def run(self, script, *arguments):
        """What JavaScript's `return` gives."""
        return self._on("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, css):
        found = self._on("POST", "/element", {"using": "css selector", "value": css})
        return found[ELEMENT]

    def click(self, css):
        self._on("POST", f"/element/{self.find(css)}/click", {})

    def type(self, css, text):
        self._on("POST", f"/element/{self.find(css)}/clear", {})
        self._on("POST", f"/element/{self.find(css)}/value", {"text": text})

    def text(self, css):
        return self.run("return document.querySelector(arguments[0]).innerText", css)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._on("GET", "/screenshot")))

    def complaints(self):
        """Errors of the page's console since it was asked last."""
        entries = self._on("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def close(self):
        if self.session:
            try:
                self._on("DELETE", "")
            except (Failure, OSError):
                pass
            self.session = None
        self.driver.terminate()
        self.driver.wait(timeout=30)


def wait(what, condition, seconds=60):
    """Asks until the condition gives something; a failing condition is asked again."""
    deadline = time.monotonic() + seconds
    last = None
    while time.monotonic() < deadline:
        try:
            value = condition()
            if value:
                return value
        except Failure as error:
            last = error
        time.sleep(0.1)
    raise Failure(f"no {what} within {seconds} s" + (f" ({last})" if last else ""))
