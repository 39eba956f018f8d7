#!/bin/sh
# Frames that a switch with --state loses while it is killed or restarted under traffic: 100,000
# flow entries, 200,000 frames a second of 100 flows, between two veths. As root:
#
#     WEIR=target/release/weir contrib/packaging/restart.sh
#
# RATE (200kpps), FLOWS (100), ENTRIES (100000) and SECONDS_EACH (6) change the run. All of it is in
# namespaces of its own and goes with them. Each line is a run: `none` ends nothing, and shows what
# the testbed itself loses; `unkept` is SIGKILL without a BPF file system, so without the kept tier.
set -eu

if [ "${1:-}" != inside ]; then
    WEIR=$(realpath "${WEIR:-target/release/weir}")
    export WEIR
    exec unshare --net --mount --pid --fork --kill-child "$(realpath "$0")" inside
fi

RATE=${RATE:-200kpps} FLOWS=${FLOWS:-100} ENTRIES=${ENTRIES:-100000}
SECONDS_EACH=${SECONDS_EACH:-6}
mount -t tmpfs none /run
mount -t proc none /proc
mount -t bpf bpf /sys/fs/bpf
ip link set lo up
ip netns add hosts
for end in a b; do
    ip link add "v$end" type veth peer name "h$end" netns hosts
    ip -n hosts link set "h$end" up
    ip link set "v$end" up
done
mac=$(ip netns exec hosts cat /sys/class/net/hb/address)

begin() {
    "$WEIR" switch --dpid a1 --port 1=af_packet:va --port 2=af_packet:vb --fail-mode secure \
        --state /run/state --control /run/control 2>/run/log &
    switch=$!
    until grep -qs ready /run/log; do kill -0 "$switch" && sleep 0.01; done
}

end() { # signal
    kill "-$1" "$switch"
    wait "$switch" || true
    : >/run/log
}

awk -v n="$ENTRIES" 'BEGIN { for (i = 0; i < n; i++)
    printf "ip,nw_dst=10.%d.%d.%d,actions=output:2\n", i / 65536, i / 256 % 256, i % 256
}' >/run/flows
last=10.0.$(((FLOWS - 1) / 256)).$(((FLOWS - 1) % 256))
cat >/run/stream.toml <<END
[[streams]]
name = "known"
packet = "eth(dst=$mac)/ipv4(src=192.0.2.1,dst=10.0.0.0)/udp(src=1,dst=2)"
size = 64
rate = "$RATE"
modifiers = [
    { field = "ipv4.dst", op = "increment", min = "10.0.0.0", max = "$last" },
]
END
begin
"$WEIR" ctl --control /run/control add-flows /run/flows

send() { # seconds
    ip netns exec hosts "$WEIR" gen run /run/stream.toml --port af_packet:ha --port af_packet:hb \
        --duration "$1" --quiet --json
}

report() { # run, ms without a process
    python3 -c '
import json, sys
streams = json.load(sys.stdin)["statistics"]["streams"]
sent, lost = (sum(stream[key] for stream in streams) for key in ("sent", "lost"))
rate = float(sys.argv[3])
print(f"{sys.argv[1]:7} sent {sent}, lost {lost}, or {lost / rate * 1e3:.0f} ms of frames;"
      f" {sys.argv[2]} ms from the signal until ready")' "$1" "$2" "$(rate)" </run/sent
}

rate() { echo "$RATE" | sed 's/kpps$/e3/; s/Mpps$/e6/; s/pps$//'; }

send 3 >/run/sent
for run in none KILL USR2 unkept; do
    if [ "$run" = unkept ]; then
        end TERM
        umount /sys/fs/bpf
        begin
        send 2 >/run/sent
    fi
    send "$SECONDS_EACH" >/run/sent &
    sending=$!
    sleep $((SECONDS_EACH / 2))
    from=$(date +%s%N)
    case $run in
    none) ;;
    unkept) end KILL && begin ;;
    *) end "$run" && begin ;;
    esac
    took=$((($(date +%s%N) - from) / 1000000))
    wait $sending
    report "$run" "$took"
done
end TERM
