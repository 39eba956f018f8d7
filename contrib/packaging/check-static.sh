#!/bin/bash
# Runs the static program where there is nothing else: no library, no shell, no /proc. It forwards
# the frames of a capture by a flow entry, and the command that adds the entry is the program, too.
#
#   check-static.sh PROGRAM [EMULATOR]
#
# EMULATOR is for a program of another machine, such as qemu-aarch64-static. As root the program
# runs in an empty root, else in this one. Exit code 1 when something fails.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
capture=$here/../generator/dns.pcap
program=$1 emulator=${2:-}

root=$(mktemp -d)
ended() {
  [ -z "${switch:-}" ] || kill "$switch" 2>/dev/null || true
  wait
  rm -rf "$root"
}
trap ended EXIT
cp "$program" "$root/weir"
cp "$capture" "$root/in.pcap"
[ -z "$emulator" ] || cp "$(command -v "$emulator")" "$root/emulator"
if [ "$(id -u)" = 0 ]; then
  at='' enter=(chroot "$root")
else
  at=$root enter=()
fi
run=("${enter[@]}" ${emulator:+"$at/emulator"} "$at/weir")
weir() { "${run[@]}" "$@"; }
within() { # seconds, command: until it succeeds
  local end=$((SECONDS + $1))
  shift
  until "$@" >"$root/log" 2>&1; do
    [ $SECONDS -lt $end ] || { echo "in vain: $*"; cat "$root/log"; return 1; }
    sleep 0.2
  done
}
ctl() { weir ctl --control "$at/ctl" "$@"; }
forwards() { ctl --json dump-ports 2 | grep -E '"tx_packets": ?[1-9]'; }

weir --version
"${run[@]}" switch --control "$at/ctl" --port "1=pcap:$at/in.pcap?loop=true&rate=1000" \
  --port "2=pcap:$at/out.pcap?write=true" &
switch=$!
within 120 ctl add-flow in_port=1,actions=output:2
within 120 forwards
kill "$switch"
wait "$switch"
switch=
# What has left is one of the frames of the capture, as it is.
hex() { od -An -v -tx1 | tr -d ' \n'; }
frame=$(tail -c +41 "$root/out.pcap" | head -c 60 | hex)
[ ${#frame} = 120 ] && hex <"$root/in.pcap" | grep -q "$frame"
echo "$(basename "$program") forwards"
