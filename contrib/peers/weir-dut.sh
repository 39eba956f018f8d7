#!/bin/bash
# Starts `weir switch` as a switch under test: what it should be stands in the environment.
#
#   DUT_PORTS       interfaces that become OpenFlow ports 1, 2, 3... in this order
#   DUT_CONTROLLER  tcp:HOST:PORT entries, blank separated, to connect to (may be empty)
#   DUT_LISTEN      ptcp:PORT:HOST on which to accept OpenFlow connections (may be empty)
#   DUT_DPID        datapath id, 16 hex digits
#   DUT_OFP         OpenFlow10, OpenFlow13, or a comma separated list
#   DUT_DIR         scratch folder
#   DUT_LOCAL       interface that becomes the LOCAL port (default none)
#   DUT_WORKERS     threads that forward (default 1)
#   DUT_FAIL_MODE   secure (default) or standalone: what it does without a controller
#   DUT_MAX_BACKOFF most seconds between two attempts to connect, such as 0.5 (default: 8)
#   WEIR            the program; default: the release build, else the debug build, else `weir`
#
# Runs in the foreground until SIGTERM; the shell is replaced, so signals reach the switch itself.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
if [ -z "${WEIR:-}" ]; then
  WEIR=weir
  for built in "$target/release/weir" "$target/debug/weir"; do
    if [ -x "$built" ]; then
      WEIR=$built
      break
    fi
  done
fi
arguments=(switch --dpid "${DUT_DPID:-0000000000000001}" --protocols "${DUT_OFP:-OpenFlow13}")
arguments+=(--fail-mode "${DUT_FAIL_MODE:-secure}" --workers "${DUT_WORKERS:-1}")
if [ -n "${DUT_MAX_BACKOFF:-}" ]; then
  arguments+=(--max-backoff "$DUT_MAX_BACKOFF")
fi
number=1
for interface in ${DUT_PORTS:-}; do
  arguments+=(--port "$number=af_packet:$interface")
  number=$((number + 1))
done
if [ -n "${DUT_LOCAL:-}" ]; then
  arguments+=(--local "af_packet:$DUT_LOCAL")
fi
for controller in ${DUT_CONTROLLER:-}; do
  arguments+=(--controller "$controller")
done
if [ -n "${DUT_LISTEN:-}" ]; then
  arguments+=(--listen "$DUT_LISTEN")
fi
if [ -n "${DUT_DIR:-}" ]; then
  arguments+=(--control "$DUT_DIR/weir.ctl")
fi
exec "$WEIR" "${arguments[@]}"
