"""Renews what the documentation shows of the committed results: their page, the picture and the
table in README.

    page.py WEIR          draws all anew from the data in docs/results
    page.py WEIR RUN      takes the data of the folder RUN, then draws
    page.py WEIR --check  changes nothing; fails where something is out of date

WEIR is the program. All figures are from `weir lab report`. ROWS names those of the page; each has
an anchor, so that other pages can link to it.
"""

import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/results"
SWITCHES = ["weir", "ovs", "linux-bridge"]

DATA = FOLDER / "trials.jsonl.gz"

# The part of Weir that forwards: the fast path inside the kernel, or a thread of the switch.
KERNEL, BOTH, THREAD = "kernel tier", "kernel tier, thread", "thread"
CONTROLLER, NOBODY = "thread, controller", "-"

# A heading, or: anchor, text, scenario, metric, point, divisor, decimals, who forwards.
ROWS = [
    "TCP between two hosts, Gb/s (more is better)",
    ("tcp-1", "one stream, two flow entries", "throughput-by-workers", "tcp_mbps",
     {"mode": "flow entries", "workers": "1", "streams": "1"}, 1e3, 1, KERNEL),
    ("tcp-4", "four streams, two flow entries", "throughput-by-workers", "tcp_mbps",
     {"mode": "flow entries", "workers": "1", "streams": "4"}, 1e3, 1, KERNEL),
    ("tcp-1-learning", "one stream, a learning switch", "throughput-by-workers", "tcp_mbps",
     {"mode": "learning", "workers": "1", "streams": "1"}, 1e3, 1, KERNEL),
    ("tcp-4-learning", "four streams, a learning switch", "throughput-by-workers", "tcp_mbps",
     {"mode": "learning", "workers": "1", "streams": "4"}, 1e3, 1, KERNEL),
    "One-way delay of 64-byte frames, median, microseconds (less is better)",
    ("delay-port", "one flow entry", "delay-by-match", "delay_p50_us",
     {"match": "port", "table": "one entry", "frame_size": "64"}, 1, 1, KERNEL),
    ("delay-exact-full", "a full table of exact matches", "delay-by-match", "delay_p50_us",
     {"match": "exact", "table": "full table", "frame_size": "64"}, 1, 1, KERNEL),
    ("delay-learning", "a learning switch", "delay-by-match", "delay_p50_us",
     {"match": "legacy (learning)", "table": "one entry", "frame_size": "64"}, 1, 1, KERNEL),
    "Thousands of frames a second (more is better)",
    ("loss-free-64", "64 bytes, both ways at once, none lost", "loss-free-rate", "rate_pps",
     {"layout": "1 queue, 1 thread", "forwarding": "switch", "frame_size": "64"}, 1e3, 0, KERNEL),
    ("rate-1-entry", "one flow entry", "large-tables", "rate_pps",
     {"entries": "1"}, 1e3, 0, KERNEL),
    ("rate-61k", "61,000 flow entries in one table", "large-tables", "rate_pps",
     {"entries": "61,000"}, 1e3, 0, BOTH),
    ("rate-61k-64", "61,000 flow entries over 64 tables", "large-tables", "rate_pps",
     {"entries": "61,000 over 64 tables"}, 1e3, 0, BOTH),
    ("rate-660k", "660,000 flow entries", "large-tables", "rate_pps",
     {"entries": "660,000"}, 1e3, 0, BOTH),
    ("rate-tables", "caches off, flow tables only", "lookup-tiers", "rate_pps",
     {"tier": "tables only", "addresses": "same"}, 1e3, 0, THREAD),
    ("rate-controller", "every frame by way of the controller", "lookup-tiers", "rate_pps",
     {"tier": "controller", "addresses": "same"}, 1e3, 0, CONTROLLER),
    "Other figures",
    ("ping-hub", "ping by way of a hub on the controller, ms", "packet-in-hub", "ping_avg_ms",
     {"app": "hub", "controller": "weir", "control_rate": "1G", "cpu_share": "all"},
     1, 2, CONTROLLER),
    ("failover", "fast failover after a pulled link, ms", "failover", "failover_ms",
     {"group": "fast failover"}, 1, 1, KERNEL),
    ("meter-1m", "error of a meter of 1 Mb/s, %", "meter-rates", "meter_error_pct",
     {"rate": "1 Mb/s"}, 1, 1, BOTH),
    ("idle", "CPU without traffic, % of a core", "idle-cpu", "idle_cores",
     {"workers": "1"}, 0.01, 2, NOBODY),
    ("bridges-998", "CPU of 998 idle bridges with TLS, % of a core", "channel", "channel_cores",
     {"bridges": "998", "transport": "tls"}, 0.01, 1, NOBODY),
    ("flow-entries", "flow entries added a second, thousands", "table-size", "table_add_ps",
     {"mode": "OpenFlow"}, 1e3, 0, NOBODY),
    ("addresses", "addresses learnt", "table-size", "table_entries",
     {"mode": "legacy (learning)"}, 1, 0, NOBODY),
]

# The rows that README has too.
IN_README = ["tcp-4", "tcp-4-learning", "delay-port", "delay-learning", "loss-free-64",
             "rate-61k-64", "rate-660k", "rate-controller", "bridges-998", "addresses"]

