# Shell functions that the suites share. Sourced, not run.
# shellcheck shell=bash

# have PROGRAM PACKAGE: ends the suite with a remedy when a program is missing.
have() {
  command -v "$1" >/dev/null && return
  echo "$0: $1 is missing; apt-get install $2" >&2
  exit 2
}

# quiet INTERFACE [NS_PID]: no IPv6 chatter, no offloads (frames on the wire look as they are), up.
quiet() {
  local in=()
  [ -z "${2:-}" ] || in=(nsenter -t "$2" -n)
  "${in[@]}" sh -c "echo 1 > /proc/sys/net/ipv6/conf/$1/disable_ipv6"
  "${in[@]}" ethtool -K "$1" rx off tx off tso off gso off gro off rxvlan off txvlan off \
    >/dev/null 2>&1 || true
  "${in[@]}" ip link set "$1" up
}

# new_namespace: prints the pid of a process that holds a fresh network namespace.
new_namespace() {
  unshare --net sleep infinity >/dev/null 2>&1 &
  local pid=$! own
  own=$(readlink /proc/self/ns/net)
  for _ in $(seq 100); do
    [ "$(readlink "/proc/$pid/ns/net")" != "$own" ] && break
    sleep 0.05
  done
  echo "$pid"
}

# wait_port PORT: waits up to 10 s until something on 127.0.0.1 accepts.
wait_port() {
  for _ in $(seq 100); do
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.1
  done
  echo "$0: nothing listens on port $1" >&2
  return 1
}

# start_dut LOG COMMAND...: starts the switch under test in a session of its own; sets dut.
start_dut() {
  local log=$1
  shift
  setsid "$@" >"$log" 2>&1 &
  dut=$!
}

# end_dut: SIGTERM to the session of the switch under test, SIGKILL after 3 s.
end_dut() {
  kill -TERM -- "-$dut" 2>/dev/null || true
  for _ in $(seq 30); do
    kill -0 "$dut" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL -- "-$dut" 2>/dev/null || true
  wait "$dut" 2>/dev/null || true
}
