#!/usr/bin/env python3
"""Runs the checks of checks.tsv with ovs-ofctl against a switch that listens for OpenFlow.

usage: run.py RESULTS.jsonl SWITCH VERSION      (SWITCH such as tcp:127.0.0.1:6634, VERSION 13)

Appends one JSON line a check to RESULTS.jsonl and prints the totals.  A check's command may begin
with `!` (must fail, or say what the expression matches), `!!` (the expression must not match) or
`@timeout N` (may run into its limit).
"""
import json
import os
import re
import subprocess
import sys
import tempfile

COMPLAINT = r"OFPT_ERROR|ofctl: "
LIMIT_S = 15
SHORT_LIMIT_S = 2


def write_flow_files(folder):
    with open(folder + "/flows.txt", "w") as f:
        f.write("priority=7,in_port=1,actions=output:2\n")
        f.write("priority=8,in_port=2,actions=output:1\n")
    with open(folder + "/1000.txt", "w") as f:
        for i in range(1000):
            f.write(f"priority=9,ip,nw_dst=10.1.{i // 250}.{i % 250},actions=output:2\n")


def checks(version):
    """Yields (id, message, command, expression) of the checks for a version."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checks.tsv")
    with open(path) as lines:
        for line in lines:
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t") + [""]
            if version in fields[1].split(","):
                yield fields[0], fields[2], fields[3], fields[4]


def run_check(command, expression, switch, folder, version):
    """Runs one check; gives (passed, output)."""
    must_fail = must_not_match = may_time_out = False
    if command.startswith("!!"):
        must_not_match, command = True, command[2:]
    elif command.startswith("!"):
        must_fail, command = True, command[1:]
    elif command.startswith("@timeout"):
        may_time_out, command = True, command.split(" ", 2)[2]
    words = [w.replace("$S", switch).replace("$T", folder) for w in command.split(" ")]
    limit = SHORT_LIMIT_S if may_time_out else LIMIT_S
    try:
        done = subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow" + version] + words,
            capture_output=True, text=True, timeout=limit)
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, text = (0, "") if may_time_out else (124, "timeout")
    matches = bool(re.search(expression, text))
    if must_not_match:
        return code == 0 and not matches, text
    if must_fail:
        return matches or code != 0, text
    return code == 0 and not re.search(COMPLAINT, text) and (not expression or matches), text


def main():
    out, switch, version = sys.argv[1:4]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, open(out, "a") as results:
        os.environ["OVS_RUNDIR"] = folder
        write_flow_files(folder)
        for name, message, command, expression in checks(version):
            ok, text = run_check(command, expression, switch, folder, version)
            passed, failed = passed + ok, failed + (not ok)
            detail = "" if ok else text[:150] + " ... " + text[-150:]
            results.write(json.dumps({
                "id": f"OF{version}/{name}", "result": "OK" if ok else "FAIL",
                "message": message, "detail": detail}) + "\n")
    print("OpenFlow", version, "OK", passed, "FAIL", failed)


main()
