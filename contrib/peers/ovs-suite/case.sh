#!/bin/bash
# One case of Open vSwitch's suites, in the namespaces that run.py has made for it.
#
#   case.sh SCRIPT NUMBER LOG
#
# Prints what the suite prints; after a failure LOG has the whole. The suite finds the daemon by
# PATH, below OUT/bin, and everything else in Debian's packages.
set -eu -o pipefail
script=$1 number=$2 log=$3
mount -t tmpfs -o mode=755 tmpfs /mnt
mount -t tmpfs -o mode=755 tmpfs /run
mount -t sysfs sysfs /sys
mount -t bpf bpf /sys/fs/bpf || true
for folder in /var/log/openvswitch /var/lib/openvswitch /etc/openvswitch; do
  [ ! -d "$folder" ] || mount -t tmpfs -o mode=755 tmpfs "$folder"
done
mkdir -p /mnt/suite/tmp /run/openvswitch /run/netns
cd /mnt/suite
hostname ovs-suite
ip link set lo up
ulimit -c 0

# What `configure` writes: where the tree lies, and what the machine has.
has() { command -v "$1" >/dev/null && echo yes || echo no; }
cat >atconfig <<END
at_testdir=tests at_srcdir=$SUITES/tests abs_srcdir=$SUITES/tests abs_builddir=$SUITES/tests
at_top_srcdir=$SUITES abs_top_srcdir=$SUITES abs_top_builddir=$SUITES
at_top_build_prefix=$SUITES/ at_top_builddir=$SUITES/
EXEEXT= SHELL=/bin/bash AUTOTEST_PATH=$OUT/bin
END
PATH=$OUT/bin:/usr/sbin:/usr/bin:/sbin:/bin:$EXTRA/usr/bin:$SUITES/utilities:$SUITES/tests
end_of_input='-q 1 -w 5'
if nc --version 2>&1 </dev/null | grep nmap.org >&2; then
  end_of_input='--send-only -w 5'
fi
machine=no
[ "$(uname -m)" != aarch64 ] || machine=yes
cat >atlocal <<END
HAVE_OPENSSL=yes OPENSSL_SUPPORTS_SNI=yes HAVE_UNBOUND=no HAVE_PYTEST=no EGREP='grep -E' CFLAGS=
PYTHON3=/usr/bin/python3 non_ascii_cwd=false IS_WIN32=no IS_BSD=no IS_ARM64=$machine
LOOPBACK_INTERFACE=lo HAVE_IPV6=yes DIFF_SUPPORTS_NORMAL_FORMAT=yes TESTS_WITH_UBSAN=no
HAVE_NC=$(has nc) NC_EOF_OPT='$end_of_input' HAVE_TC=$(has tc) SUPPORT_TC_INGRESS_PPS=no
HAVE_TCPDUMP=$(has tcpdump) HAVE_LFTP=$(has lftp) HAVE_FTP=yes HAVE_TFTP=no
CURL_OPT='-g -v --max-time 1 --retry 2 --retry-delay 1 --connect-timeout 1'
OVS_CTL_TIMEOUT=30 OVS_SYSLOG_METHOD=null PYTHONIOENCODING=utf_8
PYTHONDONTWRITEBYTECODE=yes PYTHONCOERCECLOCALE=0
export OVS_CTL_TIMEOUT OVS_SYSLOG_METHOD PYTHONIOENCODING
export PYTHONDONTWRITEBYTECODE PYTHONCOERCECLOCALE
END
code=0
env -i HOME=/mnt/suite TMPDIR=/mnt/suite/tmp TERM=dumb LC_ALL=C USER=root LOGNAME=root \
  PATH="$PATH" PYTHONPATH="$EXTRA/usr/lib/python3/dist-packages" \
  OVS_RUNDIR=/mnt/suite OVS_LOGDIR=/mnt/suite OVS_DBDIR=/mnt/suite OVS_SYSCONFDIR=/mnt/suite \
  bash "$SUITES/tests/$script" -C /mnt/suite "$number" </dev/null 2>&1 | tee out || code=$?
[ "$code" = 0 ] || cat out "$script".dir/*/"$script".log >"$log" || true
