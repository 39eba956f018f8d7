#!/bin/bash
# Checks weir vswitchd with Mininet's own switch classes, unchanged: OVSSwitch and OVSBridge, which
# configure Open vSwitch's database by ovs-vsctl. Nothing of contrib/mininet is loaded. Then
# Debian's acceptance test of its package: two switches with seven hosts each, ping, iperf over UDP.
# Not iperf over TCP: Mininet waits there for a rate of its own probe, which iperf 2.1 leaves out.
#
#   stock.sh [-o OUTDIR] [WEIR]
#
# Mininet is unpacked from Debian's packages (see ../peers/mininet/unpack.sh); everything lives in
# one network and process namespace, with a database server of its own. Prints one line a run; exit
# code 1 when a packet was lost.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../peers/lib.sh"
# shellcheck source=contrib/peers/mininet/unpack.sh
. "$here/../peers/mininet/unpack.sh"
# shellcheck source=contrib/peers/ovs-suite/unpack.sh
. "$here/../peers/ovs-suite/unpack.sh"

if [ "${1:-}" != --inner ]; then
  OUT=./out
  while getopts o: option; do
    case $option in
      o) OUT=$OPTARG ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  have ethtool ethtool
  have ovs-vsctl openvswitch-switch
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  WEIR=$(realpath "$(command -v "${1:-${WEIR:-weir}}")")
  unpack_mininet
  unpack_ovs_suite
  export OUT WEIR SUITES
  exec unshare --net --pid --mount --fork --mount-proc --kill-child bash "$0" --inner
fi

mount -t tmpfs tmpfs /run
mkdir /run/netns
dir=$(mktemp -d "${TMPDIR:-/tmp}/weir-stock.XXXXXX")
export OVS_RUNDIR=$dir OVS_LOGDIR=$OUT OVS_DBDIR=$dir OVS_SYSCONFDIR=$dir
trap 'rm -rf "$dir"' EXIT
ip link set lo up
ovsdb-tool create "$dir/conf.db" /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server "$dir/conf.db" --remote=punix:"$dir/db.sock" --pidfile --detach --no-chdir \
  -vconsole:off
ovs-vsctl --no-wait init
ln -s "$WEIR" "$dir/ovs-vswitchd"
rm -f "$OUT/ovs-vswitchd.log"
"$dir/ovs-vswitchd" "unix:$dir/db.sock" --pidfile --detach --log-file -vconsole:off
failed=0
: >"$OUT/results.jsonl"

# run NAME ARGUMENTS...: Mininet with these; nothing may be dropped, and no bridge may stay behind.
run() {
  local name=$1 result=OK
  shift
  timeout 120 python3 "$(command -v mn)" "$@" >"$OUT/$name.log" 2>&1 || true
  grep -q 'Results: 0% dropped' "$OUT/$name.log" || result=FAIL failed=1
  [ -z "$(ovs-vsctl list-br)" ] || result=FAIL failed=1
  echo "{\"id\": \"stock/$name\", \"result\": \"$result\"}" | tee -a "$OUT/results.jsonl"
}

run minimal --test pingall
run single --topo single,4 --test pingall
run linear --topo linear,4 --test pingall
run tree --topo tree,2,3 --test pingall
run of13 --switch ovsk,protocols=OpenFlow13 --topo single,3 --test pingall
run standalone --switch ovsbr --controller none --topo tree,2 --test pingall

for test in testPingAll testIPerfUDP; do
  result=OK
  PYTHONDONTWRITEBYTECODE=1 timeout 120 python3 "$SUITES/debian/tests/openflow.py" \
    "BasicOpenflowTest.$test" >"$OUT/$test.log" 2>&1 || result=FAIL failed=1
  echo "{\"id\": \"debian/$test\", \"result\": \"$result\"}" | tee -a "$OUT/results.jsonl"
done
exit $failed
