"""``ryu.app.wsgi``: routes of apps, on a web server of this process.

Requests, responses and routes are WebOb's and Routes', as in Ryu. Each request has a thread of its
own, of which there is a bounded number; a handler that raises costs its own request.
"""

from __future__ import annotations

import inspect
import logging
from types import MethodType
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, TypeVar

from weir.ryu import flags  # noqa: F401
from weir.ryu.app.web_server import WebServer
from weir.ryu.app.web_socket import WebSocket, accept
from weir.ryu.cfg import CONF
from weir.ryu.lib.scheduler import SCHEDULER

try:
    import webob
    import webob.exc
    from routes import Mapper
    from routes.util import URLGenerator
except ModuleNotFoundError as missing:
    text = f"ryu.app.wsgi needs {missing.name}: `pip install webob routes`"
    raise ModuleNotFoundError(text, name=missing.name) from None

LOG = logging.getLogger("ryu.app.wsgi")

#: Where the server listens without ``--wsapi-host``: other machines must be let in on purpose.
DEFAULT_WSGI_HOST = "127.0.0.1"
DEFAULT_WSGI_PORT = 8080
HEX_PATTERN = r"0x[0-9a-z]+"
DIGIT_PATTERN = r"[1-9][0-9]*"

Method = TypeVar("Method", bound=Callable[..., Any])

#: By ``pip install tinyrpc`` alone.
_RPC = (
    "rpc_public",
    "WebSocketDisconnectedError",
    "WebSocketRPCServer",
    "WebSocketRPCClient",
)


def __getattr__(name: str) -> Any:
    if name in _RPC:
        from weir.ryu.app import wsgi_rpc

        return getattr(wsgi_rpc, name)
    raise AttributeError(f"module 'ryu.app.wsgi' has no {name}")


def route(
    name: str,
    path: str,
    methods: Optional[Sequence[str]] = None,
    requirements: Optional[Dict[str, str]] = None,
) -> Callable[[Method], Method]:
    """The method of a controller answers requests of this path."""

    def decorate(method: Method) -> Method:
        info = {"name": name, "path": path, "methods": methods, "requirements": requirements}
        setattr(method, "routing_info", info)  # noqa: B010
        return method

    return decorate


class Request(webob.Request):  # type: ignore[misc]
    """A request in UTF-8."""

    DEFAULT_CHARSET = "UTF-8"

    def __init__(self, environ: Any, charset: str = DEFAULT_CHARSET, *args: Any, **more: Any):
        super().__init__(environ, charset, *args, **more)


class Response(webob.Response):  # type: ignore[misc]
    """An answer in UTF-8."""

    DEFAULT_CHARSET = "UTF-8"

    def __init__(self, charset: str = DEFAULT_CHARSET, *args: Any, **more: Any):
        super().__init__(*args, charset=charset, **more)


class _Handled:
    """The connection was a WebSocket's, and is over."""

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        return []


def websocket(name: str, path: str) -> Callable[[Method], Method]:
    """The method of a controller serves WebSockets of this path, until it returns."""

    def decorate(method: Method) -> Any:
        def serve(self: Any, req: Any, **_others: Any) -> Any:
            socket = accept(req.environ)
            if socket is None:
                return Response(status=400, body="no handshake of a WebSocket (RFC 6455)")
            # No answer of HTTP follows, whatever the method raises.
            req.environ["weir.is_over"] = True
            manager = self.parent.websocketmanager
            manager.add_connection(socket)
            try:
                MethodType(method, self)(socket)
            finally:
                manager.delete_connection(socket)
                socket.close()
            return _Handled()

        return route(name, path)(serve)

    return decorate


class ControllerBase:
    """The base of controllers; one is made for each request."""

    special_vars = ["action", "controller"]
    parent: Any = None

    def __init__(self, req: Any, link: Any, data: Any, **config: Any) -> None:
        self.req, self.link, self.data = req, link, data
        self.parent = None
        for name, value in config.items():
            setattr(self, name, value)

    def __call__(self, req: Any) -> Any:
        action = self.req.urlvars.get("action", "index")
        if hasattr(self, "__before__"):
            self.__before__()
        others = {k: v for k, v in self.req.urlvars.items() if k not in self.special_vars}
        return getattr(self, action)(req, **others)


class WebSocketManager:
    """The WebSockets that are open."""

    def __init__(self) -> None:
        self._connections: List[WebSocket] = []

    def add_connection(self, ws: WebSocket) -> None:
        """One more."""
        self._connections.append(ws)

    def delete_connection(self, ws: WebSocket) -> None:
        """One less."""
        if ws in self._connections:
            self._connections.remove(ws)

    def broadcast(self, msg: Any) -> None:
        """Sends a message to all; those that are gone leave the list."""
        for connection in list(self._connections):
            try:
                connection.send(msg)
            except OSError:
                self.delete_connection(connection)


class WSGIApplication:
    """The routes of all apps; apps have one as a context."""

    def __init__(self, **config: Any) -> None:
        self.config = config
        self.mapper = Mapper()
        self.registory: Dict[str, Any] = {}
        self._wsmanager = WebSocketManager()

    @property
    def websocketmanager(self) -> WebSocketManager:
        """The WebSockets that are open."""
        return self._wsmanager

    def register(self, controller: Any, data: Any = None) -> None:
        """Puts down the routes of a class of controllers."""
        for name, method in inspect.getmembers(controller, callable):
            info = getattr(method, "routing_info", None)
            if info is None:
                continue
            self.mapper.connect(
                info["name"],
                info["path"],
                controller=controller,
                action=name,
                requirements=info.get("requirements") or {},
                conditions={"method": info["methods"]} if info.get("methods") else {},
            )
        if data:
            self.registory[controller.__name__] = data

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        req = Request(environ)
        req.start_response = start_response
        try:
            with SCHEDULER.entered():
                SCHEDULER.current().describe = lambda: f"ryu.app.wsgi: {req.method} {req.path}"
                answer = self._answer(req)
        except webob.exc.HTTPException as refusal:
            answer = refusal
        if answer is None:
            answer = Response()
        elif isinstance(answer, (bytes, str)):
            answer = Response(body=answer)
        answered: Iterable[bytes] = answer(req.environ, start_response)
        return answered

    def _answer(self, req: Any) -> Any:
        match = self.mapper.match(environ=req.environ)
        if not match:
            return webob.exc.HTTPNotFound()
        req.urlvars = match
        cls = match["controller"]
        link = URLGenerator(self.mapper, req.environ)
        controller = cls(req, link, self.registory.get(cls.__name__), **self.config)
        controller.parent = self
        return controller(req)


class WSGIServer(WebServer):
    """The server of an application."""

    def __init__(self, application: Any, **_config: Any) -> None:
        address = (CONF.wsapi_host or DEFAULT_WSGI_HOST, CONF.wsapi_port)
        super().__init__(address, application)

    def __call__(self) -> None:
        self.serve_forever()


def start_service(app_mgr: Any) -> Optional[WSGIServer]:
    """The server that apps need, which listens already; none where no app has routes.

    Raises OSError where the address is in use.
    """
    for instance in app_mgr.contexts.values():
        if isinstance(instance, WSGIApplication):
            return WSGIServer(instance)
    return None
