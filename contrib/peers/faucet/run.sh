#!/bin/bash
# The Faucet controller drives a switch: VLANs, isolation, routing, ACL, port down, restart.
#
#   run.sh [-o OUTDIR] [-w HARDWARE] [-V VENV] COMMAND...
#
# HARDWARE is Faucet's word for the switch (default "Open vSwitch"; "GenericTFM" makes Faucet send
# table features first). Faucet comes from PyPI into VENV (default ~/.cache/weir-faucet).
# COMMAND gets DUT_PORTS="dut1 dut2 dut3 dut4", DUT_CONTROLLER=tcp:127.0.0.1:6653, DUT_DPID, DUT_OFP
# (OpenFlow13), DUT_OFP_VERSION and DUT_DIR. Results: OUTDIR/results.jsonl, OUTDIR/summary.txt; exit
# code 1 when a check failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"

if [ "${1:-}" != --inner ]; then
  OUT=./out HARDWARE="Open vSwitch" VENV=${FAUCET_VENV:-$HOME/.cache/weir-faucet}
  while getopts o:w:V: option; do
    case $option in
      o) OUT=$OPTARG ;;
      w) HARDWARE=$OPTARG ;;
      V) VENV=$OPTARG ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  have ethtool ethtool
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  if [ ! -x "$VENV/bin/faucet" ]; then
    python3 -m venv "$VENV"
    "$VENV/bin/pip" install -q faucet==1.10.12
  fi
  export OUT HARDWARE VENV
  exec unshare --net --pid --fork --mount-proc --kill-child bash "$0" --inner "$@"
fi
shift

ip link set lo up
DUT_DIR=$(mktemp -d "${TMPDIR:-/tmp}/faucet-dut.XXXXXX")
export DUT_DIR
work=$(mktemp -d "${TMPDIR:-/tmp}/faucet-run.XXXXXX")
trap 'rm -rf "$DUT_DIR" "$work"' EXIT
address=(none 10.0.100.1 10.0.100.2 10.0.200.3 10.0.100.4)
gateway=(none 10.0.100.254 10.0.100.254 10.0.200.254 10.0.100.254)
declare -a host
for number in 1 2 3 4; do
  host[number]=$(new_namespace)
  ip link add "dut$number" type veth peer name eth0 netns "${host[number]}"
  quiet "dut$number"
  at=(nsenter -t "${host[number]}" -n)
  "${at[@]}" ip link set lo up
  "${at[@]}" ip link set eth0 address "02:00:00:00:00:0$number"
  quiet eth0 "${host[number]}"
  "${at[@]}" ip addr add "${address[number]}/24" dev eth0
  "${at[@]}" ip route add default via "${gateway[number]}"
done
sed "s/HARDWARE/$HARDWARE/" "$here/faucet.yaml" >"$work/faucet.yaml"

start_faucet() {
  FAUCET_CONFIG=$work/faucet.yaml FAUCET_LOG=$OUT/faucet.log FAUCET_EVENT_SOCK=0 \
    FAUCET_EXCEPTION_LOG=$OUT/faucet_exception.log PATH=$VENV/bin:$PATH \
    "$VENV/bin/faucet" --ryu-ofp-tcp-listen-port=6653 --ryu-ofp-listen-host=127.0.0.1 \
    >"$OUT/faucet.out" 2>&1 &
  faucet=$!
}

# check ID EXPECTED COMMAND...: EXPECTED is 0 (must succeed) or 1 (must fail).
check() {
  local id=$1 expected=$2 code=0 result=OK
  shift 2
  "$@" >"$work/output" 2>&1 || code=1
  [ "$code" = "$expected" ] || result=FAIL
  echo "{\"id\": \"$id\", \"result\": \"$result\"}" | tee -a "$OUT/results.jsonl"
}

on() {
  local number=$1
  shift
  nsenter -t "${host[number]}" -n "$@"
}

pings() {
  on "$1" ping -c 3 -i 0.5 -W 2 "$2" | grep -qE '[1-3] received'
}

# transfers FROM TO PORT: two megabytes over TCP, checked at the far end.
transfers() {
  on "$2" timeout 15 python3 "$here/transfer.py" serve "$3" &
  local server=$!
  sleep 0.7
  if ! on "$1" timeout 8 python3 "$here/transfer.py" send "${address[$2]}" "$3"; then
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    return 1
  fi
  wait "$server"
}

export DUT_OFP=OpenFlow13 DUT_OFP_VERSION=1.3 DUT_PORTS="dut1 dut2 dut3 dut4"
export DUT_DPID=0000000000000001 DUT_CONTROLLER=tcp:127.0.0.1:6653
export DUT_MAX_BACKOFF="${DUT_MAX_BACKOFF:-1}"
: >"$OUT/faucet.log"
: >"$OUT/results.jsonl"
start_faucet
sleep 6
start_dut "$OUT/dut.log" "$@"
for _ in $(seq 60); do
  grep -q 'DPID 1 (0x1).*Cold start' "$OUT/faucet.log" && break
  sleep 0.5
done
sleep 4

check cold_start 0 grep -q 'Cold start configuring DP' "$OUT/faucet.log"
check l2_ping_h1_h2 0 pings 1 10.0.100.2
check l2_ping_h4_h1 0 pings 4 10.0.100.1
on 3 ip addr add 10.0.100.33/24 dev eth0 # same subnet, other VLAN: must not be reachable
check vlan_isolation_h1_h3 1 pings 1 10.0.100.33
on 3 ip addr del 10.0.100.33/24 dev eth0
check vip_ping_h1 0 pings 1 10.0.100.254
check vip_ping_h3 0 pings 3 10.0.200.254
check route_h1_h3 0 pings 1 10.0.200.3
check route_h3_h4 0 pings 3 10.0.100.4
check tcp_2MB_h1_h2 0 transfers 1 2 5001
check tcp_2MB_routed_h1_h3 0 transfers 1 3 5001
check acl_blocked_h4_h1_5555 1 transfers 4 1 5555
check acl_allowed_h4_h1_5556 0 transfers 4 1 5556
ip link set dut2 down
sleep 2
check port_down_unreachable 1 pings 1 10.0.100.2
ip link set dut2 up
sleep 4
check port_up_reachable 0 pings 1 10.0.100.2
kill "$faucet" 2>/dev/null || true
wait "$faucet" 2>/dev/null || true
sleep 1
check controller_gone_l2_stays 0 pings 1 10.0.100.2
start_faucet
sleep 14
check controller_back_l2 0 pings 1 10.0.100.2
check controller_back_route 0 pings 1 10.0.200.3

kill "$faucet" 2>/dev/null || true
end_dut
cp "$DUT_DIR/vswitchd.log" "$OUT/" 2>/dev/null || true
failed=$(grep -c '"FAIL"' "$OUT/results.jsonl" || true)
echo "OK $(grep -c '"OK"' "$OUT/results.jsonl" || true) FAIL $failed" | tee "$OUT/summary.txt"
[ "$failed" = 0 ]
