"""The apps that Ryu 4.34's package ships, and what is done with each.

A step is a tuple: its kind and arguments.

    ("start", needles)    wait until the switches' flow entries have all these words
    ("send", port, frame) a host sends; observed are frames, flow entries and log lines
    ("wait", {needle: count}, regex)   wait until the log has all these words; of its lines those
                          are compared that match, each once and without its numbers
    ("get", path[, needle])   REST, asked until the answer is the expected one
    ("do", method, path, body)   REST, asked once
    ("rpc", path, request)       a message on a WebSocket, and its answer
    ("listen", path)             opens a WebSocket, whose messages are observed from now on
    ("unplug",)                  the last switch ends
"""
import json

import frames


class App:
    """A row: an app with what it needs, and its steps."""

    def __init__(self, name, steps=(), *, version="13", apps=(), options=(), switches=1, suite=None,
                 left_out=None, refused=None, limit_s=20, libraries=True, local=False,
                 clock=None, note=None):
        self.name, self.steps, self.version = name, list(steps), version
        self.modules = [*apps, f"ryu.app.{name}"]
        self.options, self.switches, self.suite = list(options), switches, suite
        # Why it is not run, or the word of the error with which Weir refuses it.
        self.left_out, self.refused = left_out, refused
        self.limit_s, self.has_local = limit_s, local
        # Whether it is run where os-ken is installed, and WebOb and others with it.
        self.needs_libraries = libraries
        # Lines of the log that come by the clock.
        self.clock = clock
        # What a user should know.
        self.note = note


MISS = [("start", ["CONTROLLER"])]
START_10 = [("start", [])]

# Each host is learnt, then a packet goes by a flow entry.
LEARNING = [
    ("send", 1, frames.arp(1, 2)),
    ("send", 2, frames.arp(2, 1, reply=True)),
    ("send", 1, frames.udp(1, 2)),
    ("send", 1, frames.udp(1, 2, 256)),
    ("send", 3, frames.udp(3, 1)),
    ("send", 2, frames.udp(2, 3)),
]

# From the first switch's host to that of the second, whose wire is the fourth, and back.
ACROSS = [("send", 1, frames.arp(1, 2)), ("send", 4, frames.arp(2, 1, reply=True)),
          ("send", 1, frames.udp(1, 2))]

# Five ports of two switches forward, and the sixth would close a loop.
SPANNED = ("wait", {"state=FORWARD": 5}, r"state=FORWARD| / FORWARD|NON_DESIGNATED_PORT / BLOCK")

# Lines and flow entries both: a change of the topology deletes entries, at its own time.
EVERYTHING = ""

ONE, TWO = "0000000000000001", "0000000000000002"
TABLE = f"/simpleswitch/mactable/{ONE}"
GROUP = "225.0.0.1"
CONF = "/v1.0/conf/switches"

PYTHON_2 = "its own handler of packet-ins is for Python 2 (`buffer`), as by Ryu"
NO_JSON = "by Ryu on Python 3 its JSON-RPC is no JSON"

IGMP = [
    ("send", 2, frames.igmp(2, 0x11, "0.0.0.0", "224.0.0.1")),
    ("send", 1, frames.igmp(1, 0x16, GROUP, GROUP)),
    ("send", 3, frames.igmp(3, 0x16, GROUP, GROUP)),
    ("send", 1, frames.igmp(1, 0x17, GROUP, "224.0.0.2")),
]

LACP = [
    ("send", 1, frames.lacp(1)),
    ("send", 2, frames.lacp(2)),
    *LEARNING[:3],
]

