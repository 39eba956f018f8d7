#!/bin/bash
# Starts BOFUSS (ofsoftswitch13, OpenFlow 1.3) as a switch under test; see README.md about DUT_*.
#
#   BOFUSS          folder with its ofdatapath and ofprotocol (default: those in PATH)
set -eu
# 77: it cannot do that, and the last line says why.
cannot() {
  echo "$1"
  exit 77
}
PATH=${BOFUSS:+$BOFUSS:}$PATH
command -v ofdatapath ofprotocol >/dev/null ||
  cannot "no programs ofdatapath and ofprotocol: build BOFUSS, then BOFUSS=FOLDER"
[ "${DUT_OFP:-OpenFlow13}" = OpenFlow13 ] || cannot "is measured with OpenFlow 1.3"
[ "${DUT_FAIL_MODE:-secure}" = secure ] || cannot "does not learn by itself"
[ "${DUT_WORKERS:-1}" = 1 ] || cannot "forwards with one thread"
socket=${DUT_DIR:?}/datapath.sock
dpid=${DUT_DPID:-0000000000000001}
# Without a LOCAL port it needs no tap device; its datapath id has twelve digits.
ofdatapath --no-slicing --no-local-port -d "${dpid:4}" --interfaces="${DUT_PORTS// /,}" \
  "punix:$socket" &
datapath=$!
# A signal between fork and exec is lost, so one is sent until both are gone.
end() {
  for _ in $(seq 100); do
    kill $datapath $protocol 2>/dev/null || return 0
    sleep 0.05
  done
}
trap end EXIT
protocol=
for _ in $(seq 200); do
  [ ! -S "$socket" ] || break
  sleep 0.1
done
ofprotocol "unix:$socket" "${DUT_CONTROLLER:?}" --out-of-band --fail=closed &
protocol=$!
# SIGTERM ends both, and so does the end of one of them.
trap 'exit 0' TERM INT
wait -n $datapath $protocol
