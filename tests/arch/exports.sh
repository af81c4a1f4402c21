#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/exports.sh - what a library exports is what its headers promise: no more, no less.
#
# usage: exports.sh libX.so HEADER ...
set -eu
library=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -f "$(dirname "$0")/../../scripts/exports.awk" "$@" | sort -u >"$work/promised"
# Names with their node, such as coord_uri_parse@@COORD_0; the nodes themselves are absolute.
nm -D --defined-only "$library" >"$work/all"
awk '$2 != "A" {print $3}' "$work/all" | sort -u >"$work/versioned"
sed 's/@.*//' "$work/versioned" | sort -u >"$work/exported"
code=0
comm -23 "$work/promised" "$work/exported" | sed 's/$/: in a header, but not exported/' >"$work/out"
comm -13 "$work/promised" "$work/exported" | sed 's/$/: exported, but in no header/' >>"$work/out"
grep -v '@@COORD_' "$work/versioned" | sed 's/$/: exported outside the version script/' \
    >>"$work/out" || true
grep -v '^coord_' "$work/exported" | sed 's/$/: exported, but not of our name/' >>"$work/out" || true
if [ -s "$work/out" ]; then
    cat "$work/out"
    code=1
fi
exit $code
