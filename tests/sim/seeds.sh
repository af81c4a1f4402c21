#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/sim/seeds.sh - many seeds of the simulator, counted as one test for each store.
#
# usage: seeds.sh SIM SEEDS FIRST
set -u
. "$(dirname "$0")/../arch/cases.sh"
for store in redis file postgres; do
    check "sim__$2_schedules_from_$3_keep_every_promise [$store]" \
        "$1" --store "$store" --seeds "$2" --first "$3" --jobs 2
done
finish
