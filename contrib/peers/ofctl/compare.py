#!/usr/bin/env python3
"""Runs every command of commands.tsv, and compares what two switches or two clients answer.

usage: compare.py run OUT.jsonl SWITCH VERSION [WEIR]
       compare.py table ONE.jsonl OTHER.jsonl EXPLAINED.tsv [--clients] [--markdown]

`run` runs the commands with ovs-ofctl, or with `WEIR ctl`, and appends one JSON line a command: id,
exit code, output.  `table` compares two of these without what no two switches can have alike
(transaction numbers, durations, the order of entries), and says of each command whether it is the
same, differs as EXPLAINED.tsv says, or differs.  With --clients the two are of two clients, whose
words for what is refused are their own.  It ends with 1 when a difference is not explained, or when
an explanation is no longer needed.
"""
import difflib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 15

# What no two switches have alike.
NORMAL = [
    (r"\(xid=0x[0-9a-f]+\)", "(xid)"),
    (r" ?(duration|idle_age|hard_age)[=:][0-9.?]+s?,?", ""),
    (r"[0-9.]+ ms", "N ms"),
    (r" \(\d+ packets/s\).*", ""),
    (r"\d{4}-\d\d-\d\dT[0-9:.]+Z\|\d+\|", ""),
    (r"(tcp|unix):[^ ,:]+(:\d+)?", "SWITCH"),
    (r"[ \t]+$", ""),
]

# What is left out of the comparison on purpose, and why.
LEFT_OUT = [
    # Open vSwitch cannot be without a LOCAL port; Weir has it when it is configured.
    (r"^ LOCAL\(.*\n(     .*\n?)*", ""),
    (r"^  port LOCAL: .*\n( {11}.*\n?)*", ""),
    (r"(reply \(.*\): )\d+ (ports|queues)", r"\1 N \2"),
    # The medium and the highest rate of a veth, which has none.
    (r"GB-FD COPPER$", "GB-FD"),
    (r"\d+ Mbps max$", "- Mbps max"),
    # How much of a packet a controller gets that never said.
    (r"^(OFPT_GET_CONFIG_REPLY .*miss_send_len=)(0|128)$", r"\1-"),
    # Nicira's packet-in where the switch has it.
    (r"^(?:NXT_PACKET_IN2|OFPT_PACKET_IN) (.*): (cookie=0x0 )?", r"OFPT_PACKET_IN \1: "),
    (r"^.*terminating with signal 15.*$", ""),
    # Counters that a veth does not have: zero, or not kept.
    (r"(frame|over|crc|coll)=(0|\?)", r"\1=-"),
    # An error quotes at least 64 bytes of the message; how many is free.
    (r"^(OFPT_ERROR .*\n)(.*\n?)*", r"\1"),
]

# What two clients say in their own words: that something was refused by the switch, and why; and
# that a text was not understood, where ours says where.
CLIENTS = [
    (r"^OFPT_ERROR \(.*\): (\w+)$", r"REFUSED \1"),
    (r"^(?:weir ctl: |\S+:\d+: )?the switch refuses it: (\w+).*$", r"REFUSED \1"),
    (r"^(?:ovs-ofctl|weir ctl): .*\n(?:  .*\n +\^\n)?", "NOT DONE\n"),
    (r"xid=[0-9a-f]{8}", "xid"),
]


def commands(version):
    """Yields (id, words) of the commands for a version."""
    with open(os.path.join(HERE, "commands.tsv")) as lines:
        for line in lines:
            if line.startswith("#") or not line.strip():
                continue
            name, versions, words = line.rstrip("\n").split("\t")
            if version in versions.split(","):
                yield name, words.split(" ")


def write_files(folder):
    with open(folder + "/flows.txt", "w") as f:
        f.write("priority=7,in_port=1,actions=output:2\n")
        f.write("priority=8,in_port=2,actions=output:1\n")
        f.write("priority=9,ip,nw_dst=10.0.0.0/24,actions=drop\n")
    with open(folder + "/other.txt", "w") as f:
        f.write("priority=7,in_port=1,actions=output:3\n")
        f.write("priority=8,in_port=2,actions=output:1\n")
        f.write("priority=11,arp,actions=flood\n")
    with open(folder + "/commands.txt", "w") as f:
        f.write("# by their names\n\nadd priority=60,dl_type=0x88d0,actions=output:1\n")
        f.write("add priority=60,dl_type=0x88d1,actions=output:1  # and a comment\n")
        f.write("modify_strict priority=60,dl_type=0x88d0,actions=output:2\n")
        f.write("delete dl_type=0x88d1\n")
    with open(folder + "/bad.txt", "w") as f:
        f.write("priority=61,dl_type=0x88d2,actions=output:1\n")
        f.write("priority=61,colour=red,actions=output:1\n")
    with open(folder + "/groups.txt", "w") as f:
        f.write("group_id=20,type=all,bucket=actions=output:1\n")
        f.write("group_id=21,type=indirect,bucket=actions=output:2\n")


