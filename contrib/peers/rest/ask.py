#!/usr/bin/env python3
"""Puts the requests of a suite to a REST server, and writes what it answers.

usage: ask.py OUT.jsonl SUITE VERSION HOST:PORT

One JSON line a request: id, method, path, body, status, and the answer (parsed where it is JSON).
It waits up to 30 s until the server knows switch 1, and ends with 1 when it does not.
"""
import http.client
import json
import sys
import time

import cases

LIMIT_S = 15


def ask(address, method, path, body):
    """(status, content type, text); status 0 and why where there is no answer."""
    connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
    try:
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body.encode(), headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        return response.status, response.getheader("Content-Type") or "", text
    except (OSError, http.client.HTTPException) as error:
        return 0, "", str(error)
    finally:
        connection.close()


def wait(address, suite):
    """Whether the server knows the switch within 30 s."""
    path, needle = {
        "ofctl": ("/stats/switches", "1"),
        "topology": ("/v1.0/topology/switches", "0000000000000001"),
        "firewall": ("/firewall/module/status", "0000000000000001"),
        "qos": ("/qos/rules/all", "0000000000000001"),
    }[suite]
    for _ in range(300):
        status, _, text = ask(address, "GET", path, "")
        # A refusal that names the switch knows it too.
        if status in (200, 501) and needle in text:
            return True
        time.sleep(0.1)
    return False


def main():
    out, suite, version, address = sys.argv[1:]
    if not wait(address, suite):
        print(f"{address} does not know switch 1", file=sys.stderr)
        return 1
    with open(out, "a") as results:
        for name, steps in cases.SUITES[suite](version):
            # Ryu loses the switch over what it cannot encode; the next case begins with it again,
            # and with empty tables.
            if not wait(address, suite):
                print(f"{address} lost switch 1 before {name}", file=sys.stderr)
                return 1
            for method, path, body in cases.RESET.get(suite, []):
                ask(address, method, path, body)
            for index, (method, path, body) in enumerate(steps):
                status, kind, text = ask(address, method, path, body)
                answer = text
                if kind.startswith("application/json"):
                    try:
                        answer = json.loads(text) if text else ""
                    except ValueError:
                        pass
                results.write(json.dumps({
                    "id": f"{version}/{name}/{index}", "method": method, "path": path,
                    "body": body, "status": status, "answer": answer}) + "\n")
    return 0


sys.exit(main())
