#!/bin/sh
# Frames that a switch with --state loses while it is killed or restarted under traffic: 100,000
# flow entries, 200,000 frames a second of 100 flows, between two veths. As root:
#
#     WEIR=target/release/weir contrib/packaging/restart.sh
#
# RATE (200kpps), FLOWS (100), ENTRIES (100000) and SECONDS_EACH (6) change the run. Each line is a
# run: `none` ends nothing, and shows what the testbed itself loses; `unkept` is SIGKILL without a
# BPF file system, so without the kept tier.
RATE=${RATE:-200kpps} FLOWS=${FLOWS:-100} ENTRIES=${ENTRIES:-100000}
SECONDS_EACH=${SECONDS_EACH:-6}
# shellcheck source=contrib/packaging/traffic.sh
. "$(dirname "$0")/traffic.sh"
mount -t bpf bpf /sys/fs/bpf

start() {
    begin --dpid a1 --port 1=af_packet:va --port 2=af_packet:vb --fail-mode secure \
        --state /run/state
}

awk -v n="$ENTRIES" 'BEGIN { for (i = 0; i < n; i++)
    printf "ip,nw_dst=10.%d.%d.%d,actions=output:2\n", i / 65536, i / 256 % 256, i % 256
}' >/run/flows
stream "$FLOWS"
start
"$WEIR" ctl --control /run/control add-flows /run/flows

send 3 >/run/sent
for run in none KILL USR2 unkept; do
    if [ "$run" = unkept ]; then
        end TERM
        umount /sys/fs/bpf
        start
        send 2 >/run/sent
    fi
    send "$SECONDS_EACH" >/run/sent &
    sending=$!
    sleep $((SECONDS_EACH / 2))
    from=$(date +%s%N)
    case $run in
    none) ;;
    unkept) end KILL && start ;;
    *) end "$run" && start ;;
    esac
    took=$((($(date +%s%N) - from) / 1000000))
    wait $sending
    report "$run" "$took ms from the signal until ready" </run/sent
done
end TERM
