#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/headers.sh - every header says all that it needs: alone, twice, as C11 or as each C++
# from C++11 on; and what its COORD_X_CONFIG_INIT makes is clean in whoever includes it.
#
# usage: headers.sh c|c++ HEADER ...   from the root; CC, CXX, HEADER_FLAGS from the environment
set -eu
language=$1
shift
case $language in
c)
    compile="${CC:-cc} -x c -Wstrict-prototypes"
    standards=c11
    ;;
c++)
    compile="${CXX:-c++} -x c++"
    standards='c++11 c++14 c++17'
    ;;
esac

# program HEADER: includes it twice, and makes a config of each kind.
program() {
    printf '#include "%s"\n#include "%s"\nextern int nothing;\n' "$1" "$1"
    sed -n 's/^#define COORD_\([A-Z_]*_CONFIG\)_INIT.*/\1/p' "$1" | while read -r noun; do
        type=coord_$(echo "$noun" | tr '[:upper:]' '[:lower:]')
        printf 'size_t of_%s(void);\nsize_t of_%s(void)\n{\n' "$type" "$type"
        printf '    struct %s config = COORD_%s_INIT;\n    return config.size;\n}\n' "$type" "$noun"
    done
}

code=0
for header; do
    feature=-D_GNU_SOURCE
    case $header in
    coord/*) feature= ;;
    esac
    for standard in $standards; do
        if ! program "$header" | $compile -std=$standard -fsyntax-only -pedantic -Wall -Wextra \
            -Wundef -Werror -I. $feature ${HEADER_FLAGS:-} -; then
            echo "$header: does not stand alone as $language"
            code=1
            break
        fi
    done
done
exit $code
