#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/test_install.sh - what is installed is enough to build and run with, and all of it goes
# away again.
#
# Runs from the root; B is the build.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/cases.sh"

B=${B:-build}
CC=${CC:-cc}
MAKE=${MAKE:-make}
pkg_config=${PKG_CONFIG:-pkg-config}
prefix=$work/prefix
stage=$work/stage

quiet_make() {
    $MAKE BUILD="$B" DEPS=no "$@" >"$work/make" 2>&1 || {
        cat "$work/make"
        return 1
    }
}

# place PREFIX: every directory under it, whatever this make was told.
place() {
    echo PREFIX="$1" BINDIR="$1/bin" LIBDIR="$1/lib" INCLUDEDIR="$1/include" MANDIR="$1/share/man"
}

asked() {
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig "$pkg_config" "$@"
}

check install__to_a_prefix quiet_make install $(place "$prefix") DESTDIR=

lists() {
    for file in "$@"; do
        [ -e "$prefix/$file" ] || { echo "$file is missing"; return 1; }
    done
}
check install__has_libraries_headers_and_pkg_config \
    lists lib/libcoord.a lib/libcoord.so lib/libcoord.so.0 lib/pkgconfig/libcoord.pc \
    include/coord-0/coord/elector.h

for page in docs/man/*.[1-9]; do
    [ -e "$page" ] || continue
    check "install__has_the_page_$(basename "$page")" \
        lists "share/man/man${page##*.}/$(basename "$page")"
done

headers_alone() {
    cd "$prefix/include/coord-0" || return 1
    for header in */*.h; do
        printf '#include <%s>\nextern int nothing;\n' "$header" |
            $CC -std=c11 -D_GNU_SOURCE -x c -fsyntax-only -Wall -Wextra -Werror \
                $(asked --cflags libcoord) ${HEADER_FLAGS:-} - || return 1
    done
}
check install__headers_need_nothing_that_is_not_installed headers_alone

program() {
    cat >"$work/user.c" <<'END'
#include <coord/elector.h>
#include <stdio.h>
int main(void)
{
    return printf("%s\n", coord_version()) < 0;
}
END
    $CC -std=c11 -o "$work/user" "$work/user.c" $(asked --cflags --libs libcoord) &&
        [ "$(LD_LIBRARY_PATH=$prefix/lib "$work/user")" = "$(cat VERSION)" ] &&
        [ "$(asked --modversion libcoord)" = "$(cat VERSION)" ]
}
check install__a_program_builds_through_pkg_config_and_runs program

static_program() {
    $CC -std=c11 -o "$work/user-static" "$work/user.c" $(asked --cflags libcoord) \
        "$prefix/lib/libcoord.a" $(asked --libs --static libcoord | sed 's/-lcoord//') &&
        [ "$("$work/user-static")" = "$(cat VERSION)" ]
}
check install__a_program_links_the_static_library static_program

examples() {
    for source in examples/*.c; do
        libraries=libcoord
        for backend in redis postgres nats; do
            if grep -q "^#include <[a-z]*/$backend" "$source"; then
                libraries="libcoord-$backend $libraries"
            fi
        done
        # What it uses beside coord is its own affair.
        grep -q '^#include <libpq-fe.h>' "$source" && libraries="$libraries libpq"
        grep -q '^#include <hiredis/' "$source" && libraries="$libraries hiredis"
        $CC -std=c11 -D_GNU_SOURCE -o "$work/example" "$source" \
            $(asked --cflags --libs $libraries) -pthread || { echo "$source"; return 1; }
    done
}
if ls examples/*.c >/dev/null 2>&1; then
    check install__the_examples_build_from_what_is_installed examples
fi

installed_command() {
    mv "$prefix" "$work/moved" || return 1
    said=$("$work/moved/bin/coordctl" --version)
    mv "$work/moved" "$prefix"
    [ "$said" = "coordctl $(cat VERSION)" ] || { echo "it said: $said"; return 1; }
}
loads_its_libraries() {
    # Nothing listens there; but the library is found, or the answer would be to install it.
    said=$("$prefix/bin/coordctl" status --elector redis+unix:///nonexistent/socket --name x 2>&1)
    case $said in
    *install*) echo "$said"; return 1 ;;
    esac
}
if [ -e "$prefix/bin/coordctl" ]; then
    check install__coordctl_runs_where_it_was_put_and_can_be_moved installed_command
    if [ -e "$prefix/lib/libcoord-redis.so.0" ]; then
        check install__coordctl_loads_a_backend_beside_it loads_its_libraries
    fi
fi

staged() {
    quiet_make install $(place /usr) LIBDIR=/usr/lib/here DESTDIR="$stage" || return 1
    [ -e "$stage/usr/lib/here/libcoord.so.0" ] || { echo "not under LIBDIR"; return 1; }
    if grep -rl "$stage" "$stage" | grep '\.pc$'; then
        echo "names the stage"
        return 1
    fi
    grep -q '^libdir=/usr/lib/here$' "$stage/usr/lib/here/pkgconfig/libcoord.pc"
}
check install__a_stage_is_not_seen_in_what_is_staged staged

# A ldconfig that looks into that prefix, and notes when it is run.
known_to_the_loader() {
    mkdir "$work/fakes" || return 1
    cat >"$work/fakes/ldconfig" <<END
#!/bin/sh
[ \$# -eq 0 ] && echo run >>"$work/ldconfig" || echo "$prefix/lib: (from the test)"
END
    chmod +x "$work/fakes/ldconfig"
    PATH=$work/fakes:$PATH quiet_make install $(place "$prefix") DESTDIR="$stage" || return 1
    [ ! -e "$work/ldconfig" ] || { echo "run for a stage"; return 1; }
    rm -r "${stage:?}$prefix"
    PATH=$work/fakes:$PATH quiet_make install $(place "$prefix/other") DESTDIR= || return 1
    [ ! -e "$work/ldconfig" ] || { echo "run for a folder that is not the loader's"; return 1; }
    rm -r "$prefix/other"
    PATH=$work/fakes:$PATH quiet_make install $(place "$prefix") DESTDIR= &&
        [ "$(cat "$work/ldconfig")" = run ]
}
check install__what_lies_in_the_loaders_folder_is_made_known_to_it known_to_the_loader

uninstalled() {
    quiet_make uninstall $(place "$prefix") DESTDIR= &&
        quiet_make uninstall $(place /usr) LIBDIR=/usr/lib/here DESTDIR="$stage" || return 1
    left=$(find "$prefix" "$stage" ! -type d)
    [ -z "$left" ] || { echo "left behind: $left"; return 1; }
}
check uninstall__leaves_no_file uninstalled

finish
