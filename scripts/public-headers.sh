#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/public-headers.sh - the headers that are installed, one a line: those of the core, and of
# the other rooms those that promise something (COORD_API).
#
# usage: public-headers.sh [all|core|BACKEND]
set -eu
cd "$(dirname "$0")/.."

rooms_of_libcoord="coord/*.h electors/memory*.h electors/file*.h brokers/memory*.h brokers/local*.h
    runtime/*.h"

candidates() {
    case ${1:-all} in
    all) ls coord/*.h connections/*.h electors/*.h brokers/*.h runtime/*.h 2>/dev/null ;;
    core) ls $rooms_of_libcoord 2>/dev/null ;;
    *) ls connections/"$1"*.h electors/"$1"*.h brokers/"$1"*.h 2>/dev/null ;;
    esac
}

for header in $(candidates "${1:-all}" || true); do
    case $header in
    coord/*) echo "$header" ;;
    *) grep -l '^COORD_API' "$header" || true ;;
    esac
done
