"""REST routes of apps: in a test's network, and over HTTP beside REST."""

from __future__ import annotations

import asyncio
import json
import tempfile
import textwrap
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Optional, Tuple
from unittest import mock

from fake_switch import FakeSwitch, Process, controller

import weir
from weir.errors import WeirError
from weir.testing import Network


class Shop(weir.App):
    """Routes of all kinds."""

    @weir.route("GET", "/shop/{item}")
    @weir.route("POST", "/shop/{item}/{count}")
    def item(self, request: weir.Request, item: str, count: str = "1") -> Any:
        """An item

        And more.
        """
        return {"item": item, "count": int(count), "query": request.query, "body": request.json()}

    @weir.route("GET", "/shop/all")
    def all(self, request: weir.Request) -> Any:
        return [request.method, request.path]

    @weir.route("DELETE", "/shop")
    def nothing(self, request: weir.Request) -> None:
        pass

    @weir.route("PUT", "/shop/raw")
    def raw(self, request: weir.Request) -> Any:
        return request.data[::-1]

    @weir.route("PATCH", "/shop")
    def page(self, request: weir.Request) -> weir.Response:
        return weir.Response("<p>", status=202, content_type="text/html")

    @weir.route("GET", "/wait/{seconds}")
    async def wait(self, request: weir.Request, seconds: str) -> str:
        await asyncio.sleep(float(seconds))
        if seconds == "0":
            raise weir.HttpError(409, "no time")
        if seconds == "0.5":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await asyncio.sleep(0)
        return "waited"

    @weir.route("GET", "/fault")
    def fault(self, request: weir.Request) -> Any:
        return object()


#: Method, path and body of a request; status and JSON of the answer.
REQUESTS = [
    ("GET", "/shop/a%20b?x=1&y=", None, 200,
     {"item": "a b", "count": 1, "query": {"x": "1", "y": ""}, "body": None}),
    ("POST", "/shop/pen/3", [1], 200, {"item": "pen", "count": 3, "query": {}, "body": [1]}),
    ("GET", "/shop/all", None, 200, ["GET", "/shop/all"]),
    ("DELETE", "/shop", None, 200, None),
    ("GET", "/wait/60", None, 200, "waited"),
    ("GET", "/wait/0", None, 409, {"error": "no time"}),
    ("GET", "/wait/0.5", None, 503, {"error": "Shop.wait was cancelled"}),
    ("POST", "/shop/pen/3", b"{", 400, None),
    ("POST", "/shop/pen/x", None, 500, {"error": "Shop.item raised ValueError; see the log"}),
    ("GET", "/fault", None, 500, {"error": "Shop.fault raised TypeError; see the log"}),
    ("PUT", "/shop/pen", None, 405, {"error": "the path has the methods GET only"}),
    ("GET", "/nothing", None, 404, {"error": "there is no such path; see /openapi.json"}),
]  # fmt: skip


def app(method: str, path: str, takes: str) -> Any:
    """An app with one route."""
    scope: Any = {"weir": weir}
    exec(
        f"class App(weir.App):\n    @weir.route({method!r}, {path!r})\n    def get({takes}): pass",
        scope,
    )
    return scope["App"]


#: Routes that are refused: method, path, parameters of the handler, and the words.
REFUSED = [
    ("FETCH", "/a", "self, request", "a method is one of DELETE, GET, PATCH, POST, PUT"),
    ("GET", "a", "self, request", "a path has words and names in braces, such as /status/{dpid}"),
    ("GET", "/a/{b", "self, request", "a path has words and names in braces"),
    ("GET", "/a/{b}", "self, request", "App.get: GET /a/{b} needs (self, request, b)"),
    ("GET", "/a", "self", "App.get: GET /a needs (self, request)"),
]


