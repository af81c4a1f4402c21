#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/integration/test_interop.sh - `make interop` where there is no Python for it: a skip with its
# reason, which fails in CI, and nothing is fetched.
. "$(dirname "$0")/../arch/cases.sh"

mkdir "$work/bin" "$work/build"
fetched=$work/fetched
for tool in apt-get apt-config dpkg-deb; do
    printf '#!/bin/sh\necho "%s $*" >>"%s"\nexit 1\n' $tool "$fetched" >"$work/bin/$tool"
    chmod 755 "$work/bin/$tool"
done

# interop [NAME=VALUE ...]: what the rule of the Makefile runs, counted apart from these cases.
interop() {
    env -u COUNTS -u CI -u DEPS "PATH=$work/bin:$PATH" "B=$work/build" "LOGS=$work/logs" \
        PYTHON=/nonexistent "$@" sh tests/run.sh 'interop/eventsource: sh tests/interop/run.sh'
}

is_a_skip() {
    interop >"$work/said" || { cat "$work/said"; return 1; }
    grep -qF 'nothing of tests/interop was run: there is no Python 3.13 or later' "$work/said" &&
        grep -qxF '0 passed, 0 failed, 1 skipped' "$work/said"
}

fetches_nothing() {
    rm -f "$fetched"
    interop >"$work/said" && interop DEPS=no >"$work/said" || return 1
    [ ! -e "$fetched" ] || { cat "$fetched"; return 1; }
}

# The path that is asked for is the one that is looked at.
hands_on_the_path() {
    "${MAKE:-make}" -n _interop PYTHON=/nonexistent SAN= >"$work/said" || return 1
    grep -qF "PYTHON='/nonexistent'" "$work/said"
}

check interop__no_python_is_a_skip_with_its_reason is_a_skip
check interop__no_python_fails_in_ci refused "A skip is a failure where CI=true." interop CI=true
check interop__a_python_that_is_named_is_not_fetched fetches_nothing
check interop__make_hands_on_the_path hands_on_the_path
finish