HEADS = ("| | Weir | Open vSwitch, user space | Linux bridge | Weir forwards in |\n"
         "|---|---|---|---|---|")

PAGE = """\
# Results: Weir beside Open vSwitch and the Linux bridge

![The headline of each evaluation](../images/results.svg)

Written by `contrib/results/page.py` from [{data}]({data}), which has every
sample, every command and the part that limited each trial.
`weir lab report docs/results/{data} --out report.html` makes the whole report of it, and
[how a figure is made](../lab-method.md) explains the methods.

{run}

    {command}

{programs}

Hosts are network namespaces joined to the switch by veth. The switches took turns at every cell,
and each measurement is a new start of the switch. A cell has the median of the starts, and their
least and most with what their trials leave open, as a search does between the load that passes and
the one that fails. Hosts, switch and controller share the cores, so compare the columns of a row,
not rows of different machines.
{tables}

`-`: the Linux bridge has no flow tables. Its learnt addresses end at the bound of the run; those of
Weir and Open vSwitch at a bound of their own. In Weir the kernel tier forwards what it knows, a
thread the rest.
"""

README = ROOT / "README.md"
BEGIN, END = "<!-- results: contrib/results/page.py -->\n", "<!-- end of results -->"


def report(weir, data, form):
    command = [weir, "lab", "report", str(data), "--format", form]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cell(results, row, switch):
    """The figures of a switch in a row."""
    _, _, scenario, metric, point, divisor, decimals, _ = row
    cells = [one for of in results["scenarios"] if of["id"] == scenario for one in of["cells"]
             if one["dut"] == switch and point.items() <= one["at"].items()]
    rows = [figure for one in cells for figure in one["rows"] if figure["metric"] == metric]
    found = [sample for figure in rows for sample in figure["samples"]]
    assert found or switch != "weir", row
    if not found:
        return "-"
    ends = found + [end for figure in rows for both in figure.get("resolutions", [])
                    for end in both]
    median, low, high = (
        f"{round(value / divisor, decimals) + 0:,.{decimals}f}"
        for value in (statistics.median(found), min(ends), max(ends)))
    return median if low == high else f"{median} ({low} to {high})"


def tables(results):
    """The page's tables, and README's."""
    page, readme = [], [HEADS]
    heading = ""
    for row in ROWS:
        if isinstance(row, str):
            heading = row
            page.append(f"\n## {row}\n\n{HEADS}")
            continue
        anchor, text, who = row[0], row[1], row[-1]
        cells = [cell(results, row, switch) for switch in SWITCHES]
        page.append(f"| <a id=\"{anchor}\"></a>{text} | {' | '.join(cells)} | {who} |")
        if anchor in IN_README:
            link = f"docs/results/README.md#{anchor}"
            unit = IN_WORDS.get(heading, "{}").format(text)
            readme.append(f"| [{unit}]({link}) | {' | '.join(cells)} | {who} |")
    return "\n".join(page), "\n".join(readme) + "\n"


# A row of README by the heading that it stands under in the page.
IN_WORDS = {
    "TCP between two hosts, Gb/s (more is better)": "TCP, {}, Gb/s",
    "One-way delay of 64-byte frames, median, microseconds (less is better)":
        "delay of a frame, {}, µs",
    "Thousands of frames a second (more is better)": "{}, thousand frames/s",
}


def run_of(results):
    """When, how long and on what machine."""
    machine, seconds = results["machine"], round(results["duration_s"])
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    took = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
    quick = ", quick" if results["is_quick"] else ""
    kind = "virtual machine" if machine["virtual_machine"] else "machine"
    return (f"Started {results['started']}, {took}{quick}; {kind} with {machine['cores']} cores "
            f"({machine['cpu']}), {machine['kernel']}, {machine['os']}; weir {results['weir']}.")


def take(run):
    """The data of a run, compressed; the same data always give the same bytes."""
    text = (run / "trials.jsonl").read_bytes()
    DATA.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))


def main():
    weir, *rest = sys.argv[1:]
    is_check = rest == ["--check"]
    if rest and not is_check:
        take(pathlib.Path(rest[0]))
    results = json.loads(report(weir, DATA, "json"))
    programs = [one["version"] for one in results["programs"]]
    page, table = tables(results)
    readme = README.read_text()
    before, rest = readme.split(BEGIN)
    fresh = {
        FOLDER / "README.md": PAGE.format(
            data=DATA.name, run=textwrap.fill(run_of(results), 100), tables=page,
            command="weir" + " ".join(results["command"]).partition("weir")[2],
            programs=textwrap.fill(f"Programs: {', '.join(programs)}.", 100)),
        ROOT / "docs/images/results.svg": report(weir, DATA, "svg"),
        README: f"{before}{BEGIN}\n{table}\n{rest[rest.index(END):]}",
    }
    stale = [path for path, text in fresh.items()
             if not path.exists() or path.read_text() != text]
    for path in stale:
        name = path.relative_to(ROOT)
        if is_check:
            print(f"{name} is out of date: run `cargo xtask docs`", file=sys.stderr)
        else:
            path.write_text(fresh[path])
            print(f"{name} renewed")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
