#!/usr/bin/env python3
"""What `weir gen` sends on one core, and how exactly: a line for each row.

    speed.py WEIR [SECONDS [REPEATS]]

Ports of the kind `null` cost nothing; a wire in memory has the delay of nothing. A rate is that
from the first frame to the last: the median of the repeats, with the least and the most.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

FIELDS = ("ipv4.src", "ipv4.dst", "udp.src", "udp.dst")
PACKET = "eth/ipv4(src=10.0.0.1,dst=10.0.0.2)/udp(src=1024,dst=80)"
RATES = (1_000, 10_000, 100_000, 1_000_000)


def stream(name="one", rate="max", **more):
    """A stream of the shortest frames; without numbers in them unless it has `probe`."""
    return {"name": name, "packet": PACKET, "rate": rate, "probe": False, **more}


def send(weir, folder, ports, streams, seconds, *options):
    """The report of one run."""
    profile = os.path.join(folder, "profile.json")
    with open(profile, "w", encoding="utf-8") as file:
        json.dump({"streams": streams}, file)
    words = [word for port in ports for word in ("--port", port)]
    command = [weir, "gen", "run", profile, *words, "--duration", str(seconds), *options]
    run = subprocess.run([*command, "--json", "--quiet"], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)["statistics"]


def main():
    """Prints all rows."""
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    weir = sys.argv[1]
    seconds, repeats = [float(word) for word in (sys.argv[2:] + ["1", "6"][len(sys.argv) - 2:])]
    fields = [{"field": field, "op": "increment"} for field in FIELDS]
    many = [stream(f"stream-{number}", probe=True) for number in range(100)]
    rows = {
        "one stream": (["null:a"], [stream()]),
        "four fields that differ": (["null:a"], [stream(modifiers=fields)]),
        "100 streams, numbers and times": (["null:a"], many),
        "one port, two queues": (["null:a?queues=2"], many[:2]),
    }
    with tempfile.TemporaryDirectory() as folder:
        for row, (ports, streams) in rows.items():
            mpps = []
            for _ in range(int(repeats)):
                sent = send(weir, folder, ports, streams, seconds)["ports"][0]["tx"]
                mpps.append(1e3 * sent["packets"] / max(sent["span_ns"], 1))
            middle = statistics.median(mpps)
            print(f"{row:34}{middle:9.2f} Mpps ({min(mpps):.2f} to {max(mpps):.2f})", flush=True)
        for rate in RATES:
            one = [stream(rate=f"{rate}pps")]
            sent = send(weir, folder, ["null:a"], one, seconds)["ports"][0]["tx"]
            planned_ns = (sent["packets"] - 1) * 1e9 / rate
            error = abs(100 * (planned_ns / max(sent["span_ns"], 1) - 1))
            gaps = "; ".join(f"{sent['gaps'][key]:,}" for key in ("p50_ns", "p99_ns", "max_ns"))
            print(f"{rate:,} a second".ljust(34), f"{error:.4f} % off, {sent['unsent']} unsent,",
                  f"ns between departures (p50; p99; most): {gaps}", flush=True)
        wire = ["memory:speed?end=a", "memory:speed?end=b"]
        found = send(weir, folder, wire, [stream(rate="100kpps", probe=True)], seconds)
        delay = found["streams"][0]["arrivals"][0]["report"]["delay"]["quantiles"]
        median = next(one["value_ns"] for one in delay if one["share"] == 0.5)
        print("a wire in memory, delay".ljust(34), f"{median / 1e3:.2f} us (p50)")


if __name__ == "__main__":
    main()
