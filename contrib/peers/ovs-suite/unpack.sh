# Open vSwitch's suites and what they call, from Debian's packages, unpacked and not installed.
# Sourced, not run.
# shellcheck shell=bash

# unpack_ovs_suite: puts them under $OVS_SUITE (default ~/.cache/weir-ovs-suite) once; sets SUITES,
# Open vSwitch's source, and EXTRA, the root of the other packages.
unpack_ovs_suite() {
  local cache=${OVS_SUITE:-$HOME/.cache/weir-ovs-suite}
  local packages=(openvswitch-source lftp python3-pyftpdlib)
  SUITES=$cache/openvswitch EXTRA=$cache/x
  [ ! -d "$SUITES" ] || return 0
  mkdir -p "$cache/new"
  (
    cd "$cache" || exit
    apt-get download -qq "${packages[@]}" ||
      { apt-get update -qq && apt-get download -qq "${packages[@]}"; }
    for package in *.deb; do
      dpkg -x "$package" x
    done
    tar -xzf x/usr/src/openvswitch/openvswitch.tar.gz -C new
    mv new/openvswitch .
    rm -rf new x/usr/src ./*.deb
  )
}
