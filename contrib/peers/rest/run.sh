#!/bin/bash
# Puts the same requests to Ryu's REST server and to Weir's, each over `weir switch`, and compares
# the answers field by field.
#
#   run.sh [-o OUTDIR] [-s 'ofctl topology firewall qos router'] [-v '10 13'] [-V VENV] [-r]
#
#     -o OUTDIR    where results go (default ./out)
#     -s, -v       which suites, and over which versions of OpenFlow
#     -V VENV      virtual environment of Ryu to make or reuse (default ~/.cache/weir-ryu-4.34)
#     -r           ask Weir only, and compare with Ryu's answers of the last run
#
# WEIR is the program; default: `weir`. Results: OUTDIR/ryu.jsonl, OUTDIR/weir.jsonl,
# OUTDIR/compare.txt. Exit code 1 when something differs that explained.tsv does not explain.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"
export PYTHONDONTWRITEBYTECODE=1

# start_server SERVER SUITE: starts the controller under test; sets server_pid.
start_server() {
  local apps=(ryu.app.ofctl_rest) more=()
  case $1-$2 in
    ryu-topology) apps=(ryu.app.rest_topology ryu.app.ofctl_rest) more=(--observe-links) ;;
    weir-topology) more=(--observe-links) ;;
    ryu-firewall) apps=(ryu.app.rest_firewall) ;;
    ryu-qos) apps=(ryu.app.rest_qos) ;;
    ryu-router) apps=(ryu.app.rest_router) ;;
  esac
  case $1 in
    ryu)
      setsid "$VENV/bin/python" "$here/ryu_run.py" --ofp-tcp-listen-port 6653 \
        --wsapi-host 127.0.0.1 --wsapi-port 8080 "${more[@]}" "${apps[@]}" \
        >>"$OUT/ryu.log" 2>&1 &
      ;;
    weir)
      setsid "${WEIR:-weir}" controller idle --listen tcp:127.0.0.1:6653 --rest 127.0.0.1:8080 \
        "${more[@]}" >>"$OUT/weir.log" 2>&1 &
      ;;
  esac
  server_pid=$!
}

# end_group PID: SIGTERM to a session, SIGKILL after 3 s.
end_group() {
  kill -TERM -- "-$1" 2>/dev/null || true
  for _ in $(seq 30); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL -- "-$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

# inside SERVER: all suites and versions of one server, in the namespaces of this process.
inside() {
  local suite version number first second
  ip link set lo up
  export DUT_PORTS="dut1 dut2 dut3" DUT_DPID=0000000000000001 DUT_MAX_BACKOFF=0.2
  export DUT_CONTROLLER=tcp:127.0.0.1:6653
  : >"$OUT/$1.jsonl"
  for suite in $SUITES; do
    for version in $VERSIONS; do
      for number in 1 2 3; do
        ip link add "dut$number" address "02:00:00:00:01:0$number" type veth \
          peer name "p$number" address "02:00:00:00:02:0$number"
        quiet "dut$number"
        quiet "p$number"
      done
      export DUT_OFP=OpenFlow$version DUT_OFP_VERSION=${version:0:1}.${version:1}
      DUT_DIR=$(mktemp -d "${TMPDIR:-/tmp}/rest-compare.XXXXXX")
      export DUT_DIR
      start_server "$1" "$suite"
      start_dut "$OUT/dut-$1-$version.log" "$here/../weir-dut.sh"
      first=$dut second=
      if [ "$suite" = topology ]; then
        # The other end of the first one's third port is a port of another switch.
        mkdir "$DUT_DIR/second"
        DUT_PORTS=p3 DUT_DPID=0000000000000002 DUT_DIR=$DUT_DIR/second \
          start_dut "$OUT/dut-second-$1-$version.log" "$here/../weir-dut.sh"
        second=$dut
      fi
      python3 "$here/ask.py" "$OUT/$1.jsonl" "$suite" "$version" 127.0.0.1:8080 || failed=1
      for dut in $first $second; do
        end_dut
      done
      end_group "$server_pid"
      for number in 1 2 3; do
        ip link del "dut$number"
      done
      rm -rf "$DUT_DIR"
    done
  done
}

if [ "${1:-}" = --inner ]; then
  failed=0
  inside "$2"
  exit "$failed"
fi
OUT=./out SUITES='ofctl topology firewall qos router' VERSIONS='10 13' ONLY_WEIR=
VENV=${RYU_VENV:-$HOME/.cache/weir-ryu-4.34}
while getopts o:s:v:V:r option; do
  case $option in
    o) OUT=$OPTARG ;;
    s) SUITES=$OPTARG ;;
    v) VERSIONS=$OPTARG ;;
    V) VENV=$OPTARG ;;
    r) ONLY_WEIR=1 ;;
    *) exit 2 ;;
  esac
done
have ethtool ethtool
have python3 python3-venv
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
rm -f "$OUT"/*.log
[ -n "$ONLY_WEIR" ] || "$here/ryu_venv.sh" "$VENV"
export OUT SUITES VERSIONS VENV
namespaces=(unshare --net --pid --fork --mount-proc --kill-child)
[ -n "$ONLY_WEIR" ] || "${namespaces[@]}" bash "$0" --inner ryu
"${namespaces[@]}" bash "$0" --inner weir
code=0
python3 "$here/compare.py" "$OUT/ryu.jsonl" "$OUT/weir.jsonl" "$here/explained.tsv" --markdown \
  >"$OUT/compare.txt" || code=$?
cat "$OUT/compare.txt"
exit $code
