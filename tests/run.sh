#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/run.sh - runs tests one after another and counts what they say.
#
# usage: run.sh 'TITLE: COMMAND ...' ...
#
# A test closes with cmocka's lines ("[  PASSED  ] 3 test(s)."). One that ends badly without having
# counted a failure counts as one. What a failing one printed is shown; everything is kept in LOGS.
#   LOGS=DIR          build/logs
#   TEST_TIMEOUT=S    seconds for one test, 600
#   CI=true           a skip is a failure
set -u

logs=${LOGS:-build/logs}
limit=${TEST_TIMEOUT:-600}
passed=0
failed=0
skipped=0
bad=

# The sum of the numbers on the closing lines "[  WORD  ] N test(s)"; newer releases of cmocka name
# the group before the number.
closing() {
    awk -v word="$1" '
        $1 == "[" && $2 == word && $3 == "]" && match($0, / [0-9]+ test\(s\)/) {
            sum += substr($0, RSTART, RLENGTH)
        }
        END {print sum + 0}' "$2"
}

for item; do
    title=${item%%:*}
    command=${item#*: }
    log=$logs/$title.log
    mkdir -p "$(dirname "$log")"
    echo "$title"
    began=$(date +%s)
    timeout -k 10 "$limit" $command >"$log" 2>&1 </dev/null
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
    if [ -n "$why" ]; then
        [ "$f" -gt 0 ] || f=1
        echo "[  ERROR   ] $title: $why"
    fi
    if [ "$f" -gt 0 ]; then
        tail -n 200 "$log" | sed 's/^/  /'
        bad="$bad $title"
    else
        awk '/^\[(==========\] [0-9]|  (PASSED|SKIPPED|REASON) )/ && !seen[$0]++ {print "  " $0}' "$log"
    fi
    if [ "$took" -ge 5 ]; then
        echo "  took $took s"
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + s))
done

code=0
if [ "$failed" -gt 0 ] || [ $((passed + skipped)) -eq 0 ]; then
    code=1
fi
if [ "${CI:-}" = true ] && [ "$skipped" -gt 0 ]; then
    echo "A skip is a failure where CI=true."
    code=1
fi
if [ -n "$bad" ]; then
    echo "Failed:$bad"
fi
echo "$passed passed, $failed failed, $skipped skipped"
exit $code
