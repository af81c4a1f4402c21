#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/coverage.sh - lines that the tests ran, for each source and room, from gcov.
#
# usage: coverage.sh BUILD
set -eu
build=$1
for data in "$build"/obj/coord/*.gcda "$build"/obj/connections/*.gcda "$build"/obj/electors/*.gcda \
    "$build"/obj/brokers/*.gcda "$build"/obj/runtime/*.gcda "$build"/obj/cli/*.gcda; do
    [ -f "$data" ] || continue
    gcov -n "$data" 2>/dev/null
done | awk '
    /^File / {
        file = $2
        gsub(/\047/, "", file)
        room = file
        sub(/\/.*/, "", room)
    }
    /^Lines executed:/ && file ~ /^[a-z]+\/[a-z_]+\.c$/ {
        percent = $2
        sub(/^executed:/, "", percent)
        sub(/%.*/, "", percent)
        ran = percent * $4 / 100
        printf "%6.1f %% of %5d  %s\n", percent, $4, file
        rooms[room] += ran
        lines[room] += $4
        all_ran += ran
        all += $4
        file = ""
    }
    END {
        print ""
        for (room in rooms) {
            printf "%6.1f %% of %5d  %s/\n", 100 * rooms[room] / lines[room], lines[room], room
        }
        if (all > 0) {
            printf "%6.1f %% of %5d  all\n", 100 * all_ran / all, all
        }
    }'
