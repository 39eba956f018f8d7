#!/usr/bin/env bash
# The time of `ovs-vsctl` until it returns: Weir beside Open vSwitch (user-space datapath), each
# with a database of its own. As root, with Debian's openvswitch-switch; all of it goes with the
# script.
#
#   contrib/openvswitch/measure.sh add-port [PORTS]    add-port of a veth, in turns
#   contrib/openvswitch/measure.sh bridges [BRIDGES]   bridges with two internal ports, one command
#
# WEIR names the program, else the first one of PATH; OVS the daemon of Open vSwitch.
set -euo pipefail

if [ -z "${INSIDE-}" ]; then
    INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi
WEIR=${WEIR:-$(command -v weir)}
OVS=${OVS:-/usr/lib/openvswitch-switch/ovs-vswitchd}
[ -x "$OVS" ] || OVS=/usr/sbin/ovs-vswitchd
schema=/usr/share/openvswitch/vswitch.ovsschema
export PATH="$PATH:/usr/sbin:/sbin"
mount -t tmpfs none /run
ip link set lo up

start() { # weir or ovs
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

of() { # weir or ovs, words of ovs-vsctl
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

add_ports() { # how many
    local nth whose
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
        for whose in weir ovs; do
            # What the one does after its answer is not the other's time.
            sleep 0.2
            timed of $whose add-port "br-$whose" "$whose$nth"
            echo "$took" >> "/run/$whose/times"
        done
    done
    for whose in weir ovs; do
        echo "$whose: $1 times add-port: $(quantiles "/run/$whose/times")"
    done
}

add_bridges() { # how many
    local nth whose words=()
    for nth in $(seq "$1"); do
        words+=(-- add-br "b$nth" -- set bridge "b$nth" datapath_type=netdev)
        for port in p q; do
            words+=(-- add-port "b$nth" "$port$nth" -- set Interface "$port$nth" type=internal)
        done
    done
    for whose in weir ovs; do
        start $whose
        timed of $whose "${words[@]}"
        echo "$whose: $1 bridges with two ports each by one command: $took ms"
        kill "$(cat "/run/$whose/ovs-vswitchd.pid")"
        while [ -e "/run/$whose/ovs-vswitchd.pid" ]; do sleep 0.1; done
    done
}

case ${1-} in
    add-port) add_ports "${2:-40}" ;;
    bridges) add_bridges "${2:-1000}" ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
