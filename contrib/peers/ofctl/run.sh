#!/bin/bash
# Checks a switch with ovs-ofctl as the client.
#
#   run.sh [-o OUTDIR] [-v '10 11 12 13 14 15'] COMMAND...
#
# For each version COMMAND is started in a fresh network and process namespace with
# DUT_LISTEN=ptcp:6634:127.0.0.1, DUT_OFP, DUT_OFP_VERSION, DUT_PORTS="dut1 dut2 dut3",
# DUT_DPID=0000000000000001 and DUT_DIR, without a controller, and ended with SIGTERM.
# Results: OUTDIR/results.jsonl, one line a check; OUTDIR/summary.txt; OUTDIR/dut-VERSION.log.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"

if [ "${1:-}" != --inner ]; then
  OUT=./out VERSIONS='10 11 12 13 14 15'
  while getopts o:v: option; do
    case $option in
      o) OUT=$OPTARG ;;
      v) VERSIONS=$OPTARG ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  have ovs-ofctl openvswitch-common
  have python3 python3
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  export OUT VERSIONS
  exec unshare --net --pid --fork --mount-proc --kill-child bash "$0" --inner "$@"
fi
shift

ip link set lo up
for number in 1 2 3; do
  ip link add "dut$number" type veth peer name "p$number"
  quiet "dut$number"
  quiet "p$number"
done
export DUT_PORTS="dut1 dut2 dut3" DUT_DPID=0000000000000001
export DUT_LISTEN=ptcp:6634:127.0.0.1 DUT_CONTROLLER=
: >"$OUT/results.jsonl"
: >"$OUT/summary.txt"
for version in $VERSIONS; do
  export DUT_OFP=OpenFlow$version DUT_OFP_VERSION=${version:0:1}.${version:1}
  DUT_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ofctl-dut.XXXXXX")
  export DUT_DIR
  start_dut "$OUT/dut-$version.log" "$@"
  wait_port 6634 || true
  python3 "$here/run.py" "$OUT/results.jsonl" tcp:127.0.0.1:6634 "$version" |
    tee -a "$OUT/summary.txt"
  end_dut
  rm -rf "$DUT_DIR"
done
