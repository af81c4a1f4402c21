#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/blocks.sh - what pages show compiles as it stands.
#
# usage: blocks.sh PAGE ...   from the root
#
# Each ```c block is compiled, each ```sh block is parsed. A block that is no whole program follows
# a comment that the reader of the page does not see: <!-- c ... -->, what stands before it. What is
# left open there is closed after the block.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
code=0
for page; do
    rm -f "$work"/*
    awk -v out="$work/block" '
        /^<!-- c$/ {before = 1; text = ""; next}
        /^-->$/ && before {before = 0; next}
        before {text = text $0 "\n"; next}
        /^```(c|sh)$/ {inside = substr($0, 4); start = NR; next}
        /^```/ && inside != "" {
            for (open = gsub(/{/, "{", text) - gsub(/}/, "}", text); inside == "c" && open > 0; open--) {
                text = text "}\n"
            }
            print text >(out "-" start "." inside)
            inside = ""
            text = ""
        }
        inside != "" {text = text $0 "\n"}' "$page"
    for block in "$work"/*; do
        [ -f "$block" ] || continue
        line=${block##*-}
        case $line in
        *.c)
            if ! ${CC:-cc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -fsyntax-only "$block"; then
                echo "$page:${line%.c}: this does not compile"
                code=1
            fi ;;
        *.sh)
            if ! sh -n "$block"; then
                echo "$page:${line%.sh}: the shell does not parse this"
                code=1
            fi ;;
        esac
    done
done
exit $code
