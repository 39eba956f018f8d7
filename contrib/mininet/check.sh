#!/bin/bash
# Checks weir.py with Mininet itself: topologies, controllers and versions, each with pingall, then
# parameters, dpctl and loops (check.py).
#
#   check.sh [-o OUTDIR] [WEIR]
#
# Mininet is unpacked from Debian's packages (see ../peers/mininet/unpack.sh); everything lives in
# one network and process namespace. Prints one line a run; exit code 1 when a packet was lost.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../peers/lib.sh"
# shellcheck source=contrib/peers/mininet/unpack.sh
. "$here/../peers/mininet/unpack.sh"

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
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  WEIR=${1:-${WEIR:-weir}}
  unpack_mininet
  export OUT WEIR
  exec unshare --net --pid --mount --fork --mount-proc --kill-child bash "$0" --inner
fi

mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
OVS_RUNDIR=$(mktemp -d "${TMPDIR:-/tmp}/weir-mininet.XXXXXX")
export OVS_RUNDIR
trap 'rm -rf "$OVS_RUNDIR"' EXIT
failed=0
: >"$OUT/results.jsonl"

# run NAME ARGUMENTS...: Mininet with these in a network of its own; nothing may be dropped.
run() {
  local name=$1 result=OK
  shift
  # shellcheck disable=SC2016
  timeout 120 unshare --net bash -c 'ip link set lo up; exec python3 "$@"' bash \
    "$(command -v mn)" --custom "$here/weir.py" "$@" --test pingall \
    >"$OUT/$name.log" 2>&1 || true
  grep -q 'Results: 0% dropped' "$OUT/$name.log" || result=FAIL failed=1
  echo "{\"id\": \"mininet/$name\", \"result\": \"$result\"}" | tee -a "$OUT/results.jsonl"
}

run tree-2 --switch weir --topo tree,2
run linear-weir-controller --switch weir --controller weir --topo linear,4
run single-of13 --switch weir,protocols=OpenFlow13 --controller weir,protocols=OpenFlow13 \
  --topo single,3
run single-of10-hub --switch weir,protocols=OpenFlow10 --controller weir,app=hub --topo single,3
run tree-standalone --switch weirbr --controller none --topo tree,2
# shellcheck disable=SC2016
PYTHONDONTWRITEBYTECODE=1 timeout 300 unshare --net \
  bash -c 'ip link set lo up; exec python3 "$@"' bash "$here/check.py" 2>"$OUT/check.log" |
  grep '^{' | tee -a "$OUT/results.jsonl" || true
[ "$(grep -c '"result": "OK"' "$OUT/results.jsonl")" = 11 ] || failed=1
exit $failed
