# SPDX-License-Identifier: MIT
# tests/arch/links.awk - what a page or a header points to is there: files, and headings in pages.
#
# usage: awk -f links.awk FILE ...   from the root; pages (.md) first
function slug(title, out, c, i) {
    title = tolower(title)
    gsub(/`/, "", title)
    out = ""
    for (i = 1; i <= length(title); i++) {
        c = substr(title, i, 1)
        if (c ~ /[a-z0-9_-]/) {
            out = out c
        } else if (c == " ") {
            out = out "-"
        }
    }
    return out
}

function there(path, line) {
    if (!(path in known)) {
        known[path] = system("test -e '" path "'") == 0
    }
    return known[path]
}

function read_headings(path, line, fenced) {
    if (path in read) {
        return
    }
    read[path] = 1
    while ((getline line < path) > 0) {
        if (line ~ /^```/) {
            fenced = !fenced
        } else if (!fenced && line ~ /^#+ /) {
            sub(/^#+ +/, "", line)
            headings[path "#" slug(line)] = 1
        } else if (match(line, /<a (id|name)="[^"]*"/)) {
            line = substr(line, RSTART, RLENGTH - 1)
            sub(/.*"/, "", line)
            headings[path "#" line] = 1
        }
    }
    close(path)
}

# TARGET as written; DIR is where a relative one begins.
function look(target, dir, path, anchor) {
    anchor = ""
    path = target
    if (index(path, "#")) {
        anchor = substr(path, index(path, "#") + 1)
        path = substr(path, 1, index(path, "#") - 1)
    }
    path = path == "" ? FILENAME : dir path
    while (sub(/[^\/]+\/\.\.\//, "", path)) {
    }
    sub(/^\.\//, "", path)
    if (path ~ /[*]/) {
        return
    }
    if (!there(path)) {
        printf "%s:%d: %s is not there\n", FILENAME, FNR, target
        bad = 1
    } else if (anchor != "" && path ~ /\.md$/) {
        read_headings(path)
        if (!((path "#" anchor) in headings)) {
            printf "%s:%d: %s has no such heading\n", FILENAME, FNR, target
            bad = 1
        }
    }
}

FNR == 1 {
    page = FILENAME ~ /\.md$/
    fenced = 0
    dir = FILENAME
    if (!sub(/[^\/]*$/, "", dir)) {
        dir = ""
    }
}

page && /^```/ {
    fenced = !fenced
}

page && !fenced {
    rest = $0
    while (match(rest, /\]\([^)]*\)/)) {
        target = substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH)
        if (target !~ /^[a-z]+:/) {
            look(target, dir)
        }
    }
}

!page {
    rest = $0
    while (match(rest, /(docs|tests)\/[A-Za-z0-9_.\/*-]+(#[a-z0-9_-]+)?/)) {
        target = substr(rest, RSTART, RLENGTH)
        before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : " "
        rest = substr(rest, RSTART + RLENGTH)
        sub(/[.]$/, "", target)
        if (before ~ /[ (]/) {
            look(target, "")
        }
    }
}

END {
    exit bad
}
