"""REST routes of apps: methods that answer requests which come to ``--rest``.

::

    class Status(weir.App):
        @weir.route("GET", "/status/{dpid}")
        def status(self, request, dpid):
            sw = self.controller.switch(int(dpid))
            if sw is None:
                raise weir.HttpError(404, f"no switch {dpid} is connected")
            return {"ports": len(sw.ports)}

They run on the thread of the apps, among the other handlers, and may be ``async def``. The server,
its token and its bounds are those of ``--rest``.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar
from urllib.parse import parse_qsl, unquote

from weir.app import App
from weir.errors import HttpError, WeirError

METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")

#: A part of a path: a word, or a name in braces.
_PART = re.compile(r"[\w.~-]+|\{[A-Za-z_]\w*\}")

Method = TypeVar("Method", bound=Callable[..., Any])


class Request:
    """A request for a route of an app."""

    def __init__(self, method: str, path: str, query: str = "", data: bytes = b"") -> None:
        #: ``GET`` and so on.
        self.method: str = method
        #: The path without the query.
        self.path: str = path
        #: What is behind the question mark, each name with its last value.
        self.query: Dict[str, str] = dict(parse_qsl(query, keep_blank_values=True))
        #: The body.
        self.data: bytes = data

    def json(self) -> Any:
        """The body as a JSON value; ``None`` where it is empty.

        Raises :class:`weir.HttpError`, which answers 400, where it is none.
        """
        try:
            return json.loads(self.data) if self.data else None
        except ValueError as error:
            raise HttpError(400, f"the body is no JSON: {error}") from None

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path})"


class Response:
    """The answer to a request, where it is not a JSON value with status 200."""

    def __init__(
        self, body: Any = None, status: int = 200, content_type: Optional[str] = None
    ) -> None:
        if not 200 <= status <= 599:
            raise ValueError(f"a status of HTTP from 200 to 599, not {status}")
        #: The status.
        self.status: int = status
        is_json = not isinstance(body, (bytes, str)) or content_type is None
        #: The bytes of the body: those given, a text in UTF-8, or the JSON of any other value.
        self.data: bytes
        if isinstance(body, bytes):
            self.data, default = body, "application/octet-stream"
        elif isinstance(body, str) and not is_json:
            self.data, default = body.encode(), "text/plain; charset=utf-8"
        else:
            self.data = b"" if body is None else json.dumps(body).encode()
            default = "application/json"
        #: The type of the body.
        self.content_type: str = content_type or default

    @classmethod
    def of(cls, value: Any) -> "Response":
        """The answer that a handler has given back, or the JSON of what it has."""
        return value if isinstance(value, Response) else cls(value)

    @classmethod
    def of_error(cls, status: int, text: str) -> "Response":
        """The answer to a request that is not done, in the form of all of Weir's."""
        return cls({"error": text}, status)

    def json(self) -> Any:
        """The body as a JSON value."""
        return json.loads(self.data) if self.data else None

    def __repr__(self) -> str:
        return f"Response({self.status}, {self.data!r})"


def route(method: str, path: str) -> Callable[[Method], Method]:
    """The method of an app answers requests of this path; a part ``{name}`` of it, which is any
    word, comes as an argument of that name.

    It gets a :class:`Request`, and gives back a JSON value, ``None``, bytes, or a
    :class:`Response`. A :class:`weir.HttpError` that it raises is the answer too.
    """
    parts = path.split("/")[1:] if path.startswith("/") else [""]
    if method not in METHODS:
        raise ValueError(f"weir.route({method!r}, ..): a method is one of {', '.join(METHODS)}")
    if not all(_PART.fullmatch(part) for part in parts):
        what = "a path has words and names in braces, such as /status/{dpid}"
        raise ValueError(f"weir.route(.., {path!r}): {what}")

    def decorate(function: Method) -> Method:
        routes = function.__dict__.setdefault("routes", [])
        routes.append((method, path))
        return function

    return decorate


class Routes:
    """The routes of all apps.

    Raises :class:`weir.WeirError` for two of the same requests, and for a handler that does not
    take the parts of its path.
    """

    def __init__(self, apps: Sequence[App]) -> None:
        self._handlers: Dict[Tuple[str, Tuple[str, ...]], Tuple[str, Callable[..., Any]]] = {}
        for app in apps:
            for name, function in inspect.getmembers(type(app), callable):
                for method, path in getattr(function, "routes", ()):
                    self._add(method, path, getattr(app, name))
        # A word is nearer to a path than a name that any word fits.
        by_names = sorted(self._handlers.items(), key=lambda item: item[0][1].count("{}"))
        self._handlers = dict(by_names)

    def _add(self, method: str, path: str, handler: Callable[..., Any]) -> None:
        # The names of parts make no difference to what it is asked for.
        shape = tuple("{}" if part[:1] == "{" else part for part in path.split("/")[1:])
        names = [part[1:-1] for part in path.split("/") if part[:1] == "{"]
        try:
            inspect.signature(handler).bind(None, **dict.fromkeys(names))
        except TypeError as error:
            takes = ", ".join(["self", "request", *names])
            name = handler.__qualname__
            raise WeirError(f"{name}: {method} {path} needs ({takes}): {error}") from None
        before = self._handlers.setdefault((method, shape), (path, handler))
        if before != (path, handler):
            other = before[1].__qualname__
            raise WeirError(f"{method} {path} is that of {other} and of {handler.__qualname__}")

    def rows(self) -> List[Tuple[str, str, str]]:
        """Method, path, and the first line of the handler's documentation."""
        return [
            (method, path, (inspect.getdoc(handler) or handler.__qualname__).split("\n")[0])
            for (method, _), (path, handler) in self._handlers.items()
        ]

    def find(self, request: Request) -> Tuple[Callable[..., Any], Dict[str, str]]:
        """The handler that answers a request, and the parts of the path for it.

        Raises :class:`weir.HttpError` where there is none.
        """
        words = request.path.split("/")[1:]
        found: Dict[str, Tuple[Callable[..., Any], Dict[str, str]]] = {}
        for (method, shape), (path, handler) in self._handlers.items():
            if len(shape) != len(words):
                continue
            if all(part in ("{}", word) for part, word in zip(shape, words)):
                pairs = zip(path.split("/")[1:], words)
                parts = {part[1:-1]: unquote(word) for part, word in pairs if part[:1] == "{"}
                found.setdefault(method, (handler, parts))
        if request.method in found:
            return found[request.method]
        if found:
            raise HttpError(405, f"the path has the methods {', '.join(sorted(found))} only")
        raise HttpError(404, "there is no such path; see /openapi.json")

