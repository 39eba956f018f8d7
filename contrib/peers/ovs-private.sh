#!/bin/bash
# Starts Open vSwitch as a switch under test: a private ovsdb-server and ovs-vswitchd, user space
# datapath, one bridge. The system's own Open vSwitch is not touched: own database, sockets, folder.
# Runs in the foreground until SIGTERM or SIGINT, then ends what it started.
#
#   DUT_PORTS DUT_CONTROLLER DUT_LISTEN DUT_DPID DUT_OFP DUT_FAIL_MODE   as for weir-dut.sh
#   DUT_DIR         state folder (needed; created)
#   DUT_BRIDGE      name of the bridge (default br0)
#   DUT_PROBE_MS    inactivity probe of the control connection in milliseconds (default 30000)
#   OVS_CACHE       no (default): flow-limit=0, so that every packet sees the flow tables as they
#                   are now. yes: stock caching; a barrier does not wait for the revalidators, so a
#                   packet sent right after a flow-mod can meet an old entry
set -eu
# 77: it cannot do that, and the last line says why.
if [ "${DUT_WORKERS:-1}" != 1 ]; then
  echo "its main thread forwards between the kernel's devices, alone"
  exit 77
fi
dir=${DUT_DIR:?}
bridge=${DUT_BRIDGE:-br0}
mkdir -p "$dir"
export OVS_RUNDIR=$dir OVS_LOGDIR=$dir OVS_DBDIR=$dir OVS_SYSCONFDIR=$dir
db=unix:$dir/db.sock
vsctl=(ovs-vsctl "--db=$db")
switchd=
helper=

ovsdb-tool create "$dir/conf.db" /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server "$dir/conf.db" --remote=punix:"$dir/db.sock" --unixctl="$dir/ovsdb.ctl" \
  --no-chdir --log-file="$dir/ovsdb.log" -vconsole:off &
database=$!

end_all() {
  trap - EXIT TERM INT
  for process in $helper $switchd $database; do
    kill "$process" 2>/dev/null || true
  done
  wait 2>/dev/null
  exit 0
}
trap end_all EXIT TERM INT

# The socket's file is there a moment before the server listens on it.
for _ in $(seq 100); do
  "${vsctl[@]}" --no-wait init 2>/dev/null && break
  sleep 0.1
done
"${vsctl[@]}" --no-wait set Open_vSwitch . \
  other_config:n-handler-threads=1 other_config:n-revalidator-threads=1
if [ "${OVS_CACHE:-no}" != yes ]; then
  "${vsctl[@]}" --no-wait set Open_vSwitch . other_config:flow-limit=0
fi
ovs-vswitchd "$db" --disable-system --unixctl="$dir/vswitchd.ctl" --no-chdir \
  --log-file="$dir/vswitchd.log" -vconsole:off &
switchd=$!

ask=(-- --may-exist add-br "$bridge")
ask+=(-- set bridge "$bridge" datapath_type=netdev "fail_mode=${DUT_FAIL_MODE:-secure}")
ask+=("protocols=${DUT_OFP:-OpenFlow13}" "other_config:datapath-id=${DUT_DPID:-0000000000000001}")
ask+=(other_config:disable-in-band=true)
number=1
for interface in ${DUT_PORTS:-}; do
  ask+=(-- add-port "$bridge" "$interface" -- set interface "$interface" "ofport_request=$number")
  number=$((number + 1))
done
number=0
ids=
for peer in ${DUT_CONTROLLER:-} ${DUT_LISTEN:-}; do
  ask+=(-- "--id=@c$number" create controller "target=\"$peer\"" connection_mode=out-of-band)
  ask+=(max_backoff=1000 "inactivity_probe=${DUT_PROBE_MS:-30000}")
  ids="$ids,@c$number"
  number=$((number + 1))
done
[ -z "$ids" ] || ask+=(-- set bridge "$bridge" "controller=[${ids#,}]")
"${vsctl[@]}" "${ask[@]}" >/dev/null

# Open vSwitch 3.1.0 applies max_backoff only when the configuration changes while the connection is
# up; until then it backs off up to 8 s. So change it once it is up.
if [ -n "$ids" ]; then
  (
    for _ in $(seq 300); do
      sleep 0.2
      if grep -q 'rconn.*: connected' "$dir/vswitchd.log" 2>/dev/null; then
        for id in $("${vsctl[@]}" --bare --columns=_uuid list controller); do
          "${vsctl[@]}" set controller "$id" max_backoff=1500
        done
        break
      fi
    done
  ) &
  helper=$!
fi
touch "$dir/ready"
wait "$switchd"
