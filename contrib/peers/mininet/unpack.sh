# Mininet and what it calls, from Debian's packages, unpacked and not installed. Sourced, not run.
# shellcheck shell=bash

# Mininet's clean-up ends processes by name and removes files of others; the namespaces do it here.
defuse_cleanup() {
  python3 - "$1" <<'PYTHON'
import sys
path = sys.argv[1]
text = open(path).read()
if "defused" not in text:
    text = text.replace("def sh( cmd ):\n", "def sh( cmd ):\n    return ''  # defused\n", 1)
    text = text.replace(
        "def killprocs( pattern ):\n", "def killprocs( pattern ):\n    return  # defused\n", 1)
    open(path, "w").write(text)
PYTHON
  grep -q defused "$1"
}

# unpack_mininet: puts it under $CACHE (default ~/.cache/weir-mininet) once, and on the path.
unpack_mininet() {
  local packages=(mininet openvswitch-testcontroller iperf net-tools cgroup-tools libcgroup2 socat)
  CACHE=${CACHE:-$HOME/.cache/weir-mininet}
  if [ ! -x "$CACHE/x/usr/bin/mn" ]; then
    mkdir -p "$CACHE"
    (
      cd "$CACHE" || exit
      apt-get download -qq "${packages[@]}" ||
        { apt-get update -qq && apt-get download -qq "${packages[@]}"; }
      for package in *.deb; do
        dpkg -x "$package" x
      done
    )
  fi
  # Mininet asks telnet whether something listens already: `echo A | telnet -e A HOST PORT`.
  # shellcheck disable=SC2016
  printf '%s\n' '#!/bin/bash' 'exec 3<>"/dev/tcp/$3/$4" && echo Connected' \
    >"$CACHE/x/usr/bin/telnet"
  chmod +x "$CACHE/x/usr/bin/telnet"
  PYTHONPATH=$CACHE/x/usr/lib/python3/dist-packages
  defuse_cleanup "$PYTHONPATH/mininet/clean.py"
  PATH=$CACHE/x/usr/bin:$CACHE/x/bin:$CACHE/x/sbin:$CACHE/x/usr/sbin:$PATH
  export PATH PYTHONPATH
}
