#!/bin/bash
# Mininet topologies with any switch, and ovs-testcontroller as the controller.
#
#   run.sh [-o OUTDIR] [-O OpenFlow13] [-t 'TOPOLOGY ...'] COMMAND...
#
# TOPOLOGY is what `mn --topo` takes, such as single,3 or linear,4 or tree,depth=2,fanout=2.
# For each: pingall twice, cold and warm; 0% dropped twice is a pass. Exit code 1 when one is not.
# Everything lives in one network and process namespace. Mininet and what it calls come from Debian
# packages that are unpacked, not installed, under $CACHE (default ~/.cache/weir-mininet).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"
# shellcheck source=contrib/peers/mininet/unpack.sh
. "$here/unpack.sh"

if [ "${1:-}" != --inner ]; then
  OUT=./out OFP=OpenFlow13 TOPOLOGIES='single,3 linear,4 tree,depth=2,fanout=3'
  while getopts o:O:t: option; do
    case $option in
      o) OUT=$OPTARG ;;
      O) OFP=$OPTARG ;;
      t) TOPOLOGIES=$OPTARG ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  unpack_mininet
  export OUT OFP TOPOLOGIES
  exec unshare --net --pid --mount --fork --mount-proc --kill-child bash "$0" --inner "$@"
fi
shift

ip link set lo up
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
command=
for word in "$@"; do
  command="$command $(printf %q "$word")"
done
export DUT_CMD=$command DUT_OFP=$OFP DUT_OFP_VERSION=${OFP:8:1}.${OFP:9:1}
: >"$OUT/summary.txt"
failed=0
for topology in $TOPOLOGIES; do
  ovs-testcontroller --unixctl=none -O "$OFP" ptcp:6653:127.0.0.1 >"$OUT/controller.log" 2>&1 &
  controller=$!
  wait_port 6653
  timeout 300 python3 "$(command -v mn)" --custom "$here/mn_dut.py" --switch dut \
    --controller remote,ip=127.0.0.1,port=6653 --topo "$topology" --mac \
    --test pingall --test pingall >"$OUT/mn-$topology.log" 2>&1 || true
  kill "$controller" 2>/dev/null || true
  wait "$controller" 2>/dev/null || true
  results=$(grep -h 'Results:' "$OUT/mn-$topology.log" | tr '\n' ' ' || true)
  echo "$topology $results" | tee -a "$OUT/summary.txt"
  [ "$(grep -c 'Results: 0% dropped' "$OUT/mn-$topology.log")" = 2 ] || failed=1
done
exit $failed
