#!/usr/bin/env bash
# Weir beside Open vSwitch (user-space datapath), each with a database of its own: the time of
# `ovs-vsctl` until it returns, and what frames notice. As root, with Debian's openvswitch-switch
# and iperf3; all of it goes with the script.
#
#   contrib/openvswitch/measure.sh add-port [PORTS]    add-port of a veth, in turns
#   contrib/openvswitch/measure.sh bridges [BRIDGES]   bridges with two internal ports, one command,
#                                                      without a daemon and with each; CPU of the
#                                                      daemon at rest afterwards
#   contrib/openvswitch/measure.sh patch [ROUNDS]      TCP through two bridges with a patch port,
#                                                      and through one: Weir alone
#   contrib/openvswitch/measure.sh database [KPPS]     frames lost while the database is stopped,
#                                                      killed and replaced: Weir alone
#   contrib/openvswitch/measure.sh bundle [ENTRIES]    commit of a bundle of so many flow-mods, nine
#                                                      times for each; frames lost meanwhile: one
#                                                      that saw half of a bundle would be one
#
# WEIR names the program, else the first one of PATH; OVS the daemon of Open vSwitch.
set -euo pipefail

if [ -z "${INSIDE-}" ]; then
    INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi
WEIR=${WEIR:-$(command -v weir || true)}
OVS=${OVS:-/usr/lib/openvswitch-switch/ovs-vswitchd}
[ -x "$OVS" ] || OVS=/usr/sbin/ovs-vswitchd
schema=/usr/share/openvswitch/vswitch.ovsschema
export PATH="$PATH:/usr/sbin:/sbin"
mount -t tmpfs none /run
ip link set lo up

start() { # weir, ovs, or none for a database without a daemon
    export OVS_RUNDIR=/run/$1 OVS_LOGDIR=/run/$1 OVS_DBDIR=/run/$1 OVS_SYSCONFDIR=/run/$1
    mkdir "/run/$1"
    ovsdb-tool create "/run/$1/conf.db" $schema
    ovsdb-server "/run/$1/conf.db" "--remote=punix:/run/$1/db.sock" --pidfile --detach \
        --no-chdir -vconsole:off
    of "$1" --no-wait init
    case $1 in
        weir) "$WEIR" vswitchd "unix:/run/$1/db.sock" --pidfile --detach --log-file -vconsole:off ;;
        ovs) "$OVS" "unix:/run/$1/db.sock" -vconsole:off --pidfile --detach --log-file \
            --disable-system ;;
    esac
}

of() { # weir, ovs or none, words of ovs-vsctl
    local whose=$1; shift
    ovs-vsctl --timeout=120 "--db=unix:/run/$whose/db.sock" "$@"
}

timed() { # command: sets `took`, in milliseconds
    local begin=$EPOCHREALTIME end
    "$@"
    end=$EPOCHREALTIME
    took=$(awk -v a="$begin" -v b="$end" 'BEGIN { printf "%.1f", 1000 * (b - a) }')
}

quantiles() { # file with a time on each line
    sort -n "$1" | awk '
        { at[NR] = $1 }
        function of(share,   rank) { rank = int(share * NR); return at[rank + (rank < share * NR)] }
        END { printf "p50 %.1f ms, p99 %.1f ms, most %.1f ms", of(0.5), of(0.99), at[NR] }'
}

signal() { # weir or ovs, a signal to its daemon
    kill "-$2" "$(cat "/run/$1/ovs-vswitchd.pid")"
}

add_ports() { # how many
    local nth whose other
    for whose in weir ovs; do
        start $whose
        of $whose add-br "br-$whose" -- set bridge "br-$whose" datapath_type=netdev
        for nth in $(seq "$1"); do
            ip link add "$whose$nth" type veth peer name "$whose${nth}far"
            ip link set "$whose$nth" up
            ip link set "$whose${nth}far" up
        done
    done
    for nth in $(seq "$1"); do
        # Each is as often the first one.
        for whose in $([ $((nth % 2)) = 0 ] && echo weir ovs || echo ovs weir); do
            # Neither what the one does after its answer is the other's time, nor how it takes the
            # kernel's news of the other's port.
            sleep 0.2
            other=$([ $whose = ovs ] && echo weir || echo ovs)
            signal $other STOP
            timed of $whose add-port "br-$whose" "$whose$nth"
            signal $other CONT
            echo "$took" >> "/run/$whose/times"
        done
    done
    for whose in weir ovs; do
        echo "$whose: $1 times add-port: $(quantiles "/run/$whose/times")"
    done
}

cpu() { # weir or ovs: milliseconds of CPU that the daemon has used
    awk -v tick="$(getconf CLK_TCK)" '{ print int(1000 * ($14 + $15) / tick) }' \
        "/proc/$(cat "/run/$1/ovs-vswitchd.pid")/stat"
}