def send(port, frame):
    """A frame into a port of the switch, from the far end of its wire."""
    frame = bytes.fromhex(frame)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((f"p{port}", 0))
        wire.send(frame + bytes(max(0, 60 - len(frame))))


def in_ctl(words):
    """A command of ovs-ofctl as one of `weir ctl`: options stand behind the command, and the switch
    is an option."""
    options = [w for w in words if w.startswith("-")]
    words = [w for w in words if not w.startswith("-")]
    switch = []
    if words[1:] and words[1].startswith("tcp:"):
        switch = ["--switch", words.pop(1)]
    return switch + words + options


def run_one(words, version, weir):
    arguments = ["ovs-ofctl", "-O", "OpenFlow" + version]
    if weir:
        arguments = [weir, "ctl", "-O", "OpenFlow" + version]
    elif version == "10":
        # Else ovs-ofctl asks for Nicira's formats where it finds them.
        arguments += ["-F", "OpenFlow10"]
    seconds, port, frame = LIMIT_S, None, None
    if words[0] == "@send":
        send(words[1], words[2])
        # The switch has it within this; both are given the same.
        time.sleep(1.2)
        words = words[3:]
    elif words[0] == "@monitor":
        seconds, port, frame, words = float(words[1]), words[2], words[3], words[4:]
    if weir:
        words = in_ctl(words)
    process = subprocess.Popen(arguments + words, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if port is not None:
        time.sleep(seconds / 2)
        send(port, frame)
    try:
        text = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.terminate()
        text = process.communicate()[0]
        return (0 if port is not None else 124), text
    return process.returncode, text


def run(out, switch, version, weir=None):
    with tempfile.TemporaryDirectory() as folder, open(out, "a") as results:
        os.environ["OVS_RUNDIR"] = folder
        write_files(folder)
        for name, words in commands(version):
            words = [w.replace("$S", switch).replace("$T", folder) for w in words]
            code, text = run_one(words, version, weir)
            text = text.replace(folder, "$T")
            results.write(json.dumps({
                "id": f"OF{version}/{name}", "code": code, "text": text,
                "command": " ".join(words).replace(folder, "$T")}) + "\n")


def normal(record, clients):
    text = record["text"]
    for expression, instead in NORMAL + LEFT_OUT + (CLIENTS if clients else []):
        text = re.sub(expression, instead, text, flags=re.M)
    lines = [re.sub(" +", " ", line) for line in text.split("\n") if line.strip()]
    if re.search("dump-(flows|groups|group-stats|meters)|meter-stats|diff-flows|traffic-",
                 record["id"]):
        lines.sort()
    return lines + ([] if record["code"] == 0 else [f"exit code {record['code']}"])


def read(path):
    with open(path) as lines:
        return {record["id"]: record for record in map(json.loads, lines)}


def explanations(path):
    """{id: why}; an id may stand for both versions as `*/name`."""
    found = {}
    with open(path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, why = line.rstrip("\n").split("\t")
                found[name] = why
    return found


def table(one, other, explained, markdown, clients):
    ours, theirs, why = read(one), read(other), explanations(explained)
    needed, counts, failed = set(), {"same": 0, "explained": 0, "DIFFERENT": 0}, False
    rows = []
    for name in ours:
        missing = {"id": name, "text": "", "code": 1}
        mine, yours = normal(ours[name], clients), normal(
            theirs.get(name, missing), clients)
        if mine == yours:
            counts["same"] += 1
            continue
        key = next((k for k in (name, "*/" + name.split("/")[1]) if k in why), None)
        verdict = "explained" if key else "DIFFERENT"
        counts[verdict] += 1
        rows.append((name, verdict, why.get(key, "")))
        if key:
            needed.add(key)
        else:
            failed = True
            print(f"{name}: ovs-ofctl {ours[name]['command']}")
            for line in difflib.unified_diff(mine, yours, one, other, lineterm="", n=0):
                print("   ", line)
    for key in sorted(set(why) - needed):
        failed = True
        print(f"{key} stands in {os.path.basename(explained)} but does not differ: delete it")
    if markdown:
        print("| command | why it differs |\n|---|---|")
        grouped = {}
        for name, _, reason in rows:
            grouped.setdefault(reason, []).append(name)
        for reason, names in grouped.items():
            print("| " + ", ".join(f"`{n}`" for n in names) + f" | {reason} |")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if failed else 0


def main():
    if sys.argv[1] == "run":
        run(*sys.argv[2:])
        return 0
    paths = [a for a in sys.argv[2:] if not a.startswith("--")]
    return table(*paths, "--markdown" in sys.argv, "--clients" in sys.argv)


sys.exit(main())
