#!/bin/bash
# Installs, uses, upgrades, removes and purges the deb in a bare Debian of its own, as an
# administrator would; the services run with the rights of their units, and no more.
#
#   check.sh [-o OUTDIR] [-r ROOT] DEB
#
# ROOT, made by mmdebstrap where it is not there, is the bare Debian; it is copied, never changed.
# Needs root. Prints one line a check; exit code 1 when one failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../peers/lib.sh"

CHECKS=18

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
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  ROOT=${ROOT:-$OUT/debian} DEB=$(realpath "$1")
  if [ ! -d "$ROOT" ]; then
    # From where this machine has its packages.
    apt-config dump Acquire >"$OUT/apt.conf"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
      2>/dev/null >"$OUT/sources" || true
    mmdebstrap --quiet --variant=minbase --include=adduser,iproute2,iputils-ping \
      --aptopt="$OUT/apt.conf" "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$ROOT.new" \
      "$OUT/sources"
    mv "$ROOT.new" "$ROOT"
  fi
  export OUT ROOT DEB
  exec unshare --net --pid --mount --fork --mount-proc --kill-child bash "$0" --inner
fi

failed=0
: >"$OUT/results.jsonl"

# check NAME COMMAND...: one line of its outcome; its output is in OUT/NAME.log.
check() {
  local name=$1 result=OK
  shift
  "$@" >"$OUT/$name.log" 2>&1 || result=FAIL failed=1
  echo "{\"id\": \"packages/$name\", \"result\": \"$result\"}" | tee -a "$OUT/results.jsonl"
}

# The copy is in memory and goes with this namespace.
mount -t tmpfs tmpfs /mnt
cp -a "$ROOT/." /mnt
mount -t proc proc /mnt/proc
mount -t sysfs sysfs /mnt/sys
mount --rbind /dev /mnt/dev
mount -t tmpfs -o mode=755 tmpfs /mnt/run
cp "$DEB" /mnt/weir.deb
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
  sed -i 's/^#port = /port = /' /mnt/etc/weir/switch.toml
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
in_kernel() { asks_as_group workers | grep -E 'decided: [1-9][0-9,]* in the kernel'; }
same_files() { files | diff "$OUT/before" -; }
keeps_config() { grep -q '^port = ' /mnt/etc/weir/switch.toml; }
# Installed anew after a removal, the units can be enabled as at first, and are.
comes_back() {
  inside dpkg --install /weir.deb
  ln -s /usr/lib/systemd/system/weir-switch.service /mnt/etc/systemd/system/multi-user.target.wants/
  mkdir /mnt/etc/systemd/system/weir-switch.service.d
  ! find /mnt/etc/systemd/system -lname /dev/null -name 'weir-*' | grep .
}
clean_lintian() {
  lintian --allow-root --fail-on error,warning "$DEB"
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
check lintian clean_lintian
check no-compiler bash -c '! chroot /mnt sh -c "command -v cc || command -v cargo"'
check install inside dpkg --install /weir.deb
check units verified
check version inside weir --version
check user inside getent passwd weir
hosts
check config inside weir switch --config /etc/weir/switch.toml --check-config
check start as_unit
check ping ping_through
check kernel-tier in_kernel
check few-rights few_rights
check group asks_as_group show
check others asks_as_other
kill "$switch"
wait "$switch" || true
# The same again stands for a newer one: what the administrator wrote stays.
inside dpkg --install /weir.deb >"$OUT/upgrade.log" 2>&1
check upgrade keeps_config
inside dpkg --remove weir >"$OUT/remove.log" 2>&1
check remove keeps_config
check comes-back comes_back
check purge bash -c "chroot /mnt dpkg --purge weir"
check nothing-left same_files
[ "$(grep -c '"result": "OK"' "$OUT/results.jsonl")" = "$CHECKS" ] || failed=1
exit $failed
