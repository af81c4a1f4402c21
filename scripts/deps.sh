#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/deps.sh - what building and testing need of this machine, and how to get it.
#
# usage: deps.sh missing build|test|bench|ci    names what is missing; exit 1 if anything is
#        deps.sh ensure  build|test|bench|ci    installs it, unless DEPS=no; then it says how to
#
# A library is needed once a source includes it.
set -eu
cd "$(dirname "$0")/.."

pkg_config=${PKG_CONFIG:-pkg-config}
compiler=${CC:-cc}
compiler=${compiler%% *}
cxx=${CXX:-c++}

have() {
    command -v "$1" >/dev/null 2>&1
}

library() {
    have "$pkg_config" || return 1
    for module; do
        if "$pkg_config" --exists "$module" 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

# Does a source of these rooms include HEADER?
included() {
    header=$1
    shift
    for room; do
        if cat "$room"/*.[ch] 2>/dev/null | grep -q "^ *# *include *<$header"; then
            return 0
        fi
    done
    return 1
}

rooms="coord connections electors brokers runtime cli"
test_rooms="tests/support tests/unit tests/contract tests/fault tests/integration tests/sim
    tests/vectors tests/fuzz"

# libraries ROOM ...: those that sources of the rooms include and that are missing.
libraries() {
    included uuid/ "$@" && { library uuid || echo uuid; }
    included hiredis/ "$@" && { library hiredis || echo hiredis; }
    included msgpack "$@" && { library msgpack-c msgpack || echo msgpack; }
    included libpq- "$@" && { library libpq || echo libpq; }
    included openssl/ "$@" && { library libcrypto || echo libcrypto; }
    included jansson "$@" && { library jansson || echo jansson; }
    included curl/ "$@" && { library libcurl || echo curl; }
    return 0
}

# The system's own Python has it, where another one comes first.
psycopg2() {
    python3 -c 'import psycopg2' 2>/dev/null || /usr/bin/python3 -c 'import psycopg2' 2>/dev/null
}

# One word for each thing that is missing.
missing() {
    have "$compiler" || echo compiler
    have "$pkg_config" || echo pkg-config
    if [ "$1" = build ]; then
        libraries $rooms
        return 0
    fi
    libraries $rooms $test_rooms
    have "$cxx" || echo c++
    library cmocka || echo cmocka
    if ls electors/redis*.c >/dev/null 2>&1; then
        have redis-server || have valkey-server || echo redis-server
        if ls tests/*/*_tls.c >/dev/null 2>&1; then
            have openssl || echo openssl
        fi
    fi
    if ls electors/postgres*.c >/dev/null 2>&1; then
        have postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || echo postgresql
        have pgbouncer || [ -x /usr/sbin/pgbouncer ] || echo pgbouncer
    fi
    case $1 in
    ci) have make || echo make ;;
    bench) psycopg2 || echo psycopg2 ;; # what is measured beside
    esac
    return 0
}

