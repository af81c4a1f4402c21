#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/sim/seeds.sh - many seeds of the simulator, counted as one test for each store, and the
# planted faults: all of them where there are many seeds, else those that show soon.
#
# usage: seeds.sh SIM SEEDS FIRST
set -u
. "$(dirname "$0")/../arch/cases.sh"

keeps_promises() {
    check "sim__$3_schedules_from_$4_keep_every_promise [$2]" \
        "$1" --store "$2" --seeds "$3" --first "$4" --jobs 2
}

# A schedule on a file or on PostgreSQL takes as long as some ten on Redis.
part=$(($2 / 5 > 1000 ? $2 / 5 : 1000))
keeps_promises "$1" redis "$2" "$3"
keeps_promises "$1" file "$part" "$3"
keeps_promises "$1" postgres "$part" "$3"
if [ "$2" -ge 100000 ]; then
    check "sim__every_planted_fault_is_noticed" "$1" --plant all --jobs 2
else
    check "sim__planted_faults_are_noticed_soon" "$1" --plant soon --jobs 2
fi
finish
