#!/bin/bash
# Open vSwitch's own suites, as Debian's package openvswitch-source has them, with Weir as the
# daemon.
#
#   run.sh [-o OUTDIR] [-a] [-j JOBS] [-t SECONDS] [WEIR [CASE...]]
#
#     -o OUTDIR    where results go (default ./out)
#     -a           the cases too that lack something by cases.tsv
#     -j JOBS      cases at a time (default: twice the processors, since they mostly wait)
#     -t SECONDS   the longest time of a case (default 60)
#     WEIR         the program, or another daemon: /usr/lib/openvswitch-switch/ovs-vswitchd
#     CASE         testsuite:856, testsuite:856-870, userspace:2 (default: those of cases.tsv)
#
# Results: OUTDIR/results.jsonl, one line a case that is to pass; OUTDIR/log. Exit code 1 when one
# failed, or one passed that lacks something. The suites are unpacked, not installed, under
# $OVS_SUITE (default ~/.cache/weir-ovs-suite). Needs root; each case has namespaces and a memory
# disk of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"
# shellcheck source=contrib/peers/ovs-suite/unpack.sh
. "$here/unpack.sh"

if [ "${1:-}" != --inner ]; then
  OUT=./out
  MORE=()
  while getopts o:aj:t: option; do
    case $option in
      o) OUT=$OPTARG ;;
      a) MORE+=(--all) ;;
      j) MORE+=(--jobs "$OPTARG") ;;
      t) MORE+=(--limit "$OPTARG") ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  have ovs-vsctl openvswitch-switch
  have python3 python3
  WEIR=$(command -v "${1:-${WEIR:-weir}}")
  [ $# = 0 ] || shift
  mkdir -p "$OUT/bin" "$OUT/log"
  OUT=$(cd "$OUT" && pwd)
  ln -sf "$(realpath "$WEIR")" "$OUT/bin/ovs-vswitchd"
  unpack_ovs_suite
  export OUT SUITES EXTRA PYTHONDONTWRITEBYTECODE=1
  exec unshare --net --pid --mount --fork --mount-proc --kill-child bash "$0" --inner \
    "${MORE[@]}" "$@"
fi
shift
renice -n 5 $$ >/dev/null
exec python3 "$here/run.py" "$@"
