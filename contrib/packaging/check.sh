#!/bin/bash
# Installs, uses, upgrades, removes and purges the debs in a bare Debian of its own, as an
# administrator would; the services run with the rights of their units, and no more.
#
#   check.sh [-o OUTDIR] [-r ROOT] DEB DEB_OF_OPENVSWITCH RPM RPM_OF_OPENVSWITCH
#
# ROOT, made by mmdebstrap where it is not there, is the bare Debian, ROOT-systemd one that boots,
# and ROOT-openvswitch one with Mininet and Open vSwitch, as the image of contrib/container; they
# are copied, never changed.
# Needs root. Prints one line a check; exit code 1 when one failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../peers/lib.sh"

CHECKS=46
first='' boot='' group=''

if [ "${1:-}" != --inner ]; then
  OUT=./out ROOT=
  while getopts o:r: option; do
    case $option in
      o) OUT=$OPTARG ;;
      r) ROOT=$OPTARG ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  have mmdebstrap mmdebstrap
  have lintian lintian
  have systemd-analyze systemd
  have promtool prometheus
  have rpm rpm
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  ROOT=${ROOT:-$OUT/debian} DEB=$(realpath "$1") OVS_DEB=$(realpath "$2")
  RPM=$(realpath "$3") OVS_RPM=$(realpath "$4")
  # bootstrap ROOT PACKAGES: from where this machine has its packages.
  bootstrap() {
    [ ! -d "$1" ] || return 0
    mkdir -p "$(dirname "$1")"
    apt-config dump Acquire >"$OUT/apt.conf"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
      2>/dev/null >"$OUT/sources" || true
    mmdebstrap --quiet --variant=minbase --include="$2" --aptopt="$OUT/apt.conf" \
      "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$1.new" "$OUT/sources"
    mv "$1.new" "$1"
  }
  bootstrap "$ROOT" adduser,iproute2,iputils-ping
  bootstrap "$ROOT-systemd" adduser,iproute2,iputils-ping,systemd-sysv
  bootstrap "$ROOT-openvswitch" adduser,iproute2,iputils-ping,mininet,openvswitch-switch
  export OUT ROOT DEB OVS_DEB RPM OVS_RPM
  exec unshare --net --pid --mount --fork --mount-proc --kill-child bash "$0" --inner
fi

failed=0
: >"$OUT/results.jsonl"