APPS = [
    App("simple_switch", START_10 + LEARNING, version="10", libraries=False),
    App("simple_switch_12", refused="OpenFlow 1.2", version="12", libraries=False),
    App("simple_switch_13", MISS + LEARNING, libraries=False),
    App("simple_switch_14", MISS + LEARNING, version="14", libraries=False),
    App("simple_switch_15", MISS + LEARNING, version="15", libraries=False),
    App("example_switch_13", MISS + LEARNING, libraries=False),
    App("simple_monitor_13", [*MISS, *LEARNING[:3], ("wait", {"rx-bytes": 1, "out-port": 1}, "")],
        limit_s=30, libraries=False, clock=r"-{16} |datapath  |[0-9a-f]{16} "),
    App("simple_switch_rest_13", [
        *MISS, *LEARNING[:2], ("get", TABLE),
        ("do", "PUT", TABLE, {"mac": "02:00:00:00:02:09", "port": 3}), ("get", TABLE),
        ("get", f"/simpleswitch/mactable/{TWO}"), ("get", "/simpleswitch/mactable/1"),
        ("do", "PUT", TABLE, "{"), ("get", "/none"), LEARNING[2]]),
    App("simple_switch_websocket_13", [
        *MISS, ("listen", "/simpleswitch/ws"), *LEARNING[:3],
        ("rpc", "/simpleswitch/ws", {"jsonrpc": "2.0", "id": 1, "method": "get_arp_table",
                                     "params": {}})],
        note=NO_JSON),
    App("simple_switch_igmp_13", MISS + IGMP + LEARNING[:2]),
    App("simple_switch_igmp", START_10 + IGMP + LEARNING[:2], version="10", note=PYTHON_2),
    App("simple_switch_lacp_13", MISS + LACP, local=True),
    App("simple_switch_lacp", START_10 + LACP, version="10", local=True, note=PYTHON_2),
    App("simple_switch_stp_13", [SPANNED, *ACROSS],
        switches=2, options=["--verbose"], limit_s=70, clock=EVERYTHING),
    App("simple_switch_stp", [SPANNED, *ACROSS], version="10",
        switches=2, options=["--verbose"], limit_s=70, clock=EVERYTHING, note=PYTHON_2),
    App("cbench", START_10 + LEARNING[:2], version="10", libraries=False),
    App("ofctl_rest", suite="ofctl"),
    App("rest_topology", suite="topology", switches=2, options=["--observe-links"],
        apps=["ryu.app.ofctl_rest"]),
    App("rest_firewall", suite="firewall"),
    App("rest_router", suite="router"),
    App("rest_qos", suite="qos"),
    App("rest_conf_switch", [
        ("start", []), ("get", CONF), ("do", "PUT", f"{CONF}/{ONE}/key", {"a": 1}), ("get", CONF),
        ("get", f"{CONF}/{ONE}"), ("get", f"{CONF}/{ONE}/key"), ("get", f"{CONF}/{TWO}/key"),
        ("do", "DELETE", f"{CONF}/{ONE}/key", ""), ("get", f"{CONF}/{ONE}/key"),
        ("do", "DELETE", f"{CONF}/{ONE}", ""), ("get", CONF)], apps=["ryu.app.ofctl_rest"]),
    App("conf_switch_key", left_out="constants for other apps; no app is in it"),
    App("ws_topology", [("start", []), ("get", "/v1.0/topology/switches", ONE),
        ("listen", "/v1.0/topology/ws"), ("unplug",)], apps=["ryu.app.rest_topology"],
        version="10", options=["--observe-links"], note=NO_JSON),
    App("gui_topology.gui_topology", [
        ("start", []), ("get", "/index.html"), ("get", "/stats/switches", "1"),
        ("get", "/v1.0/topology/switches", ONE), ("get", "/none.html")],
        options=["--observe-links"]),
    App("simple_switch_snort", left_out="needs Snort's alerts (ryu.lib.snortlib)"),
    App("rest_vtep", left_out="needs Ryu's BGP speaker, which Weir does not have"),
    App("bmpstation", left_out="a server for BMP: needs no OpenFlow"),
    App("wsgi", left_out="the library of REST apps, which Weir has its own of"),
    App("ofctl.service", left_out="the library of apps that ask switches; Weir has its own"),
]


def body_text(body):
    """The text of a request's body."""
    return body if isinstance(body, str) else json.dumps(body)
