#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/integration/test_examples.sh - the programs to copy from do what their comments say.
. "$(dirname "$0")/../arch/cases.sh"

examples=${B:-build}/examples
folder=$work/folder
output=$work/said

# says PATTERN COMMAND ...: it succeeds and prints a line that matches.
says() {
    says_pattern=$1
    shift
    "$@" >"$output" 2>&1 </dev/null || { cat "$output"; return 1; }
    grep -qE -- "$says_pattern" "$output" || { cat "$output"; return 1; }
}

blocking_works_and_resigns() {
    says '^piece 3, under fence [0-9]+, with [0-9]+ ms left$' \
        "$examples/embed_blocking" "file:$folder" jobs || return 1
    # Resigned: the next one leads at once, and not when the lease has run out.
    says '^piece 3,' timeout 30 "$examples/embed_blocking" "file:$folder" jobs
}

thread_is_told_of_every_edge() {
    says 'leads with fence' "$examples/embed_thread" || return 1
    grep -q 'end the work' "$output" && grep -q 'is over' "$output"
}

thread_ends_with_a_signal() {
    : >"$output" # before it is in the background: what the last case said is not this one's
    "$examples/embed_thread" "file:$folder" jobs >"$output" 2>&1 &
    example=$!
    tries=0
    while ! grep -q 'leads with fence' "$output" && [ $tries -lt 300 ]; do
        kill -0 $example || return 1
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -TERM $example
    wait $example && grep -q 'is over' "$output"
}

loop_works_while_it_leads() {
    printf 'some work\n' | timeout 60 "$examples/embed_loop" "file:$folder" jobs >"$output" 2>&1 || {
        cat "$output"
        return 1
    }
    grep -q 'worked on 10 bytes' "$output" && grep -q 'leads no more' "$output"
}

a_spot_worker_says_its_last_word() {
    says '^all work has ended, and the others know it$' timeout 60 "$examples/spot_worker" ||
        return 1
    : >"$output"
    "$examples/spot_worker" "local:$folder/bus" w-7 >"$output" 2>&1 &
    example=$!
    tries=0
    # Before its handler is in place the signal just ends it: SIGTERM is bit 14 of the mask.
    while ! grep -q 'SigCgt:.*[4-7c-f][0-9a-f]\{3\}$' "/proc/$example/status" && [ $tries -lt 300 ]; do
        kill -0 $example || return 1
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -TERM $example
    wait $example && grep -q '^w-7 leaves, graceful' "$output"
}

an_orchestrator_replaces_what_is_gone() {
    says '^resolved: ' timeout 60 "$examples/orchestrator" || return 1
    grep -q '"orders" is nobody' "$output"
}

a_bus_of_ones_own_brings_back_what_was_published() {
    says '^fleet\.heartbeat: alive$' timeout 60 "$examples/own_bus"
}

unknown_schemes_are_named() {
    refused 'knows memory:, file:' "$examples/embed_blocking" nosuch://x
}

check examples__blocking_works_and_resigns blocking_works_and_resigns
check examples__thread_is_told_of_every_edge thread_is_told_of_every_edge
check examples__thread_ends_with_a_signal thread_ends_with_a_signal
check examples__loop_works_while_it_leads loop_works_while_it_leads
check examples__a_spot_worker_says_its_last_word a_spot_worker_says_its_last_word
check examples__an_orchestrator_replaces_what_is_gone an_orchestrator_replaces_what_is_gone
check examples__a_bus_of_ones_own_brings_back_what_was_published \
    a_bus_of_ones_own_brings_back_what_was_published
check examples__unknown_schemes_are_named unknown_schemes_are_named
finish