host() { # name, address: its device is eth0, and v-NAME here
    ip netns add "$1"
    ip link add "v-$1" type veth peer name eth0 netns "$1"
    ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    ip -n "$1" addr add "$2/24" dev eth0
    ip -n "$1" link set eth0 up
    ip link set "v-$1" up
}

reached() { ip netns exec "$1" ping -q -c 1 -W 1 "$2" >/dev/null; }

within() { # seconds, command
    local nth seconds=$1; shift
    for nth in $(seq $((10 * seconds))); do
        if "$@"; then return; fi
        sleep 0.1
    done
    echo "not within $seconds s: $*"
    return 1
}

gbps() { # from, to: of one TCP connection
    ip netns exec "$1" iperf3 -c "$2" -t 5 -J | awk '
        /"sum_received"/ { seen = 1 }
        seen && /"bits_per_second"/ { printf "%.2f", $2 / 1e9; exit }'
}

through_patch() { # rounds
    local nth
    start weir
    host a 10.0.0.1; host b 10.0.0.2; host c 10.0.0.3
    of weir add-br one -- add-port one v-a -- add-port one v-b -- add-br two -- add-port two v-c \
        -- add-port one here -- set Interface here type=patch options:peer=there \
        -- add-port two there -- set Interface there type=patch options:peer=here
    for nth in b c; do ip netns exec $nth iperf3 -s -D >/dev/null; done
    within 30 reached a 10.0.0.2
    within 30 reached a 10.0.0.3
    for nth in $(seq "$1"); do
        echo "one bridge $(gbps a 10.0.0.2) Gbit/s, two joined by a patch port" \
            "$(gbps a 10.0.0.3) Gbit/s"
    done
}

count() { ip netns exec "$1" awk -v at="$2" '/eth0:/ { print $at }' /proc/net/dev; }

serve_again() {
    ovsdb-server /run/weir/conf.db --remote=punix:/run/weir/db.sock --pidfile --detach --no-chdir \
        -vconsole:off
}

without_database() { # thousands of packets per second
    local nth generator
    sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    start weir
    host a 10.0.0.1; host b 10.0.0.2
    of weir add-br one -- add-port one v-b -- add-port one v-a
    within 30 reached a 10.0.0.2
    paced "$1"
    # The first frames of a flow take another way.
    (send --duration 1) >/run/gen 2>&1 || true
    sleep 1
    local sent_before came_before
    sent_before=$(count a 11) came_before=$(count b 3)
    send >/run/gen 2>&1 &
    generator=$!
    sleep 2
    kill -STOP "$(cat /run/weir/ovsdb-server.pid)"
    sleep 2
    kill -CONT "$(cat /run/weir/ovsdb-server.pid)"
    timed of weir add-br stopped
    echo "stopped and continued: add-br after $took ms"
    kill -KILL "$(cat /run/weir/ovsdb-server.pid)"
    sleep 2
    serve_again
    timed of weir add-br killed
    echo "killed and started again: add-br after $took ms"
    mv /run/weir/db.sock /run/weir/old.sock
    kill -KILL "$(cat /run/weir/ovsdb-server.pid)"
    serve_again
    timed of weir add-br replaced
    echo "its socket replaced: add-br after $took ms"
    sleep 1
    kill -INT $generator
    # Nothing comes back to it, which it reports as lost.
    wait $generator || true
    sleep 1
    echo "$(($(count a 11) - sent_before)) frames sent," \
        "$(($(count a 11) - sent_before - $(count b 3) + came_before)) lost"
}

add_bridges() { # how many
    local nth whose before words=()
    for nth in $(seq "$1"); do
        words+=(-- add-br "b$nth" -- set bridge "b$nth" datapath_type=netdev)
        for port in p q; do
            words+=(-- add-port "b$nth" "$port$nth" -- set Interface "$port$nth" type=internal)
        done
    done
    start none
    timed of none --no-wait "${words[@]}"
    echo "no daemon, ovs-vsctl and its database alone: $took ms"
    for whose in weir ovs; do
        start $whose
        timed of $whose "${words[@]}"
        echo "$whose: $1 bridges with two ports each by one command: $took ms"
        sleep 5
        before=$(cpu "$whose")
        sleep 10
        echo "$whose: at rest $(($(cpu "$whose") - before)) ms of CPU in 10 s"
        kill "$(cat "/run/$whose/ovs-vswitchd.pid")"
        while [ -e "/run/$whose/ovs-vswitchd.pid" ]; do sleep 0.1; done
    done
}

paced() { # thousands of packets per second, from a to b
    cat > /run/paced.toml <<END
[[streams]]
packet = "eth(dst=$(ip netns exec b cat /sys/class/net/eth0/address))/ipv4(dst=10.0.0.2)/udp"
rate = "$1kpps"
END
}

send() { # further options
    exec ip netns exec a "$WEIR" gen run /run/paced.toml --port af_packet:eth0 --quiet "$@"
}

