#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/symbols.sh - the core reaches no operating system and owns nothing that changes.
#
# usage: symbols.sh libcoord-core.a   (of a build without sanitizers)
set -eu
library=$1
# Of C11 what only computes (strtod too, on text without a decimal mark). No time, file, thread, environment, or signal is among them.
allow='^(mem(cpy|move|set|cmp|chr)|str(len|cmp|ncmp|chr|rchr|str|spn|cspn)|v?snprintf|abort'
allow="$allow"'|malloc|calloc|realloc|free|strtod|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_'
allow="$allow"'|__(memcpy|memmove|memset|snprintf|vsnprintf|strcpy|strncpy)_chk'
allow="$allow"'|msgpack_[a-z0-9_]+)$'
code=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm "$library" >"$work/all" 2>"$work/errors"
awk '$1 == "U" {print $2}' "$work/all" | sort -u >"$work/needed"
awk 'NF == 3 && $2 ~ /^[A-Z]$/ {print $3}' "$work/all" | sort -u >"$work/defined"
leaks=$(comm -23 "$work/needed" "$work/defined" | grep -Ev "$allow" || true)
if [ -n "$leaks" ]; then
    printf '%s\n' "$leaks" | sed 's/^/the core calls outside itself: /'
    code=1
fi

# By section, as a constant table of pointers is only written by the linker (.data.rel.ro).
statics=$(objdump -t "$library" |
    awk '/[ \t]\.(t?data|t?bss)(\.|[ \t])|\*COM\*/ && !/\.data\.rel\.ro/ && $NF !~ /^\./ {print $NF}')
if [ -n "$statics" ]; then
    printf '%s\n' "$statics" | sed 's/^/the core owns something that changes: /'
    code=1
fi
exit $code
