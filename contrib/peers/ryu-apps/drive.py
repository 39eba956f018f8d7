#!/usr/bin/env python3
"""Runs each app of apps.py by Ryu and by Weir, and compares what they do.

usage: drive.py --out DIR --ryu PYTHON --weir PYTHON --libraries PYTHON --package DIR
                [--only REGEX] [--jobs N] [--weir-only]

Each run has a network namespace of its own: switches (`weir switch`) whose ports are veth pairs,
the app, and this program at the far ends. After each step it looks until nothing changes any more
(Ryu), or until all is as with Ryu or the time is over (Weir).
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import apps
import world

HERE = os.path.dirname(os.path.abspath(__file__))
REST = os.path.join(os.path.dirname(HERE), "rest")


def run_one(options, app, server):
    """The file of observations of a run, which happens in a namespace of its own."""
    path = os.path.join(options.out, f"{app.name}.{server}.json")
    if os.path.exists(path):
        os.remove(path)
    command = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
               sys.executable, os.path.abspath(__file__), "--inside", app.name, server,
               *sys.argv[1:]]
    # A run has a bound of its own for each step; this one is for what hangs.
    limit_s = 240 if app.suite else 60 + 8 * len(app.steps) + app.limit_s
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=limit_s)
        why = (ended.stdout + ended.stderr).strip()
    except subprocess.TimeoutExpired:
        why = f"not over after {limit_s} s"
    if not os.path.exists(path):
        lines = why.splitlines()
        return {"error": lines[-1] if lines else "no result"}
    with open(path) as file:
        return json.load(file)


def inside(options, name, server):
    """One app on one server, in this namespace."""
    app = next(app for app in apps.APPS if app.name == name)
    path = os.path.join(options.out, f"{name}.{server}.json")
    expected = None
    if server == "weir" and not app.refused and not app.suite:
        expected = recorded(options, app)["steps"]
    with tempfile.TemporaryDirectory(prefix="ryu-apps.") as folder:
        made = world.World(options, app, server, folder)
        try:
            if app.refused:
                result = {"output": made.output()}
            elif app.suite:
                out = os.path.join(options.out, f"{name}.{server}.jsonl")
                made.suite(os.path.join(REST, "ask.py"), out)
                result = {"answers": out}
            else:
                result = {"steps": made.run(expected)}
        finally:
            made.end()
    with open(path, "w") as file:
        json.dump(result, file, indent=1)


def recorded(options, app):
    """The observations of Ryu."""
    with open(os.path.join(options.out, f"{app.name}.ryu.json")) as file:
        return json.load(file)


def differences(expected, found):
    """Lines that say where two runs differ."""
    lines = []
    for index, (one, other) in enumerate(zip(expected, found)):
        for key in one["seen"]:
            ours = other["seen"].get(key)
            if one["seen"][key] == ours:
                continue
            lines.append(f"step {index} {one['step']}: {key}")
            lines.append(f"    Ryu  {json.dumps(one['seen'][key])[:1000]}")
            lines.append(f"    Weir {json.dumps(ours)[:1000]}")
    return lines


def judge(options, app):
    """(result, detail) of an app."""
    if app.left_out:
        return "LEFT OUT", app.left_out
    if app.refused:
        found = run_one(options, app, "weir")
        output = found.get("output", found.get("error", ""))
        if app.refused in output:
            return "REFUSED", f"ends with an error: needs {app.refused}"
        return "FAIL", f"no error that names {app.refused}: {output[-300:]}"
    if not options.weir_only or not os.path.exists(
            os.path.join(options.out, f"{app.name}.ryu.json")):
        ryu = run_one(options, app, "ryu")
        if "error" in ryu:
            return "FAIL", f"Ryu: {ryu['error']}"
    ryu = recorded(options, app)
    weir = run_one(options, app, "weir")
    if "error" in weir:
        return "FAIL", weir["error"]
    if app.suite:
        compared = subprocess.run(
            [sys.executable, os.path.join(REST, "compare.py"), ryu["answers"], weir["answers"],
             os.path.join(HERE, f"explained-{app.suite}.tsv"), "--markdown"],
            capture_output=True, text=True)
        lines = (compared.stdout + compared.stderr).strip().splitlines()
        with open(os.path.join(options.out, f"{app.name}.compare.txt"), "w") as file:
            file.write("\n".join(lines) + "\n")
        total = lines[-1] if lines else ""
        return ("OK" if compared.returncode == 0 else "FAIL"), total
    lines = differences(ryu["steps"], weir["steps"])
    if lines:
        return "FAIL", "\n".join(lines)
    return "OK", f"{len(ryu['steps'])} steps alike"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--ryu", required=True)
    parser.add_argument("--weir", required=True)
    # A Python with os-ken and what REST apps need, and the folder with the package `weir`.
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--package", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--weir-only", action="store_true")
    parser.add_argument("--inside", nargs=2)
    options = parser.parse_args()
    if options.inside:
        inside(options, *options.inside)
        return 0
    chosen = [app for app in apps.APPS if re.search(options.only, app.name)]
    began = time.monotonic()
    # Those that take longest begin first.
    order = sorted(chosen, key=lambda app: -(240 if app.suite else app.limit_s))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        judged = dict(zip((app.name for app in order),
                          pool.map(lambda app: judge(options, app), order)))
    counts = {}
    with open(os.path.join(options.out, "results.jsonl"), "w") as results, \
            open(os.path.join(options.out, "apps.md"), "w") as page:
        page.write("| app | OpenFlow | result |\n|---|---|---|\n")
        for app in chosen:
            result, detail = judged[app.name]
            counts[result] = counts.get(result, 0) + 1
            # What is refused as it should be is well, and what is left out is no check.
            if result != "LEFT OUT":
                shown = "OK" if result == "REFUSED" else result
                line = {"id": app.name, "result": shown, "detail": detail}
                results.write(json.dumps(line) + "\n")
            print(f"{result:9} {app.name}: {detail}")
            version = f"{app.version[0]}.{app.version[1]}" if not app.left_out else ""
            works = f"works; {app.note}" if app.note else "works"
            words = {"OK": works, "REFUSED": detail, "LEFT OUT": f"left out: {detail}"}
            page.write(f"| `{app.name}` | {version} | {words.get(result, 'does not work yet')} |\n")
    total = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    print(f"{total}; {time.monotonic() - began:.0f} s")
    return 1 if "FAIL" in counts else 0


if __name__ == "__main__":
    sys.exit(main())
