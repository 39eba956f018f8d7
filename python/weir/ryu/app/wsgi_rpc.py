"""JSON-RPC over WebSockets, by tinyrpc as in Ryu."""

from __future__ import annotations

from typing import Any, Tuple

from weir.ryu.lib import hub

try:
    from tinyrpc.client import RPCClient
    from tinyrpc.dispatch import RPCDispatcher
    from tinyrpc.dispatch import public as rpc_public
    from tinyrpc.protocols.jsonrpc import JSONRPCProtocol
    from tinyrpc.server import RPCServer
    from tinyrpc.transports import ClientTransport, ServerTransport
except ModuleNotFoundError as missing:
    text = f"JSON-RPC of ryu.app.wsgi needs {missing.name}: `pip install tinyrpc`"
    raise ModuleNotFoundError(text, name=missing.name) from None

__all__ = ["rpc_public", "WebSocketRPCServer", "WebSocketRPCClient"]


class WebSocketDisconnectedError(Exception):
    """The connection is over."""


def _text(message: Any) -> str:
    return message.decode() if isinstance(message, bytes) else str(message)


class _ServerTransport(ServerTransport):  # type: ignore[misc]
    def __init__(self, ws: Any) -> None:
        self.ws = ws

    def receive_message(self) -> Tuple[Any, bytes]:
        message = self.ws.wait()
        if message is None:
            raise WebSocketDisconnectedError
        return None, message if isinstance(message, bytes) else message.encode()

    def send_reply(self, context: Any, reply: Any) -> None:
        self.ws.send(_text(reply))


class WebSocketRPCServer(RPCServer):  # type: ignore[misc]
    """Answers the calls that come by a WebSocket by an object's public methods."""

    def __init__(self, ws: Any, rpc_callback: Any) -> None:
        dispatcher = RPCDispatcher()
        dispatcher.register_instance(rpc_callback)
        super().__init__(_ServerTransport(ws), JSONRPCProtocol(), dispatcher)

    def serve_forever(self) -> None:
        try:
            super().serve_forever()
        except WebSocketDisconnectedError:
            return

    def _spawn(self, func: Any, *args: Any, **kwargs: Any) -> None:
        hub.spawn(func, *args, **kwargs)


class _ClientTransport(ClientTransport):  # type: ignore[misc]
    def __init__(self, ws: Any, queue: Any) -> None:
        self.ws, self.queue = ws, queue

    def send_message(self, message: Any, expect_reply: bool = True) -> Any:
        self.ws.send(_text(message))
        if not expect_reply:
            return None
        reply = self.queue.get()
        if reply is None:
            raise BrokenPipeError("the WebSocket is closed")
        return reply


class WebSocketRPCClient(RPCClient):  # type: ignore[misc]
    """Calls the other side of a WebSocket; ``serve_forever`` takes the answers."""

    def __init__(self, ws: Any) -> None:
        self.ws = ws
        self.queue = hub.Queue()
        super().__init__(JSONRPCProtocol(), _ClientTransport(ws, self.queue))

    def serve_forever(self) -> None:
        while True:
            message = self.ws.wait()
            if message is None:
                # Whoever waits for an answer gets none.
                self.queue.put(None)
                return
            self.queue.put(message if isinstance(message, bytes) else message.encode())
