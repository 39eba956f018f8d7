#!/bin/bash
# Makes requests at random from Weir's own OpenAPI document, with Schemathesis, over `weir switch`.
#
#   fuzz.sh [-o OUTDIR] [-n EXAMPLES] [-s SEED] [-V VENV]
#
#     -o OUTDIR    where results go (default ./out)
#     -n EXAMPLES  requests for each endpoint, at most (default 5)
#     -s SEED      another seed gives other requests (default 1)
#     -V VENV      virtual environment of Schemathesis to make or reuse
#                  (default ~/.cache/weir-schemathesis-4.32.5)
#
# WEIR is the program; default: `weir`. Exit code 1 when an answer is not as the document says, a
# wrong request is taken, the server fails, or the switch is lost.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"

# What must hold of every answer. 501 is the answer to what the version has not.
CHECKS=not_a_server_error,status_code_conformance,content_type_conformance
CHECKS=$CHECKS,response_schema_conformance,negative_data_rejection,unsupported_method

if [ "${1:-}" = --inner ]; then
  ip link set lo up
  DUT_DIR=$(mktemp -d "${TMPDIR:-/tmp}/rest-fuzz.XXXXXX")
  trap 'rm -rf "$DUT_DIR"' EXIT
  for number in 1 2; do
    ip link add "dut$number" type veth peer name "p$number"
    quiet "dut$number"
    quiet "p$number"
  done
  export DUT_DIR DUT_PORTS="dut1 dut2" DUT_DPID=0000000000000001 DUT_OFP=OpenFlow13
  export DUT_CONTROLLER=tcp:127.0.0.1:6653 DUT_MAX_BACKOFF=0.2
  cd "$DUT_DIR"
  cp "$here/schemathesis.toml" .
  "${WEIR:-weir}" controller idle --listen tcp:127.0.0.1:6653 --rest 127.0.0.1:8080 \
    >"$OUT/fuzz-weir.log" 2>&1 &
  controller=$!
  start_dut "$OUT/fuzz-dut.log" "$here/../weir-dut.sh"
  wait_port 8080
  knows_switch() {
    for _ in $(seq 300); do
      python3 -c 'import sys, urllib.request as u
sys.exit(u.urlopen("http://127.0.0.1:8080/stats/switches", timeout=10).read() != b"[1]")' \
        2>/dev/null && return
      sleep 0.1
    done
    echo "the controller does not know the switch" >&2
    return 1
  }
  code=0
  knows_switch
  "$VENV/bin/schemathesis" run http://127.0.0.1:8080/openapi.json --checks "$CHECKS" \
    --max-examples "$EXAMPLES" --seed "$SEED" --continue-on-failure --no-color \
    --request-timeout 15 --no-shrink --generation-database none >"$OUT/fuzz.txt" 2>&1 || code=1
  # Whatever came, both are there and speak with each other.
  kill -0 "$controller" "$dut" || code=1
  knows_switch || code=1
  end_dut
  kill "$controller" 2>/dev/null || true
  wait "$controller" || code=1
  ! grep -n panicked "$OUT/fuzz-weir.log" "$OUT/fuzz-dut.log" || code=1
  exit "$code"
fi
OUT=./out EXAMPLES=5 SEED=1
VENV=${SCHEMATHESIS_VENV:-$HOME/.cache/weir-schemathesis-4.32.5}
while getopts o:n:s:V: option; do
  case $option in
    o) OUT=$OPTARG ;;
    n) EXAMPLES=$OPTARG ;;
    s) SEED=$OPTARG ;;
    V) VENV=$OPTARG ;;
    *) exit 2 ;;
  esac
done
have ethtool ethtool
have python3 python3-venv
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
if ! "$VENV/bin/python" -c 'import schemathesis' 2>/dev/null; then
  python3 -m venv "$VENV"
  "$VENV/bin/pip" install -q 'schemathesis==4.32.5'
fi
export OUT EXAMPLES SEED VENV
code=0
unshare --net --pid --fork --mount-proc --kill-child bash "$0" --inner || code=$?
tail -n 40 "$OUT/fuzz.txt"
exit "$code"