manager() {
    for candidate in apt-get dnf apk pacman; do
        if have "$candidate"; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# The package of THING for MANAGER.
package() {
    case $1:$2 in
    apt-get:compiler) echo gcc libc6-dev ;;
    apt-get:pkg-config) echo pkg-config ;;
    apt-get:uuid) echo uuid-dev ;;
    apt-get:hiredis) echo libhiredis-dev ;;
    apt-get:msgpack) # was renamed
        if apt-cache show libmsgpack-c-dev >/dev/null 2>&1; then
            echo libmsgpack-c-dev
        else
            echo libmsgpack-dev
        fi ;;
    apt-get:libpq) echo libpq-dev ;;
    apt-get:libcrypto) echo libssl-dev ;;
    apt-get:jansson) echo libjansson-dev ;;
    apt-get:curl) echo libcurl4-openssl-dev ;;
    apt-get:cmocka) echo libcmocka-dev ;;
    apt-get:c++) echo g++ ;;
    apt-get:psycopg2) echo python3-psycopg2 ;;
    dnf:compiler) echo gcc ;;
    dnf:pkg-config) echo pkgconf-pkg-config ;;
    dnf:uuid) echo libuuid-devel ;;
    dnf:hiredis) echo hiredis-devel ;;
    dnf:msgpack) echo msgpack-c-devel ;;
    dnf:libpq) echo libpq-devel ;;
    dnf:libcrypto) echo openssl-devel ;;
    dnf:jansson) echo jansson-devel ;;
    dnf:curl) echo libcurl-devel ;;
    dnf:cmocka) echo libcmocka-devel ;;
    dnf:redis-server) echo redis ;;
    dnf:postgresql) echo postgresql-server ;;
    dnf:c++) echo gcc-c++ ;;
    dnf:psycopg2) echo python3-psycopg2 ;;
    apk:compiler) echo gcc musl-dev ;;
    apk:pkg-config) echo pkgconf ;;
    apk:uuid) echo util-linux-dev ;;
    apk:hiredis) echo hiredis-dev ;;
    apk:msgpack) echo msgpack-c-dev ;;
    apk:libpq) echo libpq-dev ;;
    apk:libcrypto) echo openssl-dev ;;
    apk:jansson) echo jansson-dev ;;
    apk:curl) echo curl-dev ;;
    apk:cmocka) echo cmocka-dev ;;
    apk:redis-server) echo redis ;;
    apk:c++) echo g++ ;;
    apk:psycopg2) echo py3-psycopg2 ;;
    pacman:compiler) echo gcc ;;
    pacman:pkg-config) echo pkgconf ;;
    pacman:uuid) echo util-linux-libs ;;
    pacman:msgpack) echo msgpack-c ;;
    pacman:libpq) echo postgresql-libs ;;
    pacman:libcrypto) echo openssl ;;
    pacman:redis-server) echo valkey ;;
    pacman:c++) echo gcc ;;
    pacman:psycopg2) echo python-psycopg2 ;;
    *) echo "$2" ;;
    esac
}

install_line() {
    case $1 in
    apt-get) echo "apt-get install -y --no-install-recommends" ;;
    dnf) echo "dnf install -y" ;;
    apk) echo "apk add" ;;
    pacman) echo "pacman -S --noconfirm --needed" ;;
    esac
}

case ${2:-} in
build | test | bench | ci) ;;
*)
    sed -n 's/^# \(usage.*\|       deps.*\)/\1/p' "$0" >&2
    exit 2
    ;;
esac

lacking=$(missing "$2")
[ -n "$lacking" ] || exit 0
words=$(echo $lacking)

if [ "$1" = missing ]; then
    echo "$words"
    exit 1
fi

if ! manager=$(manager); then
    echo "Missing here: $words. Install them, and ask again." >&2
    exit 1
fi

as_root=
as_whom=
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo "
fi

if [ "${DEPS:-}" != no ] && [ -n "$as_root" ] && ! have sudo; then
    as_root=
    as_whom=", as root"
    DEPS=no
fi

if [ "${DEPS:-}" != no ] && [ "$manager" = apt-get ]; then
    echo "Missing here: $words. Fetching the list of packages (${as_root}apt-get update) ..."
    if ! log=$(DEBIAN_FRONTEND=noninteractive ${as_root}apt-get update -qq 2>&1); then
        echo "$log" >&2
    fi
fi

packages=
for thing in $lacking; do
    packages="$packages $(package "$manager" "$thing")"
done
line="$as_root$(install_line "$manager")$packages"

if [ "${DEPS:-}" = no ]; then
    printf 'Missing here: %s. Install with%s:\n  %s\n' "$words" "$as_whom" "$line" >&2
    exit 1
fi

echo "Installing: $line"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! DEBIAN_FRONTEND=noninteractive $line >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    echo "That failed. Install by hand: $line" >&2
    exit 1
fi
lacking=$(missing "$2")
if [ -n "$lacking" ]; then
    echo "Still missing: $(echo $lacking)" >&2
    exit 1
fi
