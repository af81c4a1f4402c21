#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/sim/seeds.sh - many seeds of the simulators, counted as one test for each store and one for
# whole agents, and the planted faults: all of them where there are many seeds, else those that show
# soon; and the command that is printed with what breaks.
#
# usage: seeds.sh SIM AGENTS SEEDS FIRST
set -u
. "$(dirname "$0")/../arch/cases.sh"

keeps_promises() {
    check "sim__$3_schedules_from_$4_keep_every_promise [$2]" \
        "$1" --store "$2" --seeds "$3" --first "$4" --jobs 2
}

# replays SIM FAULT: the command that is printed with a break runs into the same one, twice byte for
# byte.
replays() {
    "$1" --plant "$2" >"$work/found" || return 1
    broken=$(grep ' breaks ' "$work/found")
    command=$(sed -n 's/^    //p' "$work/found")
    echo "$broken"
    echo "$command"
    for time in first second; do
        sh -c "$command" >"$work/$time"
        [ $? -eq 1 ] || return 1
    done
    [ "$(wc -l <"$work/first")" -gt 10 ] &&
        cmp "$work/first" "$work/second" &&
        [ "$(tail -n 1 "$work/first")" = "$broken" ]
}

# A schedule on a file or on PostgreSQL, or of agents, takes as long as some ten on Redis.
part=$(($3 / 5 > 1000 ? $3 / 5 : 1000))
keeps_promises "$1" redis "$3" "$4"
keeps_promises "$1" file "$part" "$4"
keeps_promises "$1" postgres "$part" "$4"
check "sim__${part}_schedules_from_$4_keep_every_promise [agents]" \
    "$2" --seeds "$part" --first "$4" --jobs 2
if [ "$3" -ge 100000 ]; then
    check "sim__every_planted_fault_is_noticed" "$1" --plant all --jobs 2
    check "sim__every_planted_fault_is_noticed [agents]" "$2" --plant all --jobs 2
else
    check "sim__planted_faults_are_noticed_soon" "$1" --plant soon --jobs 2
    check "sim__planted_faults_are_noticed_soon [agents]" "$2" --plant soon --jobs 2
fi
check "sim__a_printed_command_runs_into_the_same_break [redis]" replays "$1" own-lease
check "sim__a_printed_command_runs_into_the_same_break [file]" replays "$1" slot-stolen
check "sim__a_printed_command_runs_into_the_same_break [postgres]" replays "$1" pg-debt-shrinks
check "sim__a_printed_command_runs_into_the_same_break [agents]" replays "$2" resolved-reopens
finish