# check NAME COMMAND...: one line of its outcome; its output is in OUT/NAME.log, the end of it in
# the line of a check that failed.
check() {
  local name=$1 result=OK detail='""'
  shift
  "$@" >"$OUT/$name.log" 2>&1 || {
    result=FAIL failed=1
    detail=$(tail -c 1500 "$OUT/$name.log" | python3 -c 'import json, sys
print(json.dumps(sys.stdin.buffer.read().decode(errors="replace")))')
  }
  echo "{\"id\": \"packages/$name\", \"result\": \"$result\", \"detail\": $detail}" |
    tee -a "$OUT/results.jsonl"
}

# debian ROOT: a copy of it at /mnt, in memory, which goes with this namespace.
debian() {
  mount -t tmpfs tmpfs /mnt
  cp -a "$1/." /mnt
  mount -t proc proc /mnt/proc
  mount -t sysfs sysfs /mnt/sys
  mount --rbind /dev /mnt/dev
  mount -t tmpfs -o mode=755 tmpfs /mnt/run
  # Everybody may open it, as udev has it.
  cp -a /dev/net/tun /mnt/run/tun && chmod 666 /mnt/run/tun
  mount --bind /mnt/run/tun /mnt/dev/net/tun
  cp "$DEB" /mnt/weir.deb
}

debian "$ROOT"
ip link set lo up

inside() {
  chroot /mnt env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}
files() {
  (cd /mnt && find etc usr var/lib -xdev -not -path 'var/lib/dpkg*' -not -name '*-' | sort)
}

# unit KEY: the value of a key of the switch's unit.
unit() { sed -n "s/^$1=//p" /mnt/usr/lib/systemd/system/weir-switch.service; }

# as_unit: starts the switch as its unit does: its user, its folder, its capabilities.
as_unit() {
  local rights
  rights=$(unit AmbientCapabilities | sed 's/CAP_/+/g; s/ /,/g' | tr '[:upper:]' '[:lower:]')
  chroot /mnt install -d -o weir -g weir -m "$(unit RuntimeDirectoryMode)" /run/weir
  # The switch before has written that it is ready, too.
  : >"$OUT/switch.log"
  # shellcheck disable=SC2046
  chroot /mnt setpriv --reuid weir --regid weir --clear-groups --no-new-privs \
    --inh-caps "-all,$rights" --ambient-caps "-all,$rights" --bounding-set "-all,$rights" \
    $(unit ExecStart) >"$OUT/switch.log" 2>&1 &
  switch=$!
  for _ in $(seq 100); do
    grep -q ready "$OUT/switch.log" && return
    sleep 0.1
  done
  cat "$OUT/switch.log"
  return 1
}

hosts() {
  local n pid
  for n in 1 2; do
    pid=$(new_namespace)
    ip link add "eth$n" type veth peer name eth0 netns "$pid"
    ip link set "eth$n" up
    nsenter -t "$pid" -n ip addr add "10.0.0.$n/24" dev eth0
    nsenter -t "$pid" -n ip link set eth0 up
    [ $n = 2 ] || first=$pid
  done
}
configure() {
  sed -i 's/^#port = /port = /; s/^#metrics = /metrics = /' /mnt/etc/weir/switch.toml
}

ping_through() { nsenter -t "$first" -n ping -c 20 -i 0.05 -w 30 10.0.0.2; }

# A member of the group asks; a user who is none may not.
asks_as_group() {
  inside setpriv --reuid 12345 --regid weir --clear-groups weir ctl \
    --control /run/weir/switch.sock "$@"
}
asks_as_other() {
  ! inside setpriv --reuid 12345 --regid 12345 --clear-groups weir ctl \
    --control /run/weir/switch.sock show
}
few_rights() {
  local want
  want=$(unit AmbientCapabilities | wc -w)
  [ "$(awk '/^Uid/ { print $2 }' "/proc/$switch/status")" != 0 ]
  python3 -c 'import sys; sys.exit(bin(int(sys.argv[1], 16)).count("1") != int(sys.argv[2]))' \
    "$(awk '/^CapEff/ { print $2 }' "/proc/$switch/status")" "$want"
}
scraped() {
  python3 -c 'import urllib.request as r
print(r.urlopen("http://127.0.0.1:9437/metrics", timeout=30).read().decode(), end="")' \
    >"$OUT/metrics.txt"
  grep -q '^weir_port_up{bridge="br0",port="1",name="eth1"} 1$' "$OUT/metrics.txt"
  promtool check metrics <"$OUT/metrics.txt"
}
# The unit has every capability that the configuration asks for.
rights_are_of_unit() {
  local asked
  asked=$(inside weir switch --config /etc/weir/switch.toml --show-rights)
  asked=$(echo "$asked" | sed -n 's/^AmbientCapabilities=//p')
  [ "$(echo "$asked" | wc -w)" = 5 ]
  for capability in $asked; do unit AmbientCapabilities | grep -qw "$capability"; done
}
in_kernel() { asks_as_group workers | grep -E 'decided: [1-9][0-9,]* in the kernel'; }
# Of a switch that was killed with an entry that it has confirmed.
restored() { asks_as_group dump-flows | grep cookie=0x77; }
same_files() { files | diff "$OUT/before" -; }
keeps_config() { grep -q '^port = ' /mnt/etc/weir/switch.toml; }
# Installed anew after a removal, the units can be enabled as at first, and are.
comes_back() {
  inside dpkg --install /weir.deb
  ln -s /usr/lib/systemd/system/weir-switch.service /mnt/etc/systemd/system/multi-user.target.wants/
  mkdir /mnt/etc/systemd/system/weir-switch.service.d
  ! find /mnt/etc/systemd/system -lname /dev/null -name 'weir-*' | grep .
}

# boot: systemd as the first process of the Debian at /mnt, with a group of processes of its own.
boot() {
  mount -t cgroup2 cgroup2 /sys/fs/cgroup || return 1
  # A run that was killed has left its group.
  for group in $(grep -lsx 'populated 0' /sys/fs/cgroup/weir-packages.*/cgroup.events); do
    group=${group%/*} && remove_group
  done
  group=$(mktemp -d /sys/fs/cgroup/weir-packages.XXXX) || return 1
  trap 'within 10 remove_group' EXIT
  # Its /dev/log and the like are not this machine's.
  umount -R /mnt/dev && mount -t tmpfs -o mode=755 tmpfs /mnt/dev
  mkdir /mnt/dev/net /mnt/old
  cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /mnt/dev
  cp -a /mnt/run/tun /mnt/dev/net
  mount -t bpf bpf /mnt/sys/fs/bpf
  # shellcheck disable=SC2016
  bash -c 'echo $$ >"$1/cgroup.procs"
    exec unshare --mount --pid --cgroup --fork --kill-child bash -c "
      mount -t proc proc /mnt/proc && mount -t cgroup2 cgroup2 /mnt/sys/fs/cgroup
      cd /mnt && pivot_root . old && umount -l /old
      exec env -i container=weir /lib/systemd/systemd"' - "$group" >"$OUT/systemd.log" 2>&1 &
  boot=$!
  within 30 booted systemctl is-system-running
}
# within SECONDS COMMAND: until it succeeds.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.2
  done
}
# Its processes end a moment after the first one.
remove_group() { find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; }
booted() {
  nsenter --target "$(tr -d ' ' <"/proc/$boot/task/$boot/children")" --mount --pid --cgroup --root \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}
booted_ctl() { booted weir ctl --control /run/weir/switch.sock "$@"; }
# The service is there, and answers.
serves() { within 30 booted_ctl show && booted systemctl --no-pager status weir-switch; }
starts() { configure && booted systemctl start weir-switch && serves; }
# How often a process of the service has gone on with the kernel tier of the one before.
times_kept() {
  booted journalctl --no-pager -u weir-switch | grep -c 'the kernel tier goes on devices=2'
}
kept_more_than() { [ "$(times_kept)" -gt "$1" ]; }
# keeps COMMAND: the service ends by it and comes again, under pings; the entry is still there.
keeps() {
  local before
  before=$(times_kept)
  nsenter -t "$first" -n ping -i 0.01 -c 800 -W 20 10.0.0.2 >"$OUT/pings" &
  sleep 1
  booted "$@" && within 30 kept_more_than "$before" && wait $! && tail -n 3 "$OUT/pings" &&
    serves && booted_ctl dump-flows | grep cookie=0x77
}
loses_no_frame() { keeps systemctl restart weir-switch && grep ' 0% packet loss' "$OUT/pings"; }
stops() {
  booted systemctl stop weir-switch && [ -z "$(booted ls /sys/fs/bpf/weir-switch)" ] &&
    ! nsenter -t "$first" -n ping -c 2 -i 0.1 -W 1 10.0.0.2
}
# Of a service that runs.
purges() {
  booted systemctl start weir-switch && booted dpkg --purge weir &&
    ! booted systemctl is-active weir-switch &&
    ! booted find /run/weir /sys/fs/bpf/weir-switch /etc/weir -maxdepth 0 | grep .
}
clean_lintian() {
  lintian --allow-root --fail-on error,warning "$@"
}

# The rpm has the files of the deb.
rpm_of() {
  diff <(dpkg-deb --fsys-tarfile "$1" | tar -t | grep -v '/$' | sed 's/^\.//' | sort) \
    <(rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$2" |
      sed -n 's/^[-l][^ ]* //p' | sort)
}
# From the deb at hand to a ping through the switch, without what is only checked.
within_a_minute() {
  echo "$first_ping s"
  [ "$first_ping" -lt 60 ]
}

# The value of a key of the daemon's unit, as weir-openvswitch has it.
ovs_unit() {
  sed -n "s/^$1=\(..*\)/\1/p" /mnt/usr/lib/systemd/system/ovs-vswitchd.service.d/weir.conf
}
ovs_ctl() { inside /usr/share/openvswitch/scripts/ovs-ctl --no-record-hostname "$@"; }
daemon_is() { [ "$(chroot /mnt readlink -f /usr/sbin/ovs-vswitchd)" = "$1" ]; }
# As the services start both: the database by Open vSwitch's script, the daemon by our line.
ovs_starts() {
  # shellcheck disable=SC2046
  ovs_ctl --no-ovs-vswitchd --system-id=random start && inside $(ovs_unit ExecStart)
}
ovs_stops() { ovs_ctl stop >>"$OUT/openvswitch-stop.log" 2>&1; }
ovs_bridge() {
  inside ovs-vsctl --timeout=30 add-br br0 -- add-port br0 eth1 -- add-port br0 eth2
  inside ovs-vsctl --timeout=30 get Interface eth1 ofport | grep -x '[12]'
}
mininet_pings() {
  inside /usr/lib/weir/with-switch \
    mn --switch ovs,failMode=standalone --controller none --test pingall 2>&1 |
    tee /dev/stderr | grep ' 0% dropped (2/2 received)'
}
ovs_verified() {
  local copy=$OUT/ovs-units
  rm -rf "$copy"
  mkdir -p "$copy"
  cp -r /mnt/usr/lib/systemd/system/ovs*.service /mnt/usr/lib/systemd/system/ovs*.service.d "$copy"
  cp /mnt/usr/lib/systemd/system/openvswitch-switch.service "$copy" || true
  sed -i 's#=/usr/\(s\|lib/weir\)#=/mnt/usr/\1#' "$copy"/*.service "$copy"/*/*.conf
  SYSTEMD_UNIT_PATH=$copy: systemd-analyze verify --man=no "$copy/ovs-vswitchd.service"
}
verified() {
  local copy=$OUT/units
  rm -rf "$copy"
  mkdir "$copy"
  for unit in /mnt/usr/lib/systemd/system/weir-*.service; do
    sed 's|=/usr/bin/weir|=/mnt/usr/bin/weir|' "$unit" >"$copy/${unit##*/}"
  done
  systemd-analyze verify --man=no "$copy"/*.service
}

mkdir -p /mnt/etc/systemd/system/multi-user.target.wants
files >"$OUT/before"
check lintian clean_lintian "$DEB"
check no-compiler bash -c '! chroot /mnt sh -c "command -v cc || command -v cargo"'
check rpm rpm_of "$DEB" "$RPM"
check openvswitch-rpm rpm_of "$OVS_DEB" "$OVS_RPM"
first_ping=-$SECONDS
check install inside dpkg --install /weir.deb
first_ping=$((first_ping + SECONDS))
check units verified
check version inside weir --version
check user inside getent passwd weir
first_ping=$((first_ping - SECONDS))
hosts
configure
check config inside weir switch --config /etc/weir/switch.toml --check-config
check start as_unit
check ping ping_through
first_ping=$((first_ping + SECONDS))
check first-ping within_a_minute
echo "from the deb at hand to a ping through the switch: $(cat "$OUT/first-ping.log")"
check rights rights_are_of_unit
check kernel-tier in_kernel
check metrics scraped
check rules promtool check rules /mnt/usr/share/weir/metrics/alerts.yml
check few-rights few_rights
check group asks_as_group show
check others asks_as_other
check add-flow asks_as_group add-flow cookie=0x77,priority=9,dl_type=0x88b5,actions=drop
kill -KILL "$switch"
wait "$switch" || true
check restart as_unit
check restored restored
kill "$switch"
wait "$switch" || true
# The same again stands for a newer one: what the administrator wrote stays.
inside dpkg --install /weir.deb >"$OUT/upgrade.log" 2>&1
check upgrade keeps_config
# A kernel tier that a kill has left goes with the package.
mount -t bpf bpf /mnt/sys/fs/bpf
mkdir -p /mnt/sys/fs/bpf/weir-switch/br0
inside dpkg --remove weir >"$OUT/remove.log" 2>&1
check remove keeps_config
check kernel-tier-left [ ! -e /mnt/sys/fs/bpf/weir-switch ]
check comes-back comes_back
check purge bash -c "chroot /mnt dpkg --purge weir"
check nothing-left same_files

umount -R /mnt
debian "$ROOT-systemd"
check systemd-boot boot
check systemd-install booted dpkg --install /weir.deb
check systemd-start starts
check systemd-ping ping_through
check systemd-add-flow booted_ctl add-flow cookie=0x77,priority=9,dl_type=0x88b5,actions=drop
check systemd-restart loses_no_frame
check systemd-kill keeps systemctl kill --signal KILL weir-switch
check systemd-stop stops
check systemd-purge purges
if [ -n "$boot" ]; then
  kill -KILL "$boot" || true
  wait "$boot" || true
fi

umount -R /mnt
debian "$ROOT-openvswitch"
cp "$OVS_DEB" /mnt/weir-openvswitch.deb
check openvswitch-lintian clean_lintian "$OVS_DEB"
check openvswitch-install inside dpkg --install /weir.deb /weir-openvswitch.deb
check openvswitch-daemon daemon_is /usr/bin/weir
check openvswitch-unit ovs_verified
check openvswitch-start ovs_starts
check openvswitch-bridge ovs_bridge
check openvswitch-ping ping_through
ovs_stops
check mininet mininet_pings
ovs_stops
inside dpkg --purge weir-openvswitch >"$OUT/openvswitch-purge.log" 2>&1
check openvswitch-own-again daemon_is /usr/lib/openvswitch-switch/ovs-vswitchd
[ "$(grep -c '"result": "OK"' "$OUT/results.jsonl")" = "$CHECKS" ] || failed=1
exit $failed
