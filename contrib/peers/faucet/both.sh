#!/bin/bash
# The Faucet suite with both hardware settings, one after the other.
#
#   both.sh [-o OUTDIR] [-V VENV] COMMAND...
#
# Results: OUTDIR/open-vswitch and OUTDIR/generic-tfm as run.sh writes them, and one line each.
# Exit code 1 when a check failed with either.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
OUT=./out EXTRA=()
while getopts o:V: option; do
  case $option in
    o) OUT=$OPTARG ;;
    V) EXTRA=(-V "$OPTARG") ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
code=0
for hardware in "Open vSwitch" GenericTFM; do
  case $hardware in
    GenericTFM) folder=generic-tfm ;;
    *) folder=open-vswitch ;;
  esac
  mkdir -p "$OUT/$folder"
  "$here/run.sh" -o "$OUT/$folder" -w "$hardware" "${EXTRA[@]}" "$@" >"$OUT/$folder/output" 2>&1 ||
    code=1
  echo "$hardware: $(cat "$OUT/$folder/summary.txt" 2>/dev/null || echo "no result")"
  grep -h FAIL "$OUT/$folder/results.jsonl" 2>/dev/null || true
done
exit $code
