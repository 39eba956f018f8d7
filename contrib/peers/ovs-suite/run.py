#!/usr/bin/env python3
"""Runs cases of Open vSwitch's suites and holds them against cases.tsv.

usage: run.py [--all] [--jobs N] [--limit SECONDS] [CASE...]

The folders are in the environment (run.sh sets it). A case that fails runs once more, alone.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.environ["OUT"]
SCRIPTS = {"testsuite": "testsuite", "userspace": "system-userspace-testsuite"}
# The namespaces of a case, and all that it started, end with the process that made them.
NAMESPACES = ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--mount-proc",
              "--kill-child=KILL"]


class Case:
    """A row of cases.tsv, or a case that the command line names."""

    def __init__(self, name, title="", lacking=""):
        self.name, self.title, self.lacking = name, title, lacking
        self.passed, self.detail = False, ""

    def run(self, limit_s):
        suite, number = self.name.split(":")
        log = os.path.join(OUT, "log", f"{suite}-{number}.log")
        if os.path.exists(log):
            os.remove(log)
        command = [*NAMESPACES, "bash", os.path.join(HERE, "case.sh"), SCRIPTS[suite], number, log]
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, timeout=limit_s)
            text = ended.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired:
            text = f"{number}: FAILED (not over after {limit_s} s)"
        # `856: ofproto - echo request  ok`, `skipped (..)`, `FAILED (file.at:31)`
        line = re.findall(rf"^ *{number}: .*", text, re.MULTILINE)
        found = line and re.search(r"(ok|skipped \(.*\)|FAILED \(.*\))$", line[-1].rstrip())
        self.detail = found.group(1) if found else text.strip()[-300:] or "no result"
        self.passed = self.detail == "ok"

    def report(self):
        """The case's line for results.jsonl, printed; none when it lacks what it is known to."""
        result, detail = "OK" if self.passed else "FAIL", self.detail
        if self.lacking and not self.passed:
            print(f"{self.name} lacks {self.lacking}", flush=True)
            return None
        if self.lacking:
            result, detail = "FAIL", f"passes now: delete {self.lacking!r} from cases.tsv"
        line = json.dumps({"id": f"ovs/{self.name}", "result": result, "title": self.title,
                           "detail": detail})
        print(line, flush=True)
        return result, line


def listed():
    with open(os.path.join(HERE, "cases.tsv")) as lines:
        return [Case(*line.rstrip("\n").split("\t")) for line in lines if line[0] != "#"]


def named(words):
    """The cases of the command line: SUITE:NUMBER or SUITE:FIRST-LAST."""
    known = {case.name: case for case in listed()}
    for word in words:
        suite, numbers = word.split(":")
        first, _, last = numbers.partition("-")
        for number in range(int(first), int(last or first) + 1):
            name = f"{suite}:{number}"
            yield known.get(name) or Case(name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=2 * os.cpu_count())
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    if options.cases:
        cases = list(named(options.cases))
    else:
        cases = [case for case in listed() if options.all or not case.lacking]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda case: case.run(options.limit), cases))
    for case in cases:
        if not case.passed and not case.lacking:
            case.run(options.limit)
    judged = [report for report in (case.report() for case in cases) if report]
    with open(os.path.join(OUT, "results.jsonl"), "w") as file:
        file.writelines(f"{line}\n" for _, line in judged)
    failed = sum(result == "FAIL" for result, _ in judged)
    lacking = len(cases) - len(judged)
    print(f"{len(judged) - failed} passed, {failed} failed, {lacking} lack something")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
