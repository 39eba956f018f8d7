#!/bin/bash
# ryu_venv.sh VENV: Ryu 4.34 in a virtual environment, made when it is not there yet.
set -eu
"$1/bin/python" -c 'import dns, ryu.utils' 2>/dev/null && exit
# Ryu's setup asks setuptools for what it no longer has.
python3 -m venv "$1"
"$1/bin/pip" install -q 'setuptools==67.6.1' 'wheel==0.45.1' 'pbr==6.1.1'
"$1/bin/pip" install -q --no-build-isolation 'ryu==4.34' 'eventlet==0.33.3' 'netaddr==0.10.1' \
  'dnspython==2.7.0'
