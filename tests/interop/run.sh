#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/interop/run.sh - what eventsource-py and coord have in common, tried with both.
#
# usage: run.sh [ARGUMENT OF PYTEST ...]
#
# It makes a virtual environment in BUILD, and closes with the lines that tests/run.sh counts. Where
# that cannot be made, nothing is run, which is a skip with its reason.
#   B=DIR      build: where coord was built
#   DEPS=no    do not fetch a Python
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${B:-build}" && pwd)
venv=$build/interop-venv

skip() {
    echo "[  REASON  ] nothing of tests/interop was run: $1"
    echo "[  SKIPPED ] 1 test(s)."
    exit 0
}

# made PYTHON: is there an environment of it with all that is wanted?
made() {
    [ "$(cat "$venv/made" 2>/dev/null)" = "$(echo "$1" && cat "$here/requirements.txt")" ] &&
        "$venv/bin/python" -c '' 2>/dev/null
}

make_venv() {
    made "$1" && return 0
    rm -rf "$venv"
    "$1" -m venv "$venv" || return 1
    "$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
        --requirement "$here/requirements.txt" || return 1
    (echo "$1" && cat "$here/requirements.txt") >"$venv/made"
}

how=ensure
[ "${DEPS:-}" != no ] || how=find
python=$(sh "$here/../../scripts/python.sh" "$how" "$build/python") ||
    skip "there is no Python 3.13 or later"
make_venv "$python" || skip "its packages cannot be installed"

# Whatever a user has set for coordctl is not meant here.
for name in $(env | sed -n 's/^\(COORD_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
B=$build
PYTHONDONTWRITEBYTECODE=1
export B PYTHONDONTWRITEBYTECODE
cd "$here"
exec "$venv/bin/python" -m pytest "$@"
