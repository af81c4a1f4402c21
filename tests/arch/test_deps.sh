#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/test_deps.sh - what is missing is installed and said, or only said where DEPS=no.
#
# Runs from the root. The package manager and pkg-config are fakes, which come first in PATH.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/cases.sh"

fakes=$work/fakes
mkdir "$fakes"
PATH=$fakes:$PATH
export PATH work
unset DEPS
PKG_CONFIG=pkg-config
export PKG_CONFIG

# fake NAME: its body from the standard input.
fake() {
    {
        echo '#!/bin/sh'
        cat
    } >"$fakes/$1"
    chmod +x "$fakes/$1"
}

# Every library is there but one, until that is installed.
fake pkg-config <<'END'
for word; do
    case $word in
    hiredis) [ -e "$work/installed" ] || exit 1 ;;
    esac
done
END
fake apt-get <<'END'
echo "$*" >>"$work/asked"
case $* in
*" libhiredis-dev"*) [ -e "$work/broken" ] || : >"$work/installed" ;;
esac
[ ! -e "$work/refuses" ] || { echo "no space left on the device"; exit 1; }
END
fake apt-cache </dev/null
fake sudo <<'END'
exec "$@"
END

fresh() {
    rm -f "$work/installed" "$work/asked" "$work/broken" "$work/refuses"
}

deps() {
    sh scripts/deps.sh "$@"
}

says() {
    grep -qF -- "$1" "$work/said" || { echo "not said: $1; but:"; cat "$work/said"; return 1; }
}

names_it() {
    fresh
    ! deps missing build >"$work/said" || return 1
    [ "$(cat "$work/said")" = hiredis ] && [ ! -e "$work/asked" ]
}
check deps__missing_names_it_and_installs_nothing names_it

installs() {
    fresh
    deps ensure build >"$work/said" || { cat "$work/said"; return 1; }
    says "Missing here: hiredis." && says "Installing: " && says " libhiredis-dev" || return 1
    grep -q '^update' "$work/asked" &&
        grep -q '^install -y --no-install-recommends libhiredis-dev$' "$work/asked"
}
check deps__ensure_installs_what_is_missing_and_says_so installs

is_content() {
    fresh
    : >"$work/installed"
    deps ensure build >"$work/said" 2>&1 && [ ! -s "$work/said" ] && [ ! -e "$work/asked" ]
}
check deps__with_all_of_it_there_nothing_is_said_or_done is_content

is_forbidden() {
    fresh
    ! DEPS=no deps ensure build >"$work/said" 2>&1 || return 1
    says "Missing here: hiredis. Install with:" && says "apt-get install" &&
        says " libhiredis-dev" && [ ! -e "$work/asked" ] && [ ! -e "$work/installed" ]
}
check deps__no_forbids_it_and_says_how is_forbidden

# An ordinary user without sudo is told what root has to type.
has_no_sudo() {
    fresh
    fake id <<'END'
echo 1000
END
    mkdir "$work/tools"
    for tool in sh dirname grep cat ls mktemp; do
        ln -s "$(command -v "$tool")" "$work/tools/$tool"
    done
    mv "$fakes/sudo" "$work/sudo"
    PATH=$fakes:$work/tools sh scripts/deps.sh ensure build >"$work/said" 2>&1
    status=$?
    mv "$work/sudo" "$fakes/sudo"
    rm "$fakes/id"
    [ "$status" -ne 0 ] && [ ! -e "$work/asked" ] && says "Install with, as root:" &&
        says "  apt-get install" && ! grep -q sudo "$work/said"
}
check deps__without_sudo_root_is_told_what_to_type has_no_sudo

# make passes it on, and stops before it compiles.
make_is_forbidden() {
    fresh
    ! ${MAKE:-make} -s BUILD="$work/build" DEPS=no all >"$work/said" 2>&1 || return 1
    says "Missing here: hiredis. Install with:" && [ ! -e "$work/asked" ] &&
        [ ! -e "$work/build/obj" ]
}
check deps__no_forbids_it_to_make make_is_forbidden

fails() {
    fresh
    : >"$work/refuses"
    : >"$work/broken"
    ! deps ensure build >"$work/said" 2>&1 || return 1
    says "no space left on the device" && says "Install by hand: " && says " libhiredis-dev"
}
check deps__a_failed_installation_says_why_and_what_to_do fails

is_still_missing() {
    fresh
    : >"$work/broken"
    ! deps ensure build >"$work/said" 2>&1 || return 1
    says "Still missing: hiredis"
}
check deps__what_is_still_missing_afterwards_is_said is_still_missing

finish
