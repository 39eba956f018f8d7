#!/bin/bash
# Starts Lagopus (raw-socket build, OpenFlow 1.3) as a switch under test; see README.md about DUT_*.
#
#   LAGOPUS         the program (default: lagopus)
set -eu
# 77: it cannot do that, and the last line says why.
cannot() {
  echo "$1"
  exit 77
}
lagopus=$(command -v "${LAGOPUS:-lagopus}") ||
  cannot "no program ${LAGOPUS:-lagopus}: build Lagopus without DPDK, then LAGOPUS=PATH"
[ "${DUT_OFP:-OpenFlow13}" = OpenFlow13 ] || cannot "is measured with OpenFlow 1.3"
[ "${DUT_FAIL_MODE:-secure}" = secure ] || cannot "does not learn by itself"
[ "${DUT_WORKERS:-1}" = 1 ] || cannot "its raw-socket build forwards with one thread"
IFS=: read -r protocol address port <<<"${DUT_CONTROLLER:?}"
{
  echo "channel c create -dst-addr $address -dst-port $port -protocol $protocol"
  echo "controller o create -channel c -role equal -connection-type main"
  number=1 ports=
  for interface in ${DUT_PORTS:?}; do
    echo "interface i$number create -type ethernet-rawsock -device $interface"
    echo "port p$number create -interface i$number"
    ports="$ports -port p$number $number"
    number=$((number + 1))
  done
  dpid=${DUT_DPID:-0000000000000001}
  echo "bridge b create -controller o$ports -dpid 0x$dpid -fail-mode secure"
  echo "bridge b enable"
} >"${DUT_DIR:?}/lagopus.dsl"
exec "$lagopus" -d -C "$DUT_DIR/lagopus.dsl" -l "$DUT_DIR/lagopus.log"