commits() { # socket of the bridge, entries, commits: the time of each, in milliseconds
    python3 - "$@" <<'END'
import socket, struct, sys, time

def message(kind, body, xid=1):
    return struct.pack("!BBHI", 5, kind, 8 + len(body), xid) + body

def matching(fields):
    body = b"".join(fields)
    return struct.pack("!HH", 1, 4 + len(body)) + body + bytes(-(4 + len(body)) % 8)

def flow_mod(command, table, priority, fields, instructions):
    return message(14, struct.pack(
        "!QQBBHHHIIIHH", 0, 0, table, command, 0, 0, priority, 0xffffffff, 0xffffffff, 0xffffffff,
        0, 0) + matching(fields) + instructions)

def apply(action):
    return struct.pack("!HHI", 4, 8 + len(action), 0) + action

def reg0(value):
    return struct.pack("!II", 0x00010004, value)

def bundle(kind):
    send(message(33, struct.pack("!IHH", 1, kind, 3)))
    return reply(33)

def send(frame):
    connection.sendall(frame)

def reply(wanted):
    while True:
        head = read(8)
        _, kind, length, xid = struct.unpack("!BBHI", head)
        body = read(length - 8)
        if kind == 2:
            send(message(3, body, xid))
        elif kind == 1:
            sys.exit(f"error {body[:4].hex()}")
        elif kind == wanted:
            return

def read(count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            sys.exit("the connection ended")
        data += part
    return data

IP = struct.pack("!IH", 0x80000a02, 0x0800)
OUT = apply(struct.pack("!HHIHHI", 0, 16, 2, 0, 0, 0))
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
send(message(0, b""))
entries, rounds = int(sys.argv[2]), int(sys.argv[3])
for nth in range(rounds + 1):
    # The first entry says which of the second table's decides: both change in one bundle.
    to_reg0 = apply(struct.pack("!HH", 25, 16) + reg0(nth) + bytes(4))
    mods = [flow_mod(0, 1, 1, [reg0(nth)], OUT)]
    mods += [flow_mod(4, 1, 1, [reg0(nth - 1)], b"")] if nth else []
    for host in range(entries - len(mods) - 1):
        address = struct.pack("!II", 0x80001804, 0x0b000000 + host)
        mods.append(flow_mod(0, 2, 1 + nth, [IP, address], OUT))
    mods.append(flow_mod(0, 0, 1, [], to_reg0 + struct.pack("!HHB3x", 1, 8, 1)))
    bundle(0)
    send(b"".join(message(34, struct.pack("!IHH", 1, 0, 3) + one) for one in mods))
    bundle(2)
    begin = time.monotonic()
    bundle(4)
    if nth:
        print(f"{1000 * (time.monotonic() - begin):.1f}", flush=True)
    send(message(14, struct.pack(
        "!QQBBHHHIIIHH", 0, 0, 2, 3, 0, 0, 0, 0xffffffff, 0xffffffff, 0xffffffff, 0, 0)
        + matching([])) + message(20, b""))
    reply(21)
    time.sleep(1)
END
}

of_bundles() { # entries
    local whose nth sender sent came
    sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    host a 10.0.0.1; host b 10.0.0.2
    paced 100
    for whose in weir ovs; do
        start $whose
        of $whose add-br one -- set bridge one datapath_type=netdev \
            protocols=OpenFlow10,OpenFlow14 fail_mode=secure -- add-port one v-a \
            -- set Interface v-a ofport_request=1 -- add-port one v-b \
            -- set Interface v-b ofport_request=2
        commits "/run/$whose/one.mgmt" 10 1 >/run/times
        # The first frames of a flow take another way.
        (send --duration 1) >/run/gen 2>&1 || true
        sleep 1
        sent=$(count a 11) came=$(count b 3)
        send >/run/gen 2>&1 &
        sender=$!
        sleep 1
        commits "/run/$whose/one.mgmt" "$1" 9 >/run/times
        kill -INT $sender
        wait $sender || true
        sleep 1
        sent=$(($(count a 11) - sent)) came=$(($(count b 3) - came))
        echo "$whose: commit of $1 flow-mods $(quantiles /run/times); $sent frames sent," \
            "$((sent - came)) lost"
        kill "$(cat "/run/$whose/ovs-vswitchd.pid")"
        while [ -e "/run/$whose/ovs-vswitchd.pid" ]; do sleep 0.1; done
    done
}

if [ -n "${1-}" ] && [ ! -x "$WEIR" ]; then
    echo "no weir in PATH: WEIR=target/release/weir $0 $*" >&2
    exit 1
fi
case ${1-} in
    add-port) add_ports "${2:-40}" ;;
    bridges) add_bridges "${2:-1000}" ;;
    patch) through_patch "${2:-5}" ;;
    database) without_database "${2:-200}" ;;
    bundle) of_bundles "${2:-100000}" ;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
