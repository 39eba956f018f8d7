#!/bin/bash
# Compares what two switches answer to every command of ovs-ofctl that speaks 1.0 or 1.3, and what
# `weir ctl` prints with what ovs-ofctl prints, of the first switch.
#
#   compare.sh [-o OUTDIR] [-v '10 13'] [ONE [OTHER]]
#
# ONE and OTHER are commands for a switch under test, in one word each; default: ../weir-dut.sh and
# ../ovs-private.sh. Each runs in a network namespace of its own with the same three ports, the same
# addresses and the same commands in the same order. WEIR is the program; default: `weir`. Results:
# OUTDIR/one.jsonl, OUTDIR/other.jsonl and OUTDIR/compare.txt; OUTDIR/ctl.jsonl and OUTDIR/ctl.txt.
# Exit code 1 when something differs that explained.tsv, or explained-ctl.tsv, does not explain.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"

# inside RESULTS COMMAND [WEIR]: one switch, one client, all versions, in the namespaces of this
# process.
inside() {
  local results=$1 weir=${3:-} version number
  ip link set lo up
  export DUT_PORTS="dut1 dut2 dut3" DUT_DPID=0000000000000001
  export DUT_LISTEN=ptcp:6634:127.0.0.1 DUT_CONTROLLER='' DUT_BRIDGE=br0
  : >"$results"
  for version in $VERSIONS; do
    for number in 1 2 3; do
      ip link add "dut$number" address "02:00:00:00:01:0$number" type veth \
        peer name "p$number" address "02:00:00:00:02:0$number"
      quiet "dut$number"
      quiet "p$number"
    done
    export DUT_OFP=OpenFlow$version DUT_OFP_VERSION=${version:0:1}.${version:1}
    DUT_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ofctl-compare.XXXXXX")
    export DUT_DIR
    # shellcheck disable=SC2086
    start_dut "$results.$version.log" $2
    wait_port 6634 || true
    python3 "$here/compare.py" run "$results" tcp:127.0.0.1:6634 "$version" \
      ${weir:+"$weir"}
    end_dut
    for number in 1 2 3; do
      ip link del "dut$number"
    done
    rm -rf "$DUT_DIR"
  done
}

if [ "${1:-}" = --inner ]; then
  inside "$2" "$3" "${4:-}"
  exit
fi
OUT=./out VERSIONS='10 13'
while getopts o:v: option; do
  case $option in
    o) OUT=$OPTARG ;;
    v) VERSIONS=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
have ovs-ofctl openvswitch-common
have ovs-vswitchd openvswitch-switch
have ethtool ethtool
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
export VERSIONS
namespaces=(unshare --net --pid --fork --mount-proc --kill-child)
"${namespaces[@]}" bash "$0" --inner "$OUT/one.jsonl" "${1:-$here/../weir-dut.sh}"
"${namespaces[@]}" bash "$0" --inner "$OUT/other.jsonl" "${2:-$here/../ovs-private.sh}"
"${namespaces[@]}" bash "$0" --inner "$OUT/ctl.jsonl" "${1:-$here/../weir-dut.sh}" \
  "${WEIR:-weir}"
code=0
python3 "$here/compare.py" table "$OUT/one.jsonl" "$OUT/other.jsonl" "$here/explained.tsv" \
  >"$OUT/compare.txt" || code=$?
python3 "$here/compare.py" table "$OUT/ctl.jsonl" "$OUT/one.jsonl" "$here/explained-ctl.tsv" \
  --clients >"$OUT/ctl.txt" || code=$?
cat "$OUT/compare.txt" "$OUT/ctl.txt"
exit $code
