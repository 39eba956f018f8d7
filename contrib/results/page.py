"""Writes docs/results/README.md from the results of a campaign of the lab.

    page.py docs/results/results.json.gz > docs/results/README.md

ROWS names the figures of the page. Each has an anchor, so that other pages can link to it.
"""

import gzip
import json
import sys

SWITCHES = ["weir", "ovs", "linux-bridge"]

# A heading, or: anchor, text, scenario, metric, point, divisor, decimals.
ROWS = [
    "TCP between two hosts, Gb/s (more is better)",
    ("tcp-1", "one stream, two flow entries", "throughput-by-workers", "tcp_mbps",
     {"mode": "flow entries", "workers": "1", "streams": "1"}, 1e3, 1),
    ("tcp-4", "four streams, two flow entries", "throughput-by-workers", "tcp_mbps",
     {"mode": "flow entries", "workers": "1", "streams": "4"}, 1e3, 1),
    ("tcp-1-learning", "one stream, a learning switch", "throughput-by-workers", "tcp_mbps",
     {"mode": "learning", "workers": "1", "streams": "1"}, 1e3, 1),
    ("tcp-4-learning", "four streams, a learning switch", "throughput-by-workers", "tcp_mbps",
     {"mode": "learning", "workers": "1", "streams": "4"}, 1e3, 1),
    "One-way delay of 64-byte frames, median, microseconds (less is better)",
    ("delay-port", "one flow entry", "delay-by-match", "delay_p50_us",
     {"match": "port", "table": "one entry", "frame_size": "64"}, 1, 1),
    ("delay-exact-full", "a full table of exact matches", "delay-by-match", "delay_p50_us",
     {"match": "exact", "table": "full table", "frame_size": "64"}, 1, 1),
    ("delay-learning", "a learning switch", "delay-by-match", "delay_p50_us",
     {"match": "legacy (learning)", "table": "one entry", "frame_size": "64"}, 1, 1),
    "Thousands of frames a second (more is better)",
    ("loss-free-64", "64 bytes, both ways at once, none lost", "loss-free-rate", "rate_pps",
     {"layout": "1 queue, 1 thread", "forwarding": "switch", "frame_size": "64"}, 1e3, 0),
    ("rate-1-entry", "one flow entry", "large-tables", "rate_pps", {"entries": "1"}, 1e3, 0),
    ("rate-61k", "61,000 flow entries in one table", "large-tables", "rate_pps",
     {"entries": "61,000"}, 1e3, 0),
    ("rate-61k-64", "61,000 flow entries over 64 tables", "large-tables", "rate_pps",
     {"entries": "61,000 over 64 tables"}, 1e3, 0),
    ("rate-660k", "660,000 flow entries", "large-tables", "rate_pps",
     {"entries": "660,000"}, 1e3, 0),
    ("rate-tables", "caches off, flow tables only", "lookup-tiers", "rate_pps",
     {"tier": "tables only", "addresses": "same"}, 1e3, 0),
    ("rate-controller", "every frame by way of the controller", "lookup-tiers", "rate_pps",
     {"tier": "controller", "addresses": "same"}, 1e3, 0),
    ("rate-hub-os-ken", "every frame by way of os-ken's hub", "packet-in-hub", "pps_carried",
     {"app": "hub", "controller": "os-ken", "control_rate": "1G", "cpu_share": "all"}, 1e3, 0),
    "Other figures",
    ("ping-hub", "ping by way of a hub on the controller, ms", "packet-in-hub", "ping_avg_ms",
     {"app": "hub", "controller": "weir", "control_rate": "1G", "cpu_share": "all"}, 1, 2),
    ("failover", "fast failover after a pulled link, ms", "failover", "failover_ms",
     {"group": "fast failover"}, 1, 1),
    ("meter-1m", "error of a meter of 1 Mb/s, %", "meter-rates", "meter_error_pct",
     {"rate": "1 Mb/s"}, 1, 1),
    ("idle", "CPU without traffic, % of a core", "idle-cpu", "idle_cores",
     {"workers": "1"}, 0.01, 2),
    ("bridges-998", "CPU of 998 idle bridges with TLS, % of a core", "channel", "channel_cores",
     {"bridges": "998", "transport": "tls"}, 0.01, 1),
    ("flow-entries", "flow entries added a second, thousands", "table-size", "table_add_ps",
     {"mode": "OpenFlow"}, 1e3, 0),
    ("addresses", "addresses learnt", "table-size", "table_entries",
     {"mode": "legacy (learning)"}, 1, 0),
]

HEAD = """\
# Results: Weir beside Open vSwitch and the Linux bridge

Written by `contrib/results/page.py` from [results.json.gz](results.json.gz), which has every
sample, every command and the part that limited each trial. Of its {figures:,} figures
`weir lab report docs/results/results.json.gz` makes a report; [how a figure is
made](../lab-method.md) explains the methods.

The run: {date}, {minutes:.0f} minutes, {machine}.

Programs: {programs}.

Hosts are network namespaces joined to the switch by veth. The switches took turns at every cell,
and each measurement is a new start of the switch.

A cell has the least and the most of its starts. Hosts, switch and controller share the two cores,
so compare the columns of a row, not rows of different machines."""


def cell(results, row, switch):
    """The figures of a switch in a row."""
    _, _, scenario, metric, point, divisor, decimals = row
    [found] = [one for one in results["scenarios"] if one["id"] == scenario]
    assert any(m["id"] == metric for m in found["metrics"]), row
    cells = [one for one in found["cells"] if one["at"] == point]
    assert cells, row
    for one in cells:
        samples = [r["samples"] for r in one["rows"] if r["metric"] == metric]
        if one["dut"] == switch and samples and samples[0]:
            low, high = (
                f"{round(f(samples[0]) / divisor, decimals) + 0:,.{decimals}f}" for f in (min, max))
            return low if low == high else f"{low} to {high}"
    return "-"


def main():
    with gzip.open(sys.argv[1]) as file:
        results = json.load(file)
    machine = results["machine"]
    figures = sum(len(c["rows"]) for s in results["scenarios"] for c in s["cells"])
    programs = ", ".join(one["version"] for one in results["programs"])
    print(HEAD.format(
        figures=figures, minutes=results["duration_s"] / 60, date=results["started"][:10],
        machine=f"a virtual machine with {machine['cores']} cores ({machine['cpu']}), "
                f"{machine['kernel'].split('-')[0]}, {machine['os']}",
        programs=programs))
    for row in ROWS:
        if isinstance(row, str):
            print(f"\n## {row}\n\n| | Weir | Open vSwitch, user space | Linux bridge |")
            print("|---|---|---|---|")
            continue
        cells = " | ".join(cell(results, row, switch) for switch in SWITCHES)
        print(f"| <a id=\"{row[0]}\"></a>{row[1]} | {cells} |")
    print("""
`-`: the Linux bridge has no flow tables. Its learnt addresses end at the bound of the run; those of
Weir and Open vSwitch at a bound of their own.""")


if __name__ == "__main__":
    main()
