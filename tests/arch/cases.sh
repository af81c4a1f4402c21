# SPDX-License-Identifier: MIT
# tests/arch/cases.sh - for tests in shell: cases that are counted, and cmocka's closing lines.
#
# A test sources this, calls `check NAME COMMAND ...` and the like, and ends with `finish`.
cases_passed=0
cases_failed=
cases_skipped=

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# check NAME COMMAND ...: the command succeeds, in a shell of its own.
check() {
    case_name=$1
    shift
    echo "[ RUN      ] $case_name"
    if (trap - EXIT && "$@") >"$work/output" 2>&1; then
        cat "$work/output"
        echo "[       OK ] $case_name"
        cases_passed=$((cases_passed + 1))
    else
        cat "$work/output"
        echo "[  FAILED  ] $case_name"
        cases_failed="$cases_failed $case_name"
    fi
}

# refused WORDS COMMAND ...: the command fails and says WORDS.
refused() {
    refused_words=$1
    shift
    if "$@" >"$work/refused" 2>&1; then
        echo "nothing was found where '$refused_words' was planted"
        return 1
    fi
    if ! grep -qF -- "$refused_words" "$work/refused"; then
        echo "not found: $refused_words; but:"
        cat "$work/refused"
        return 1
    fi
}

# skipped NAME WHY
skipped() {
    echo "[  REASON  ] $2"
    echo "[  SKIPPED ] $1"
    cases_skipped="$cases_skipped $1"
}

# finish: the closing lines, and the exit status.
finish() {
    set -- $cases_failed
    failed=$#
    set -- $cases_skipped
    echo "[==========] $((cases_passed + failed + $#)) test(s) run."
    echo "[  PASSED  ] $cases_passed test(s)."
    if [ $# -gt 0 ]; then
        echo "[  SKIPPED ] $# test(s), listed below:"
        printf '[  SKIPPED ] %s\n' "$@"
    fi
    if [ "$failed" -gt 0 ]; then
        echo "[  FAILED  ] $failed test(s), listed below:"
        printf '[  FAILED  ] %s\n' $cases_failed
        exit 1
    fi
    exit 0
}
