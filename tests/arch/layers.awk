# SPDX-License-Identifier: MIT
# tests/arch/layers.awk - which room may include which. One table is the whole rule.
#
# usage: awk -f layers.awk FILE ...   with names relative to the root, such as coord/lease.c
BEGIN {
    may["coord"] = "coord"
    may["connections"] = "coord connections"
    may["electors"] = "coord connections electors"
    may["brokers"] = "coord connections brokers"
    may["runtime"] = "coord runtime"
    may["cli"] = "coord connections electors brokers runtime cli"
    may["examples"] = "coord connections electors brokers runtime"
    # No clock, no descriptor, no thread: only these headers exist for the core.
    c11 = " assert.h errno.h float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdbool.h" \
          " stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h "
    # The one excepted, in one source.
    codec = "^coord/message[a-z_]*\\.c$"
}

FNR == 1 {
    room = FILENAME
    sub(/^\.\//, "", room)
    file = room
    sub(/\/.*/, "", room)
}

room in may && /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    name = $0
    sub(/^[^<"]*/, "", name)
    quoted = substr(name, 1, 1) == "\""
    name = substr(name, 2)
    sub(/[>"].*/, "", name)
    top = name
    sub(/\/.*/, "", top)
    why = ""
    if (top in may && index(" " may[room] " ", " " top " ") == 0) {
        why = room " may not include " top
    } else if (quoted && !(top in may)) {
        why = "includes in quotes begin with a room"
    } else if (!quoted && top in may && room != "examples") {
        why = "a room is included in quotes"
    } else if (!quoted && room == "coord" && index(c11, " " name " ") == 0 &&
               !(name ~ /^msgpack/ && file ~ codec)) {
        why = "coord sees no operating system: <" name ">"
    }
    if (why != "") {
        printf "%s:%d: %s\n", file, FNR, why
        bad = 1
    }
}

END {
    exit bad
}
