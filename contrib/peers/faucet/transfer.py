#!/usr/bin/env python3
"""Two megabytes over TCP: `transfer.py serve PORT` receives and checks,
`transfer.py send HOST PORT` sends.  Exit code 0 when every byte arrived."""
import socket
import sys

DATA = b"x" * 2_000_000
WAIT_S = 8


def serve(port):
    with socket.create_server(("0.0.0.0", port)) as listener:
        listener.settimeout(WAIT_S)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(WAIT_S)
            received = bytearray()
            while chunk := connection.recv(65536):
                received += chunk
    return received == DATA


def send(host, port):
    with socket.create_connection((host, port), 5) as connection:
        connection.sendall(DATA)
    return True


if sys.argv[1] == "serve":
    done = serve(int(sys.argv[2]))
else:
    done = send(sys.argv[2], int(sys.argv[3]))
sys.exit(0 if done else 1)
