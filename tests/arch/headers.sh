#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/arch/headers.sh - every header says all that it needs: alone, twice, as C11 or C++17.
#
# usage: headers.sh c|c++ HEADER ...   from the root; CC, CXX, HEADER_FLAGS from the environment
set -eu
language=$1
shift
case $language in
c) compile="${CC:-cc} -std=c11 -x c -Wstrict-prototypes" ;;
c++) compile="${CXX:-c++} -std=c++17 -x c++" ;;
esac
code=0
for header; do
    feature=-D_GNU_SOURCE
    case $header in
    coord/*) feature= ;;
    esac
    if ! printf '#include "%s"\n#include "%s"\nextern int nothing;\n' "$header" "$header" |
        $compile -fsyntax-only -pedantic -Wall -Wextra -Wundef -Werror -I. $feature \
            ${HEADER_FLAGS:-} -; then
        echo "$header: does not stand alone as $language"
        code=1
    fi
done
exit $code
