#!/usr/bin/env python3
"""Runs a campaign of `weir lab` over a pool of machines, each job a task of Ray.

    python3 ray_campaign.py --out results --address auto -- E4 --dut weir,ovs --testbed kernel

What follows `--` are arguments of `weir lab run`; a job is a start of a switch (`weir lab jobs`). A
task takes all cores of a machine, so that a machine measures one job at a time. A job that fails is
measured again, wherever there is room. Its ledger is results/jobs/N.jsonl; jobs that have one are
not measured again. At the end `weir lab gather` makes one run of them. Each machine needs the same
`weir`, scenario files of one's own at the same path and, for network namespaces, root. Needs Ray
(PyPI, `ray`).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import ray


class JobFailed(Exception):
    """A job that is to be measured again: its number, its ledger, and the reason."""

    def __init__(self, number, ledger, reason):
        super().__init__(number, ledger, reason)
        self.number, self.ledger, self.reason = number, ledger, reason

    def __str__(self):
        return f"job {self.number}: {self.reason}"


def be_as_nice_as(niceness):
    """Takes back what Ray adds: its tasks run at niceness 15, and a measured switch with them."""
    if os.nice(0) <= niceness:
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    except PermissionError as error:
        raise RuntimeError(f"tasks run at niceness {os.nice(0)} here: start this machine's Ray "
                           "with RAY_worker_niceness=0, or as root") from error


def measure(weir, number, arguments, niceness):
    """Measures a job on this machine; its ledger."""
    be_as_nice_as(niceness)
    with tempfile.TemporaryDirectory() as out:
        command = [weir, "lab", "run", *arguments, "--job", str(number), "--quiet", "--out", out]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        path = pathlib.Path(out, "trials.jsonl")
        ledger = path.read_text() if path.exists() else ""
    if done.returncode != 0:
        raise JobFailed(number, ledger, done.stderr.strip() or f"exit {done.returncode}")
    return ledger


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
        sys.exit(f"the machines have {sorted(cores)} cores: a job that takes the fewest would "
                 "share a larger machine; use a pool of equal machines")
    return cores.pop()


def run(jobs, folder, weir, arguments, retries):
    """Measures the jobs that have no ledger; the ledgers of those that failed every time."""
    cores = cores_of_a_machine()
    task = ray.remote(num_cpus=cores, max_retries=retries, retry_exceptions=True)(measure)
    left = [job for job in range(jobs) if not (folder / f"{job}.jsonl").exists()]
    waiting = {task.remote(weir, job, arguments, os.nice(0)): job for job in left}
    left_out, failed = jobs - len(waiting), []
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1)
        job = waiting.pop(done[0])
        try:
            write(folder / f"{job}.jsonl", ray.get(done[0]))
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            print(f"job {job} failed in {retries + 1} measurements: {cause}", file=sys.stderr)
            if isinstance(cause, JobFailed) and cause.ledger:
                failed.append(folder / f"{job}.failed")
                write(failed[-1], cause.ledger)
        except ray.exceptions.RayError as error:
            print(f"job {job}: {error}", file=sys.stderr)
        through = jobs - len(waiting)
        print(f"{through} of {jobs} jobs, {left_out} of them measured before")
    return failed


def main():
    """Reads the arguments; the exit code is that of `weir lab gather`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the results")
    parser.add_argument("--address", help="the Ray cluster; without it, this machine alone")
    parser.add_argument("--weir", default="weir", help="the program, at the same path everywhere")
    parser.add_argument("--retries", type=int, default=2, help="measurements after a failed one")
    parser.add_argument("arguments", nargs="+", help="after --: arguments of `weir lab run`")
    options = parser.parse_args()
    folder = options.out / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run([options.weir, "lab", "jobs", *options.arguments],
                            stdout=subprocess.PIPE, text=True, check=False)
    if listed.returncode != 0:
        sys.exit(listed.returncode)
    ray.init(address=options.address, include_dashboard=False, log_to_driver=False)
    jobs = len(listed.stdout.splitlines())
    failed = run(jobs, folder, options.weir, options.arguments, options.retries)
    ray.shutdown()
    ledgers = sorted(folder.glob("*.jsonl")) + failed
    sys.exit(subprocess.call([options.weir, "lab", "gather", "--out", options.out, *ledgers]))


if __name__ == "__main__":
    main()
