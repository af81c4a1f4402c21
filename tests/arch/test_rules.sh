#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/test_rules.sh - the rules that a compiler does not see hold, and each one bites.
#
# Runs from the root. B is the build, with libcoord-core.a and the shared objects in it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(pwd)
. "$here/cases.sh"

B=${B:-build}
CC=${CC:-cc}
CXX=${CXX:-c++}
export CC CXX

in_dir() {
    directory=$1
    shift
    (cd "$directory" && "$@")
}

# plant FILE TEXT: a file of a small tree in which something is wrong.
plant() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/$(dirname "$1")"
    printf "$2" >"$work/tree/$1"
}

sources=$(ls coord/*.[ch] connections/*.[ch] electors/*.[ch] brokers/*.[ch] runtime/*.[ch] \
    cli/*.[ch] examples/*.[ch] 2>/dev/null)
tests=$(ls tests/*/*.[ch] 2>/dev/null)
headers=$(echo "$sources" | grep '\.h$')
libcoord_headers=$(ls coord/*.h electors/memory*.h electors/file*.h brokers/memory*.h \
    brokers/local*.h runtime/*.h 2>/dev/null)
headers_of() {
    ls connections/"$1"*.h electors/"$1"*.h brokers/"$1"*.h 2>/dev/null
}
public_headers=$(sh scripts/public-headers.sh)

# ---- layers

check layers__hold awk -f "$here/layers.awk" $sources

layers_of() {
    in_dir "$work/tree" awk -f "$here/layers.awk" "$1"
}
plant coord/x.c '\n#include "electors/redis.h"\n'
check layers__a_room_above_is_found refused "coord/x.c:2: coord may not include electors" \
    layers_of coord/x.c
plant coord/x.h '#include <time.h>\n'
check layers__a_clock_in_the_core_is_found refused "coord/x.h:1: coord sees no operating system" \
    layers_of coord/x.h
plant coord/x.c '#  include <msgpack.h>\n'
check layers__the_excepted_library_is_found_elsewhere refused "<msgpack.h>" layers_of coord/x.c
plant runtime/x.c '#include "connections/redis.h"\n'
check layers__a_runtime_that_knows_a_server_is_found refused "runtime may not include connections" \
    layers_of runtime/x.c
plant electors/x.c '#include "brokers/redis.h"\n'
check layers__an_elector_that_knows_a_broker_is_found refused "electors may not include brokers" \
    layers_of electors/x.c
plant electors/x.c '#include "redis.h"\n'
check layers__a_name_without_its_room_is_found refused "begin with a room" layers_of electors/x.c

# ---- style

check style__holds awk -f "$here/style.awk" $sources $tests

style_of() {
    in_dir "$work/tree" awk -f "$here/style.awk" "$1"
}
head='/* SPDX-License-Identifier: MIT\n * cli/x.c - x.\n */\n'
plant cli/x.c "$head"'int a; // left over\n'
check style__a_line_comment_is_found refused "cli/x.c:4: a // comment" style_of cli/x.c
plant cli/x.c "$head"'const char *a = "// no \\" // comment"; /* a // b\n c // d */ int x;\n'
check style__a_text_with_slashes_is_none style_of cli/x.c
plant cli/x.c "$head"'void f(void) { strcat(a, b); }\n'
check style__a_call_without_a_bound_is_found refused "strcat() has no bound" style_of cli/x.c
plant cli/x.c "$head"'void f(void) { /* strcat(a, b) */ my_strcat(a, b); x->system(1); }\n'
check style__a_name_like_it_is_none style_of cli/x.c
plant runtime/x.c "$(echo "$head" | sed 's/cli/runtime/')"'\nvoid f(void) { printf("x"); }\n'
check style__a_library_that_prints_is_found refused "a library calls no printf()" \
    style_of runtime/x.c
plant cli/x.c 'int a;\n'
check style__a_file_without_its_licence_is_found refused "cli/x.c:1: the first line" style_of cli/x.c
plant cli/x.c "$head"'\tint a; \n'
check style__a_tab_is_found refused "cli/x.c:4: a tab" style_of cli/x.c
plant cli/x.c "$head"'/* TODO: more */\n'
check style__what_is_left_open_is_found refused "left open" style_of cli/x.c
plant cli/x.c "$head"
yes 'int a;' | head -n 800 >>"$work/tree/cli/x.c"
check style__a_file_too_long_is_found refused "803 lines: split it" style_of cli/x.c

# ---- contracts

check contracts__every_public_function_says_what_its_caller_has_to_know \
    awk -f "$here/contracts.awk" $headers

contracts_of() {
    in_dir "$work/tree" awk -f "$here/contracts.awk" "$1"
}
said='Thread: any. Blocks: never. Allocates: never. Calls back: never.'
plant coord/x.h "/** Thread: any. Blocks: never. Calls back: never. */\nCOORD_API int coord_x(void);\n"
check contracts__a_missing_word_is_found refused "coord/x.h:2: COORD_API int coord_x(void); lacks" \
    contracts_of coord/x.h
plant coord/x.h "/* SPDX: $said */\n/** Says nothing. */\nCOORD_API int coord_x(void);\n"
check contracts__a_file_may_say_it_for_all contracts_of coord/x.h
plant coord/x.h "/** $said */\nCOORD_API int coord_x(void);\n\nCOORD_API int coord_y(void);\n"
check contracts__a_function_without_a_comment_is_found refused "coord_y" contracts_of coord/x.h
plant coord/x.h "/* ---- all: $said ---- */\n\nCOORD_API int coord_x(void);\n"
check contracts__a_section_may_say_it_for_all contracts_of coord/x.h

# ---- pages

pages=$(ls *.md docs/*.md docs/*/*.md 2>/dev/null)
check links__lead_somewhere awk -f "$here/links.awk" $pages $headers
check blocks__of_pages_compile sh "$here/blocks.sh" $pages

links_of() {
    in_dir "$work/tree" awk -f "$here/links.awk" "$@"
}
plant docs/x.md '# One two: `three`!\n\n[a](x.md#one-two-three) [b](#one-two-three) [c](https://a/b)\n'
check links__headings_are_found_as_pages_name_them links_of docs/x.md
plant docs/x.md '[a](y.md)\n'
check links__a_page_that_is_not_there_is_found refused "docs/x.md:1: y.md is not there" \
    links_of docs/x.md
plant docs/x.md '# One\n[a](#two)\n'
check links__a_heading_that_is_not_there_is_found refused "docs/x.md:2: #two has no such heading" \
    links_of docs/x.md
plant coord/x.h ' * Source: docs/x.md#one, tests/unit/test_x.c.\n'
check links__the_source_of_a_rule_is_looked_for refused "tests/unit/test_x.c is not there" \
    links_of coord/x.h
plant docs/x.md '```c\nint main(void) { return x; }\n```\n'
check blocks__a_program_that_does_not_compile_is_found refused "docs/x.md:1: this does not" \
    in_dir "$work/tree" sh "$here/blocks.sh" docs/x.md
plant docs/x.md '<!-- c\nint f(void)\n{\n-->\n```c\n    return x;\n```\n'
check blocks__a_part_that_does_not_compile_is_found refused "docs/x.md:5: this does not" \
    in_dir "$work/tree" sh "$here/blocks.sh" docs/x.md
plant docs/x.md '```sh\nif true; echo\n```\n'
check blocks__a_command_that_no_shell_takes_is_found refused "docs/x.md:1: the shell" \
    in_dir "$work/tree" sh "$here/blocks.sh" docs/x.md

# ---- headers

headers_as() {
    language=$1
    shift
    HEADER_FLAGS=$HEADER_FLAGS sh "$here/headers.sh" "$language" "$@"
}
HEADER_FLAGS=${HEADER_FLAGS:-$("${PKG_CONFIG:-pkg-config}" --cflags hiredis libpq 2>/dev/null)}
check headers__stand_alone_as_c headers_as c $headers
if command -v "$CXX" >/dev/null 2>&1; then
    check headers__stand_alone_as_cpp headers_as c++ $public_headers
else
    skipped headers__stand_alone_as_cpp "there is no C++ compiler ($CXX)"
fi
plant coord/x.h 'int coord_x(size_t n);\n'
check headers__one_that_leans_on_another_is_found refused "coord/x.h: does not stand alone as c" \
    in_dir "$work/tree" sh "$here/headers.sh" c coord/x.h
plant coord/x.h '#include <unistd.h>\nstatic inline int coord_x(void) { return usleep(1); }\n'
check headers__one_of_the_core_that_needs_a_system_is_found refused "coord/x.h: does not stand" \
    in_dir "$work/tree" sh "$here/headers.sh" c coord/x.h

# ---- symbols

check symbols__the_core_reaches_no_system sh "$here/symbols.sh" "$B/libcoord-core.a"

# library TEXT: a core made of it.
library() {
    printf "$1" >"$work/x.c" && $CC -O2 -fPIC -c -o "$work/x.o" "$work/x.c" &&
        rm -f "$work/x.a" && ar rc "$work/x.a" "$work/x.o"
}
found() {
    words=$1
    library "$2" && refused "$words" sh "$here/symbols.sh" "$work/x.a"
}
check symbols__a_clock_is_found found "outside itself: clock_gettime" \
    '#include <time.h>\nint f(struct timespec *t) { return clock_gettime(CLOCK_MONOTONIC, t); }\n'
check symbols__a_counter_is_found found "something that changes: count" \
    'static int count;\nint f(void) { return ++count; }\n'
check symbols__an_initialised_one_is_found found "something that changes: start" \
    'static int start = 7;\nint f(void) { return ++start; }\n'
check symbols__a_shared_one_is_found found "something that changes: shared" 'int shared;\n'
check symbols__one_for_each_thread_is_found found "something that changes: mine" \
    'static _Thread_local int mine;\nint f(void) { return ++mine; }\n'
constant_table() {
    library 'static const char *const t[] = {"a", "b"};\nconst char *f(int i) { return t[i]; }\n' &&
        sh "$here/symbols.sh" "$work/x.a"
}
check symbols__a_constant_table_is_none constant_table

# ---- exports

check exports__libcoord_exports_what_its_headers_promise \
    sh "$here/exports.sh" "$B/libcoord.so" $libcoord_headers
for backend in redis postgres nats cloud; do
    backend_headers=$(headers_of "$backend")
    if [ -n "$backend_headers" ]; then
        check "exports__libcoord_${backend}_exports_what_its_headers_promise" \
            sh "$here/exports.sh" "$B/libcoord-$backend.so" $backend_headers
    fi
done
program_exports_nothing() {
    names=$(nm -D --defined-only "$B/coordctl" | awk '{print $3}' | grep '^coord' || true)
    [ -z "$names" ] || { echo "coordctl exports $names"; return 1; }
}
if [ -e "$B/coordctl" ]; then
    check exports__coordctl_exports_nothing program_exports_nothing
fi

# shared TEXT SCRIPT: an object whose header promises coord_x.
shared() {
    printf "$1" >"$work/x.c" && printf "$2" >"$work/x.map" &&
        printf 'COORD_API int coord_x(void);\n' >"$work/x.h" &&
        $CC -shared -fPIC -Wl,--version-script="$work/x.map" -o "$work/x.so" "$work/x.c"
}
exports_refused() {
    words=$1
    shift
    shared "$@" && refused "$words" sh "$here/exports.sh" "$work/x.so" "$work/x.h"
}
check exports__one_too_many_is_found exports_refused "coord_y: exported, but in no header" \
    'int coord_x(void) { return 1; } int coord_y(void) { return 1; }' \
    'COORD_0 { global: coord_x; coord_y; local: *; };'
check exports__one_too_few_is_found exports_refused "coord_x: in a header, but not exported" \
    'int coord_y(void) { return 1; }' 'COORD_0 { global: coord_y; local: *; };'
check exports__one_without_a_version_is_found exports_refused "outside the version script" \
    'int coord_x(void) { return 1; }' '{ global: coord_x; local: *; };'

finish
