# SPDX-License-Identifier: MIT
# scripts/exports.awk - the names that headers mark COORD_API: as a list, or (map=1) as a linker's
# version script. What only backends may call stands in a node of its own.
{
    line = $0
    while (match(line, /\/\*/) || comment) {
        if (comment) {
            if (!match(line, /\*\//)) {
                line = ""
                break
            }
            line = substr(line, RSTART + 2)
            comment = 0
        } else {
            rest = substr(line, RSTART + 2)
            kept = kept substr(line, 1, RSTART - 1)
            line = rest
            comment = 1
        }
    }
    line = kept line
    kept = ""
    if (line ~ /^[ \t]*#/) {
        next
    }
    text = text " " line
    while (match(text, /[;{}]/)) {
        statement = substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + 1)
        note(statement)
    }
}

function note(statement, name) {
    if (statement !~ /(^|[ \t])COORD_API[ \t]/) {
        return
    }
    if (match(statement, /coord_[a-z0-9_]+[ \t]*\(/)) {
        name = substr(statement, RSTART, RLENGTH)
        sub(/[ \t]*\(/, "", name)
    } else {
        name = statement
        sub(/[ \t]*(\[.*)?$/, "", name)
        sub(/^.*[ \t*]/, "", name)
    }
    if (!(name in seen)) {
        seen[name] = 1
        names[++count] = name
    }
}

function print_node(title, private, i, head) {
    for (i = 1; i <= count; i++) {
        if ((names[i] ~ /^coord_(backend_|_)/) == private) {
            if (!head) {
                head = 1
                printf "%s {\n  global:\n", title
            }
            printf "    %s;\n", names[i]
        }
    }
    return head
}

END {
    if (!map) {
        for (i = 1; i <= count; i++) {
            print names[i]
        }
        exit
    }
    public = print_node("COORD_0", 0)
    if (public) {
        print "  local: *;\n};"
    }
    if (print_node("COORD_BACKEND_0", 1)) {
        print public ? "};" : "  local: *;\n};"
    }
    if (!count) {
        print "{ local: *; };"
    }
}
