#!/bin/sh
# The cost of the journal of --state: 100,000 flow entries are added, and each is deleted again, by
# a switch without a journal and by one with it, in turns. As root:
#
#     WEIR=target/release/weir contrib/packaging/journal.sh
#
# ENTRIES (100000) and TURNS (5) change the run. A line is a switch: flow-mods that it carries out
# in a second, from the start of `weir ctl` to the answer of the last barrier, and its own time on a
# CPU for each, which has no time of `weir ctl` in it; both are medians of the turns.
ENTRIES=${ENTRIES:-100000} TURNS=${TURNS:-5}
# shellcheck source=contrib/packaging/traffic.sh
. "$(dirname "$0")/traffic.sh"

for command in add delete_strict; do
    awk -v n="$ENTRIES" -v command="$command" 'BEGIN { for (i = 0; i < n; i++)
        printf "%s priority=7,ip,nw_dst=10.%d.%d.%d%s\n", command,
            i / 65536, i / 256 % 256, i % 256, command == "add" ? ",actions=output:2" : ""
    }' >"/run/$command"
done

cpu() { awk '{ print $14 + $15 }' "/proc/$switch/stat"; } # in clock ticks, of user and system

for turn in $(seq "$TURNS"); do
    for run in without journal; do
        state=
        [ "$run" = without ] || state="--state /run/state"
        # shellcheck disable=SC2086
        begin --dpid a1 --port 1=af_packet:va --port 2=af_packet:vb --fail-mode secure $state
        before=$(cpu) from=$(date +%s%N)
        "$WEIR" ctl --control /run/control add-flows /run/add
        "$WEIR" ctl --control /run/control add-flows /run/delete_strict
        echo "$run $(($(date +%s%N) - from)) $(($(cpu) - before))" >>/run/turns
        end TERM
        rm -rf /run/state
    done
done
python3 -c '
import os, statistics, sys
mods = 2 * int(sys.argv[1])
turns = [line.split() for line in open("/run/turns")]
medians = {}
for run in ("without", "journal"):
    mine = [(int(ns), int(ticks)) for name, ns, ticks in turns if name == run]
    ns, ticks = (statistics.median(column) for column in zip(*mine))
    cpu_us = ticks / os.sysconf("SC_CLK_TCK") / mods * 1e6
    medians[run] = ns, cpu_us
    print(f"{run:8} {mods / ns * 1e9:,.0f} flow-mods/s, {cpu_us:.2f} us of a CPU each")
slower, dearer = (after / before - 1 for before, after in zip(*medians.values()))
print(f"the journal: {slower:+.1%} of time, {dearer:+.1%} of CPU")' "$ENTRIES"
