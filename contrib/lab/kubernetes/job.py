#!/usr/bin/env python3
"""Writes the manifest of a Kubernetes Job that measures a campaign of `weir lab`, a pod a job.

    jobs=$(weir lab jobs E4 --dut weir,ovs --testbed kernel | wc -l)
    python3 job.py "$jobs" --image weir:0.1 --cores 4 -- E4 --dut weir,ovs --testbed kernel |
        kubectl apply -f -

It prints an indexed Job as JSON. What follows `--` are arguments of `weir lab run`; a pod measures
a start of a switch. Requests and limits are the same whole number of cores, so that the kubelet's
static CPU manager gives each pod its own. The container is privileged: the lab makes network
namespaces and links. A pod whose job fails is started again, up to --retries times for each. The
image has `weir` and a shell; only what lies in it can be measured. Standard library only.
"""
import argparse
import json
import re

# A pod's index chooses its job; the program's end is the container's. The log is the job's ledger
# and nothing else; errors are the pod's termination message.
MEASURE = ('weir lab run "$@" --job "$JOB_COMPLETION_INDEX" --quiet --out /tmp/job'
           ' >/dev/null 2>/dev/termination-log; code=$?;'
           ' cat /tmp/job/trials.jsonl 2>/dev/null; exit "$code"')


def manifest(jobs, arguments, name, image, cores, memory, parallel, retries):
    """The Job for a campaign of so many jobs."""
    labels = {"app.kubernetes.io/name": "weir-lab", "app.kubernetes.io/instance": name}
    resources = {"cpu": str(cores), "memory": memory}
    container = {
        "name": "job",
        "image": image,
        "command": ["/bin/sh", "-c", MEASURE, "weir", *arguments],
        "resources": {"requests": dict(resources), "limits": dict(resources)},
        "securityContext": {
            "privileged": True,
            "capabilities": {"add": ["NET_ADMIN", "SYS_ADMIN"]},
        },
    }
    apart = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "weir-lab"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        # Two jobs on one machine would disturb each other even on cores of their own.
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
        },
        "containers": [container],
    }
    job = {
        "completionMode": "Indexed",
        "completions": jobs,
        "parallelism": min(parallel, jobs),
        "backoffLimitPerIndex": retries,
        "maxFailedIndexes": jobs,
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job}


def main():
    """Reads the arguments and prints the manifest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", type=int, help="number of lines of `weir lab jobs`")
    parser.add_argument("arguments", nargs="+", help="after --: arguments of `weir lab run`")
    parser.add_argument("--image", required=True, help="with weir and the switches under test")
    parser.add_argument("--name", default="weir-lab", help="of the Job")
    parser.add_argument("--cores", type=int, default=2, help="of each job, exclusive")
    parser.add_argument("--memory", default="4Gi", help="of each job")
    parser.add_argument("--parallel", type=int, default=1, help="jobs at once, one a machine")
    parser.add_argument("--retries", type=int, default=2, help="of each job that fails")
    arguments = parser.parse_args()
    if min(arguments.jobs, arguments.cores, arguments.parallel) < 1 or arguments.retries < 0:
        parser.error("jobs, --cores and --parallel are 1 or more, --retries is 0 or more")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", arguments.name):
        parser.error("--name has a to z, 0 to 9 and - only, 52 characters at most")
    made = manifest(arguments.jobs, arguments.arguments, arguments.name, arguments.image,
                    arguments.cores, arguments.memory, arguments.parallel, arguments.retries)
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