class RoutesTest(unittest.TestCase):
    def test_each_request_has_its_answer(self) -> None:
        for method, path, body, status, answer in REQUESTS:
            with self.subTest(f"{method} {path}"):
                network = Network(Shop, keep_going=True)
                network.dispatcher.failures.note = lambda *_: None  # type: ignore[method-assign]
                response = network.request(method, path, body)
                self.assertEqual(response.status, status)
                if answer is not None or status == 200:
                    self.assertEqual(response.json(), answer)
        self.assertEqual(Network(Shop).request("PUT", "/shop/raw", b"abc").data, b"cba")
        page = Network(Shop).request("PATCH", "/shop")
        self.assertEqual((page.status, page.data, page.content_type), (202, b"<p>", "text/html"))

    def test_a_coroutine_that_has_no_room_is_answered_at_once(self) -> None:
        network = Network(Shop, keep_going=True)
        with mock.patch("weir.dispatch.TASKS_MAX", 0), self.assertLogs("weir", "ERROR") as logged:
            response = network.request("GET", "/wait/60")
        self.assertEqual(response.status, 503)
        words = "0 coroutines of the apps are under way; try again"
        self.assertEqual(response.json(), {"error": words})
        self.assertIn("Shop.wait: 0 are under way; 1 events dropped", logged.output[0])

    def test_a_route_that_could_not_be_served_is_refused(self) -> None:
        for method, path, takes, words in REFUSED:
            with self.subTest(path + takes):
                with self.assertRaises((ValueError, WeirError)) as refused:
                    Network(app(method, path, takes))
                self.assertIn(words, str(refused.exception))
        first = app("GET", "/a/{b}", "self, request, b")
        with self.assertRaisesRegex(WeirError, "GET /a/{c} is that of App.get and of App.get"):
            Network(first, app("GET", "/a/{c}", "self, request, c"))

    def test_an_exception_of_a_handler_is_raised_in_a_test(self) -> None:
        with self.assertRaises(TypeError):
            Network(Shop).request("GET", "/fault")


SERVED = """
    import weir

    class Status(weir.App):
        @weir.route("GET", "/status/{dpid}")
        def status(self, request, dpid):
            \"\"\"The ports of a switch\"\"\"
            return {"ports": sorted(self.controller.switch(int(dpid)).ports), "at": request.path}

        @weir.route("POST", "/status")
        async def fault(self, request):
            raise weir.HttpError(418, request.json()["word"])
"""


class ServedTest(unittest.TestCase):
    def ask(
        self, running: Process, method: str, path: str, body: Optional[bytes] = None
    ) -> Tuple[int, Any]:
        address = running.line(r"REST on (http://\S+)")[1]
        request = urllib.request.Request(address + path, body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def test_routes_are_served_beside_those_of_weir(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "app.py"
            path.write_text(textwrap.dedent(SERVED))
            with controller(path, "--rest", "127.0.0.1:0") as running:
                with FakeSwitch(running.port(), dpid=5):
                    end = time.monotonic() + 60
                    while self.ask(running, "GET", "/stats/switches") != (200, [5]):
                        self.assertLess(time.monotonic(), end)
                    answer = {"ports": [1, 2, 3], "at": "/status/5"}
                    while self.ask(running, "GET", "/status/5") != (200, answer):
                        self.assertLess(time.monotonic(), end)
                    answered = self.ask(running, "POST", "/status", b'{"word": "tea"}')
                    self.assertEqual(answered, (418, {"error": "tea"}))
                    self.assertEqual(self.ask(running, "GET", "/status")[0], 405)
                    self.assertEqual(self.ask(running, "GET", "/statu")[0], 404)
                    paths = self.ask(running, "GET", "/openapi.json")[1]["paths"]
                    summary = paths["/status/{dpid}"]["get"]["summary"]
                    self.assertEqual(summary, "The ports of a switch")
                self.assertEqual(running.end(), 0, running.lines)

    def test_a_path_of_weir_is_refused_and_a_missing_option_is_logged(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "app.py"
            path.write_text(textwrap.dedent(SERVED))
            with controller(path) as running:
                running.port()
                running.line("the routes of the apps are served with --rest HOST:PORT only")
            path.write_text(textwrap.dedent(SERVED).replace("/status/{dpid}", "/stats/{dpid}"))
            with controller(path, "--rest", "127.0.0.1:0") as running:
                self.assertEqual(running.process.wait(60), 1)
                running.line("GET /stats/{dpid}: the path is that of Weir's own /stats/switches")


if __name__ == "__main__":
    unittest.main()
