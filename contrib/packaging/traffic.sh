# shellcheck shell=sh
# The testbed of the scripts beside it, which read this file: a switch between two veths, va and vb,
# and frames to it from a namespace that has their far ends. All of it is in namespaces of its own
# and goes with them. WEIR is the program (target/release/weir), RATE the frames a second.
set -eu

case ${1:-} in
inside) ;;
'')
    WEIR=$(realpath -m "${WEIR:-target/release/weir}")
    export WEIR
    [ -x "$WEIR" ] || { echo "$0: $WEIR is missing: cargo build --release" >&2; exit 2; }
    [ "$(id -u)" = 0 ] || { echo "$0: needs root" >&2; exit 2; }
    exec unshare --net --mount --pid --fork --kill-child "$(realpath "$0")" inside
    ;;
*)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] || exit 2
    exit
    ;;
esac

mount -t tmpfs none /run
mount -t proc none /proc
ip link set lo up
ip netns add hosts
for end in a b; do
    ip link add "v$end" type veth peer name "h$end" netns hosts
    ip -n hosts link set "h$end" up
    ip link set "v$end" up
done

begin() { # arguments of the switch
    : >/run/log
    "$WEIR" switch --control /run/control "$@" 2>/run/log &
    switch=$!
    until grep -qs ready /run/log; do
        kill -0 "$switch" || { cat /run/log; return 1; }
        sleep 0.01
    done
}

end() { # signal
    kill "-$1" "$switch"
    wait "$switch" || true
}

stream() { # flows: each has an address of its own, from 10.0.0.0 on
    mac=$(ip netns exec hosts cat /sys/class/net/hb/address)
    last=10.0.$((($1 - 1) / 256)).$((($1 - 1) % 256))
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
}

send() { # seconds
    ip netns exec hosts "$WEIR" gen run /run/stream.toml --port af_packet:ha --port af_packet:hb \
        --duration "$1" --quiet --json
}

report() { # of what was sent, on standard input: a line that begins with $1 and ends with $2
    python3 -c '
import json, sys
report = json.load(sys.stdin)
streams = report["statistics"]["streams"]
sent, lost = (sum(stream[key] for stream in streams) for key in ("sent", "lost"))
delay = streams[0]["arrivals"][0]["report"]["delay"]
at = {round(found["share"], 4): found["value_ns"] / 1e3 for found in delay["quantiles"]}
lost_ms = lost / sent * report["sending_s"] * 1e3
print(f"{sys.argv[1]:22} sent {sent}, lost {lost}, or {lost_ms:.0f} ms of frames; "
      f"delay p50 {at[0.5]:.0f} us, p99 {at[0.99]:.0f} us; {sys.argv[2]}")' "$1" "$2"
}
