#!/bin/bash
# Runs the apps that Ryu's package ships, unmodified, by Ryu and by `weir ryu-manager`, each over
# `weir switch`, and compares what the two do step by step.
#
#   run.sh [-o OUTDIR] [-k REGEX] [-j JOBS] [-V VENV] [-L VENV] [-P PYTHON] [-r]
#
#     -o OUTDIR    where results go (default ./out)
#     -k REGEX     only apps whose name has it
#     -j JOBS      apps that run at once (default 4: they mostly wait)
#     -V VENV      virtual environment of Ryu to make or reuse (default ~/.cache/weir-ryu-4.34)
#     -L VENV      the same of os-ken, WebOb and others (default ~/.cache/weir-ryu-libraries)
#     -P PYTHON    a Python with the package `weir` and without those (default python3)
#     -r           run Weir only, and compare with what Ryu did in the last run
#
# WEIR is the program; default: `weir`. Results: OUTDIR/results.jsonl, OUTDIR/apps.md (the table of
# the documentation), and a log of each run below OUTDIR. Exit code 1 when an app differs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=contrib/peers/lib.sh
. "$here/../lib.sh"
export PYTHONDONTWRITEBYTECODE=1
OUT=./out PYTHON=python3 VENV=${RYU_VENV:-$HOME/.cache/weir-ryu-4.34} MORE=()
LIBRARIES=${RYU_LIBRARIES:-$HOME/.cache/weir-ryu-libraries}
while getopts o:k:j:V:L:P:r option; do
  case $option in
    o) OUT=$OPTARG ;;
    k) MORE+=(--only "$OPTARG") ;;
    j) MORE+=(--jobs "$OPTARG") ;;
    V) VENV=$OPTARG ;;
    L) LIBRARIES=$OPTARG ;;
    P) PYTHON=$OPTARG ;;
    r) MORE+=(--weir-only) ;;
    *) exit 2 ;;
  esac
done
have ethtool ethtool
have python3 python3-venv
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
"$here/../rest/ryu_venv.sh" "$VENV"
if ! "$LIBRARIES/bin/python" -c 'import os_ken, routes, tinyrpc, webob' 2>/dev/null; then
  python3 -m venv "$LIBRARIES"
  "$LIBRARIES/bin/pip" install -q 'os-ken==4.2.2' 'webob==1.8.9' 'routes==2.5.1' 'tinyrpc==1.1.7'
fi
# The apps alone, in a package without anything else of Ryu.
ryu=$("$VENV/bin/python" -c 'import ryu; print(ryu.__path__[0])')
# The pages of the graphical one stand in Ryu's sources, but not in the package.
mkdir -p "$ryu/app/gui_topology/html"
echo '<p>topology</p>' >"$ryu/app/gui_topology/html/index.html"
rm -rf "$OUT/apps"
mkdir -p "$OUT/apps/ryu"
touch "$OUT/apps/ryu/__init__.py"
cp -r "$ryu/app" "$OUT/apps/ryu/app"
package=$("$PYTHON" -c 'import os, weir; print(os.path.dirname(os.path.dirname(weir.__file__)))')
# The classes of messages, with the actions for which os-ken is needed.
PYTHONPATH=$package "$LIBRARIES/bin/python" -m unittest discover -p test_ryu_messages.py \
  -s "$here/../../../python/tests/apps"
exec python3 "$here/drive.py" --out "$OUT" --ryu "$VENV/bin/python" --weir "$PYTHON" \
  --libraries "$LIBRARIES/bin/python" --package "$package" "${MORE[@]}"
