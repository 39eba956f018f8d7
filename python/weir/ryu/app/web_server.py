"""An HTTP server for WSGI applications, with bounds: connections, time, and bytes of a request."""

from __future__ import annotations

import io
import logging
import socket
import socketserver
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler
from typing import Any, Callable, Iterable, List, Optional, Tuple
from urllib.parse import unquote

LOG = logging.getLogger("ryu.app.wsgi")

#: Connections at a time; further ones wait in the kernel's queue.
_CONNECTIONS_MAX = 256
#: Bytes of a request's body.
_BODY_MAX = 16 << 20
#: Seconds of silence until a connection is closed.
_SILENCE_S = 60

Application = Callable[[Any, Any], Iterable[bytes]]


class WebServer(socketserver.ThreadingTCPServer):
    """Serves an application; it listens once it is made."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: Tuple[str, int], application: Application) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.application = application
        self._places = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        super().__init__(address, _Connection)
        host, port = self.server_address[:2]
        LOG.info("wsgi starting up on http://%s:%s", host, port)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._places.acquire()
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The system gives no thread.
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.debug("%s: the connection ended early", client_address[0], exc_info=True)


class _Connection(BaseHTTPRequestHandler):
    server: WebServer
    protocol_version = "HTTP/1.1"
    timeout = _SILENCE_S

    def __getattr__(self, name: str) -> Any:
        # Each method of HTTP is the application's affair.
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:
        LOG.debug("%s: %s", self.client_address[0], format % args)

    def _serve(self) -> None:
        began = time.monotonic()
        body = self._body()
        if body is None:
            return
        answer = _Answer()
        environ = self._environ(body)
        try:
            result = self.server.application(environ, answer.start)
            try:
                content = b"".join(result)
            finally:
                close = getattr(result, "close", None)
                if close is not None:
                    close()
        except BaseException:  # noqa: BLE001
            # A SystemExit too is the request's own end, and is logged.
            LOG.error("%s", traceback.format_exc())
            answer, content = _Answer(), b"Internal Server Error"
            answer.start("500 Internal Server Error", [("Content-Type", "text/plain")])
        if environ.get("weir.is_over"):
            self.close_connection = True
            return
        self._send(answer, content)
        LOG.info(
            '%s - - [%s] "%s" %s %d %f',
            self.client_address[0], self.log_date_time_string(), self.requestline,
            answer.status[:3], len(content), time.monotonic() - began,
        )  # fmt: skip

    def _body(self) -> Optional[bytes]:
        """The request's body; none when it was refused."""
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        refusal = None
        if self.headers.get("Transfer-Encoding"):
            refusal = 411
        elif length < 0:
            refusal = 400
        elif length > _BODY_MAX:
            refusal = 413
        if refusal is not None:
            self.close_connection = True
            self.send_error(refusal)
            return None
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return None
        return body

    def _environ(self, body: bytes) -> Any:
        path, _, query = self.path.partition("?")
        host, port = self.server.server_address[:2]
        environ = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path, "latin-1"),
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "SERVER_NAME": str(host),
            "SERVER_PORT": str(port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_PORT": str(self.client_address[1]),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "weir.connection": (self.connection, self.rfile),
        }
        for name, value in self.headers.items():
            key = "HTTP_" + name.upper().replace("-", "_")
            if key not in ("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"):
                environ[key] = f"{environ[key]},{value}" if key in environ else value
        return environ

    def _send(self, answer: "_Answer", content: bytes) -> None:
        code, _, reason = answer.status.partition(" ")
        self.send_response_only(int(code), reason)
        names = {name.lower() for name, _ in answer.headers}
        for name, value in answer.headers:
            self.send_header(name, value)
        if "content-length" not in names and code not in ("204", "304"):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


class _Answer:
    """What an application says before its content."""

    def __init__(self) -> None:
        self.status = "200 OK"
        self.headers: List[Tuple[str, str]] = []

    def start(self, status: str, headers: Any, exc_info: Any = None) -> Callable[[bytes], None]:
        self.status, self.headers = status, list(headers)

        def write(_data: bytes) -> None:
            raise NotImplementedError("WSGI's write(): return the content instead")

        return write
