#!/usr/bin/env python3
"""Runs a campaign of `weir lab` over a pool of machines, each cell a task of Ray.

    weir lab cells E4 --dut weir,ovs --testbed kernel > cells.jsonl
    python3 ray_campaign.py cells.jsonl --out results --address auto

A task takes all cores of a machine, so that a machine measures one cell at a time. A cell that
fails is measured again, wherever there is room. What a cell printed is results/cells/N.jsonl; cells
that have a good file there are not measured again. At the end `weir lab gather` makes the results.
Each machine needs the same `weir` and, for network namespaces, root. Needs Ray (PyPI, `ray`).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import ray


class CellFailed(Exception):
    """A cell that is to be measured again: its number, what it printed, and what it said."""

    def __init__(self, number, output, said):
        super().__init__(number, output, said)
        self.number, self.output, self.said = number, output, said

    def __str__(self):
        return f"cell {self.number}: {self.said}"


def be_as_nice_as(niceness):
    """Takes back what Ray adds: its tasks run at niceness 15, and a measured switch with them."""
    if os.nice(0) <= niceness:
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    except PermissionError as error:
        raise RuntimeError(f"tasks run at niceness {os.nice(0)} here: start this machine's Ray "
                           "with RAY_worker_niceness=0, or as root") from error


def measure(weir, number, line, niceness):
    """Measures a cell on this machine; what it printed."""
    be_as_nice_as(niceness)
    command = [weir, "lab", "cell", "--quiet"]
    done = subprocess.run(command, input=line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CellFailed(number, done.stdout, done.stderr.strip() or f"exit {done.returncode}")
    return done.stdout


def is_good(path):
    """Whether a file ends with the line of a cell that is through."""
    try:
        last = json.loads(path.read_text().splitlines()[-1])
    except (OSError, IndexError, ValueError):
        return False
    return last.get("line") == "end" and last.get("error") is None


def write(path, text):
    """Writes a file under its name only once it is whole."""
    part = path.with_suffix(".part")
    part.write_text(text)
    os.replace(part, path)


def cores_of_a_machine():
    """Cores of each machine of the pool, which must be the same for all."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    cores = {int(node["Resources"].get("CPU", 0)) for node in alive} - {0}
    if len(cores) != 1:
        sys.exit(f"the machines have {sorted(cores)} cores: a cell that takes the fewest would "
                 "share a larger machine; use a pool of equal machines")
    return cores.pop()


def run(cells, folder, weir, retries):
    """Measures the cells that have no good file; how many failed every time."""
    cores = cores_of_a_machine()
    task = ray.remote(num_cpus=cores, max_retries=retries, retry_exceptions=True)(measure)
    waiting = {}
    for line in cells:
        number = json.loads(line)["cell"]
        path = folder / f"{number}.jsonl"
        if not is_good(path):
            waiting[task.remote(weir, number, line, os.nice(0))] = (number, path)
    left_out = len(cells) - len(waiting)
    failed = 0
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1)
        number, path = waiting.pop(done[0])
        try:
            write(path, ray.get(done[0]))
        except ray.exceptions.RayTaskError as error:
            failed += 1
            cause = error.cause
            print(f"cell {number} failed in {retries + 1} measurements: {cause}", file=sys.stderr)
            if isinstance(cause, CellFailed):
                write(path, cause.output)
        except ray.exceptions.RayError as error:
            failed += 1
            print(f"cell {number}: {error}", file=sys.stderr)
        through = len(cells) - len(waiting)
        print(f"{through} of {len(cells)} cells, {left_out} of them measured before")
    return failed


def main():
    """Reads the arguments; the exit code is that of `weir lab gather`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=pathlib.Path, help="what `weir lab cells` printed")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the results")
    parser.add_argument("--address", help="the Ray cluster; without it, this machine alone")
    parser.add_argument("--weir", default="weir", help="the program, at the same path everywhere")
    parser.add_argument("--retries", type=int, default=2, help="measurements after a failed one")
    arguments = parser.parse_args()
    cells = [line for line in arguments.cells.read_text().splitlines() if line.strip()]
    folder = arguments.out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    ray.init(address=arguments.address, include_dashboard=False, log_to_driver=False)
    run(cells, folder, arguments.weir, arguments.retries)
    ray.shutdown()
    numbers = [json.loads(line)["cell"] for line in cells]
    files = [folder / f"{number}.jsonl" for number in numbers]
    command = [arguments.weir, "lab", "gather", "--out", arguments.out, arguments.cells]
    sys.exit(subprocess.call(command + [path for path in files if path.exists()]))


if __name__ == "__main__":
    main()
