# SPDX-License-Identifier: MIT
# tests/arch/contracts.awk - every public function says what its caller has to know.
#
# usage: awk -f contracts.awk HEADER ...
# A function that is marked COORD_API has a comment before it with the four words Thread:, Blocks:,
# Allocates: and Calls back:. It speaks for all that follow without an empty line. What holds for most may be said once, in the comment of the
# section (it holds ----) or in that of the file.
BEGIN {
    split("Thread:|Blocks:|Allocates:|Calls back:", words, "|")
}

FNR == 1 {
    file = FILENAME
    sub(/^\.\//, "", file)
    comment = section = whole = ""
    in_comment = 0
}

/^\/\*/ && !in_comment {
    in_comment = 1
    comment = ""
}

in_comment {
    comment = comment " " $0
    if ($0 ~ /\*\//) {
        in_comment = 0
        if (comment ~ /SPDX/) {
            whole = comment
        } else if (comment ~ /----/) {
            section = comment
        }
        if (comment ~ /SPDX|----/) {
            comment = ""
        }
    }
    next
}

/^COORD_API/ && !/^COORD_API extern/ && !/coord__/ {
    lacking = ""
    for (i = 1; i in words; i++) {
        if (index(comment, words[i]) == 0 && index(section whole, words[i]) == 0) {
            lacking = lacking " '" words[i] "'"
        }
    }
    if (lacking != "") {
        printf "%s:%d: %s lacks%s\n", file, FNR, $0, lacking
        bad = 1
    }
}

/^$/ {
    comment = ""
}

END {
    exit bad
}
