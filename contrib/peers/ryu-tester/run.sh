#!/bin/bash
# The Ryu switch tester, as packaged in os-ken, against any OpenFlow switch.
#
#   run.sh [-o OUTDIR] [-v 10|13|14] [-k REGEX] [-x REGEX] [-V VENV] [-b] [-n] [-s] COMMAND...
#
#     -o OUTDIR   where results go (default ./out)
#     -v VERSION  version of the protocol and of the test set (default 13)
#     -k, -x      only, or not, the test files whose path matches, such as -k of13/match/ -x /meter/
#     -b          do not compare burst_size of meter bands without OFPMF_BURST
#     -n          keep the tester's own packet sender, which is slower than it should be
#     -s          as packaged: without the repairs that osken_run.py describes
#     -V VENV     virtual environment to make or reuse (default ~/.cache/weir-ryu-tester)
#
# COMMAND runs in a fresh network and process namespace; it gets DUT_PORTS="dut1 dut2 dut3",
# DUT_CONTROLLER=tcp:127.0.0.1:6653, DUT_DPID=0000000000000001, DUT_OFP, DUT_OFP_VERSION and DUT_DIR
# and is ended with SIGTERM. The tester's second switch is Open vSwitch with its cache off.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"

if [ "${1:-}" != --inner ]; then
  OUT=./out VERSION=13 ONLY='' SKIP='' EXTRA=''
  VENV=${RYU_TESTER_VENV:-$HOME/.cache/weir-ryu-tester}
  while getopts o:v:k:x:V:bns option; do
    case $option in
      o) OUT=$OPTARG ;;
      v) VERSION=$OPTARG ;;
      k) ONLY=$OPTARG ;;
      x) SKIP=$OPTARG ;;
      V) VENV=$OPTARG ;;
      b) EXTRA="$EXTRA --ignore-burst" ;;
      n) EXTRA="$EXTRA --no-pace" ;;
      s) EXTRA="$EXTRA --no-fixes" ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  have ovs-vswitchd openvswitch-switch
  have ethtool ethtool
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  if ! "$VENV/bin/python" -c 'import os_ken' 2>/dev/null; then
    python3 -m venv "$VENV"
    "$VENV/bin/pip" install -q os-ken==4.2.2
  fi
  export OUT VERSION ONLY SKIP EXTRA VENV
  exec unshare --net --pid --fork --mount-proc --kill-child bash "$0" --inner "$@"
fi
shift

case $VERSION in
  10 | 13 | 14) export DUT_OFP=OpenFlow$VERSION DUT_OFP_VERSION=${VERSION:0:1}.${VERSION:1} ;;
  *)
    echo "$0: -v is 10, 13 or 14, not $VERSION" >&2
    exit 2
    ;;
esac
ip link set lo up
# Each case connects anew; long waits would only add up.
export DUT_MAX_BACKOFF="${DUT_MAX_BACKOFF:-1}"
DUT_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ryu-dut.XXXXXX")
tester_dir=$(mktemp -d "${TMPDIR:-/tmp}/ryu-tester.XXXXXX")
trap 'rm -rf "$DUT_DIR" "$tester_dir"' EXIT

# Two Open vSwitch daemons cannot share a network namespace: the tester's switch has its own.
tester_ns=$(new_namespace)
at_tester=(nsenter -t "$tester_ns" -n)
for number in 1 2 3; do
  ip link add "dut$number" type veth peer name "tst$number" netns "$tester_ns"
  quiet "dut$number"
  quiet "tst$number" "$tester_ns"
done
ip link add mgm0 type veth peer name mgm1 netns "$tester_ns"
quiet mgm0
quiet mgm1 "$tester_ns"
ip addr add 192.0.2.1/30 dev mgm0
"${at_tester[@]}" ip addr add 192.0.2.2/30 dev mgm1
"${at_tester[@]}" ip link set lo up

DUT_DIR=$tester_dir DUT_PORTS="tst1 tst2 tst3" DUT_DPID=0000000000000002 DUT_OFP=OpenFlow13 \
  DUT_BRIDGE=tbr OVS_CACHE=no DUT_CONTROLLER=tcp:192.0.2.1:6653 \
  "${at_tester[@]}" "$here/../ovs-private.sh" &
tester_switch=$!

export DUT_DIR DUT_PORTS="dut1 dut2 dut3" DUT_DPID=0000000000000001
export DUT_CONTROLLER=tcp:127.0.0.1:6653
tests=$("$VENV/bin/python" -c \
  'import os, os_ken.tests.switch as s; print(os.path.dirname(s.__file__))')/of$VERSION
began=$(date +%s)
# shellcheck disable=SC2086
"$VENV/bin/python" "$here/osken_run.py" --out "$OUT/results.jsonl" \
  --only "$ONLY" --skip "$SKIP" $EXTRA -- \
  --ofp-listen-host 0.0.0.0 --ofp-tcp-listen-port 6653 --test-switch-dir "$tests" \
  --test-switch-target-version "openflow$VERSION" --test-switch-tester-version openflow13 \
  >"$OUT/tester.log" 2>&1 &
application=$!
sleep 2
start_dut "$OUT/dut.log" "$@"
code=0
wait "$application" || code=$?
end_dut
kill "$tester_switch" 2>/dev/null || true
wait "$tester_switch" 2>/dev/null || true
cp "$tester_dir/vswitchd.log" "$OUT/tester-vswitchd.log" 2>/dev/null || true
cp "$DUT_DIR/"*.log "$OUT/" 2>/dev/null || true
"$VENV/bin/python" "$here/summary.py" "$OUT/results.jsonl" --version "$VERSION" \
  --seconds $(($(date +%s) - began)) | tee "$OUT/summary.txt"
exit $code
