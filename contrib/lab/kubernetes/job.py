#!/usr/bin/env python3
"""Writes the manifest of a Kubernetes Job that measures a campaign of `weir lab`, a pod a cell.

    weir lab cells E4 --dut weir,ovs --testbed kernel > cells.jsonl
    python3 job.py cells.jsonl --image weir:0.1 --cores 4 | kubectl apply -f -

It prints a ConfigMap with the cells and an indexed Job, JSON in a YAML stream. Requests and limits
are the same whole number of cores, so that the kubelet's static CPU manager gives each pod its own.
The container is privileged: the lab makes network namespaces and links. A pod whose cell fails is
started again, up to --retries times for each cell. The image has `weir` and a shell, gzip and sed;
only what lies in it can be measured. Standard library only.
"""
import argparse
import base64
import gzip
import json
import pathlib
import re
import sys

# A ConfigMap holds 1 MiB at most.
CONFIG_MAX = 1 << 20

# A pod's index chooses its line; the program's end is the container's. The log is what the cell
# printed and nothing else; what the program said is the pod's termination message.
MEASURE = ('gzip -dc /cells/cells.jsonl.gz | sed -n "$((JOB_COMPLETION_INDEX + 1))p"'
           " | weir lab cell --quiet 2>/dev/termination-log")


def manifest(cells, name, image, cores, memory, parallel, retries):
    """ConfigMap and Job for the lines of `weir lab cells`."""
    text = "".join(line + "\n" for line in cells).encode()
    packed = base64.b64encode(gzip.compress(text, mtime=0)).decode()
    if len(packed) > CONFIG_MAX * 9 // 10:
        sys.exit(f"the cells take {len(packed)} bytes and a ConfigMap holds {CONFIG_MAX}: run the "
                 "scenarios as Jobs of their own")
    labels = {"app.kubernetes.io/name": "weir-lab", "app.kubernetes.io/instance": name}
    resources = {"cpu": str(cores), "memory": memory}
    container = {
        "name": "cell",
        "image": image,
        "command": ["/bin/sh", "-c", MEASURE],
        "resources": {"requests": dict(resources), "limits": dict(resources)},
        "securityContext": {
            "privileged": True,
            "capabilities": {"add": ["NET_ADMIN", "SYS_ADMIN"]},
        },
        "volumeMounts": [{"name": "cells", "mountPath": "/cells", "readOnly": True}],
    }
    apart = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "weir-lab"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        # Two cells on one machine would disturb each other even on cores of their own.
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
        },
        "containers": [container],
        "volumes": [{"name": "cells", "configMap": {"name": name}}],
    }
    job = {
        "completionMode": "Indexed",
        "completions": len(cells),
        "parallelism": min(parallel, len(cells)),
        "backoffLimitPerIndex": retries,
        "maxFailedIndexes": len(cells),
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    meta = {"name": name, "labels": labels}
    data = {"cells.jsonl.gz": packed}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "binaryData": data},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job},
    ]


def main():
    """Reads the arguments and prints the manifest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=pathlib.Path, help="what `weir lab cells` printed")
    parser.add_argument("--image", required=True, help="with weir and the switches under test")
    parser.add_argument("--name", default="weir-lab", help="of Job and ConfigMap")
    parser.add_argument("--cores", type=int, default=2, help="of each cell, exclusive")
    parser.add_argument("--memory", default="4Gi", help="of each cell")
    parser.add_argument("--parallel", type=int, default=1, help="cells at once, one a machine")
    parser.add_argument("--retries", type=int, default=2, help="of each cell that fails")
    arguments = parser.parse_args()
    if arguments.cores < 1 or arguments.parallel < 1 or arguments.retries < 0:
        parser.error("--cores and --parallel are 1 or more, --retries is 0 or more")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", arguments.name):
        parser.error("--name has a to z, 0 to 9 and - only, 52 characters at most")
    cells = [line for line in arguments.cells.read_text().splitlines() if line.strip()]
    numbers = [json.loads(line)["cell"] for line in cells]
    if not cells:
        parser.error(f"{arguments.cells} has no cells")
    if numbers != sorted(set(numbers)):
        parser.error(f"{arguments.cells}: the cells are not in their order, each once")
    made = manifest(cells, arguments.name, arguments.image, arguments.cores, arguments.memory,
                    arguments.parallel, arguments.retries)
    print("\n---\n".join(json.dumps(document, indent=2) for document in made))


if __name__ == "__main__":
    main()
