#!/usr/bin/env python3
"""Switches side by side by the results of the Ryu tester: totals by group, failing cases by name.

usage: compare.py [NAME=]OUT[,OUT...] [[NAME=]OUT[,OUT...] ...]

OUT is a folder that run.sh wrote (or its results.jsonl); several of them, joined by commas, are
runs of the same switch, and a case passes when it passes in all of them.  Prints Markdown.  Exit
code 1 when the first switch did not pass everything that was run.

    run.sh -o /tmp/weir ../weir-dut.sh; run.sh -o /tmp/ovs ../ovs-private.sh
    compare.py weir=/tmp/weir ovs=/tmp/ovs
"""
import json
import os
import sys


def group(record):
    """action, set_field, group, match or meter."""
    parts = record["file"].split("/")
    return "set_field" if "25_SET_FIELD" in parts else parts[0]


def read(path):
    if os.path.isdir(path):
        path = os.path.join(path, "results.jsonl")
    with open(path) as lines:
        return {record["id"]: record for record in map(json.loads, lines)}


class Switch:
    """The runs of one switch."""

    def __init__(self, argument):
        name, _, paths = argument.rpartition("=")
        paths = paths.split(",")
        self.name = name or os.path.basename(os.path.normpath(paths[0]))
        self.runs = [read(path) for path in paths]
        self.cases = {}
        for run in self.runs:
            self.cases.update(run)

    def passed(self, case):
        return sum(run.get(case, {}).get("result") == "OK" for run in self.runs)

    def word(self, case):
        """What became of a case, in a cell."""
        if case not in self.cases:
            return "not run"
        if self.passed(case) == len(self.runs):
            return "OK"
        if len(self.runs) > 1:
            return f"{self.passed(case)} of {len(self.runs)} runs"
        return self.cases[case]["result"]


def totals(switches, cases):
    print("| group | cases | " + " | ".join(s.name for s in switches) + " |")
    print("|---|---|" + "---|" * len(switches))
    groups = sorted({group(record) for record in cases.values()})
    for name in groups + ["all"]:
        ids = [i for i, record in cases.items() if name in (group(record), "all")]
        cells = [str(sum(s.word(i) == "OK" for i in ids)) for s in switches]
        print(f"| {name} | {len(ids)} | " + " | ".join(cells) + " |")


def failures(switches, cases):
    rows = [i for i in cases if any(s.word(i) != "OK" for s in switches)]
    if not rows:
        print("\nEvery case passed everywhere.")
        return
    print("\n| case | what | " + " | ".join(s.name for s in switches) + " |")
    print("|---|---|" + "---|" * len(switches))
    for case in rows:
        what = cases[case]["desc"].replace("|", "\\|")
        print(f"| {case} | {what} | " + " | ".join(s.word(case) for s in switches) + " |")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 2
    switches = [Switch(argument) for argument in sys.argv[1:]]
    cases = {}
    for switch in switches:
        cases.update(switch.cases)
    cases = dict(sorted(cases.items(), key=lambda item: (group(item[1]), item[1]["file"],
                                                         item[1]["index"])))
    totals(switches, cases)
    failures(switches, cases)
    return 0 if all(switches[0].word(case) == "OK" for case in switches[0].cases) else 1


sys.exit(main())
