#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/blocks.sh - the programs that pages show compile as they stand.
#
# usage: blocks.sh PAGE ...   from the root; a ```c block with a main() in it is a program
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
code=0
for page; do
    rm -f "$work"/*
    awk -v out="$work/block" '
        /^```c$/ {inside = 1; text = ""; start = NR; next}
        /^```/ && inside {
            inside = 0
            if (text ~ /int main\(/) {
                print text >(out "-" start ".c")
            }
        }
        inside {text = text $0 "\n"}' "$page"
    for block in "$work"/*.c; do
        [ -f "$block" ] || continue
        if ! ${CC:-cc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -fsyntax-only "$block"; then
            line=${block##*-}
            echo "$page:${line%.c}: this program does not compile"
            code=1
        fi
    done
done
exit $code
