#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/run.sh - runs tests, some at a time, and counts what they say.
#
# usage: run.sh 'TITLE: COMMAND ...' ...
#
# A test closes with cmocka's lines ("[  PASSED  ] 3 test(s)."). One that ends badly without having
# counted a failure counts as one. What a failing one printed is shown; everything is kept in LOGS.
#   LOGS=DIR          build/logs
#   TEST_TIMEOUT=S    seconds for one test, 600
#   TEST_JOBS=N       as many as there are processors
#   CI=true           a skip is a failure
set -u

logs=${LOGS:-build/logs}
limit=${TEST_TIMEOUT:-600}

# The sum of the numbers on the closing lines "[  WORD  ] N test(s)"; newer releases of cmocka name
# the group before the number.
closing() {
    awk -v word="$1" '
        $1 == "[" && $2 == word && $3 == "]" && match($0, / [0-9]+ test\(s\)/) {
            sum += substr($0, RSTART, RLENGTH)
        }
        END {print sum + 0}' "$2"
}

# What is told of one test, to the standard output at once.
report() {
    echo "$title"
    if [ -n "$why" ]; then
        echo "[  ERROR   ] $title: $why"
    fi
    if [ "$f" -gt 0 ]; then
        tail -n 200 "$log" | sed 's/^/  /'
    else
        awk '/^\[(==========\] [0-9]|  (PASSED|SKIPPED|REASON) )/ && !seen[$0]++ {print "  " $0}' "$log"
    fi
    if [ "$took" -ge 5 ]; then
        echo "  took $took s"
    fi
}

# The lines that most likely say why, for where only the end of all that was printed is kept.
digest() {
    if [ -n "$why" ]; then
        echo "! $title: $why"
    fi
    {
        grep -E 'SUMMARY:|: runtime error' "$log"
        grep -B 3 -E '^\[ +LINE ' "$log"
        grep -E '^\[  FAILED  \] [^0-9]' "$log"
    } | head -n 12 | cut -c 1-160 | sed "s|^|! $title: |"
}

# run_one 'TITLE: COMMAND ...'; "PASSED FAILED SKIPPED TITLE" goes into a file of COUNTS.
run_one() {
    title=${1%%:*}
    command=${1#*: }
    log=$logs/$title.log
    mkdir -p "$(dirname "$log")"
    began=$(date +%s)
    timeout -k 10 "$limit" $command >"$log" 2>&1 </dev/null &
    child=$!
    trap 'kill "$child"; exit 1' INT TERM HUP
    wait "$child"
    status=$?
    took=$(($(date +%s) - began))
    p=$(closing PASSED "$log")
    f=$(closing FAILED "$log")
    s=$(closing SKIPPED "$log")
    why=
    if [ "$took" -ge "$limit" ]; then
        why="not done after $limit s"
    elif [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
        why="ended with status $status"
    elif [ "$status" -eq 0 ] && [ $((p + s + f)) -eq 0 ]; then
        why="ran nothing"
    fi
    if [ -n "$why" ] && [ "$f" -eq 0 ]; then
        f=1
    fi
    report >"$COUNTS/report.$$"
    cat "$COUNTS/report.$$"
    if [ "$f" -gt 0 ]; then
        digest >"$COUNTS/digest.$$"
    fi
    echo "$p $f $s $title" >"$COUNTS/count.$$"
}

if [ "${COUNTS:-}" != "" ]; then
    run_one "$1"
    exit 0
fi

COUNTS=$(mktemp -d)
export COUNTS
trap 'rm -rf "$COUNTS"' EXIT
trap 'exit 130' INT TERM HUP
jobs=${TEST_JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
printf '%s\0' "$@" | xargs -0 -n 1 -P "$jobs" sh "$0"

cat "$COUNTS"/digest.* 2>/dev/null
cat "$COUNTS"/count.* 2>/dev/null | awk -v wanted=$# -v ci="${CI:-}" '
    {
        passed += $1
        failed += $2
        skipped += $3
        if ($2 > 0) {
            bad = bad " " $4
        }
    }
    END {
        if (NR < wanted) {
            print wanted - NR " did not come to an end."
            failed += wanted - NR
        }
        if (ci == "true" && skipped > 0) {
            print "A skip is a failure where CI=true."
        }
        if (bad != "") {
            print "Failed:" bad
        }
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0 || (ci == "true" && skipped > 0) || passed + skipped == 0
    }'
