# SPDX-License-Identifier: MIT
# tests/arch/style.awk - what every source keeps to, as far as one can see it line by line.
#
# usage: awk -f style.awk FILE ...   warnings do not fail
BEGIN {
    # What writes without a bound, keeps state behind one's back, or reads time where it was not
    # given. Word, then why. (strcpy is between fields of one size, which -D_FORTIFY_SOURCE sees.)
    banned["strcat"] = banned["sprintf"] = banned["vsprintf"] = \
        banned["gets"] = "has no bound: use snprintf or memcpy"
    banned["strncpy"] = "cuts without a NUL: use snprintf or memcpy"
    banned["strtok"] = banned["rand"] = banned["srand"] = banned["localtime"] = banned["gmtime"] = \
        banned["ctime"] = banned["asctime"] = banned["strerror_l"] = "keeps a state of its own"
    banned["atoi"] = banned["atol"] = banned["atoll"] = banned["atof"] = \
        "takes anything for a number: use strtol and look"
    banned["alloca"] = "grows the stack without a bound"
    banned["system"] = banned["popen"] = "asks a shell"
    banned["gethostbyname"] = "is not for threads: use getaddrinfo"
    banned["usleep"] = "waits for time instead of a condition"
    library = "^(coord|connections|electors|brokers|runtime)/"
}

function complain(text) {
    printf "%s:%d: %s\n", file, FNR, text
    bad = 1
}

# Without comments, texts and characters; `in_comment` goes on to the next line.
function code_of(line, out, c, two, i) {
    out = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                i++
            }
        } else if (two == "/*") {
            in_comment = 1
            i++
        } else if (c == "\"" || c == "'") {
            out = out c
            for (i++; i <= length(line) && substr(line, i, 1) != c; i++) {
                if (substr(line, i, 1) == "\\") {
                    i++
                }
            }
            out = out c
        } else {
            out = out c
        }
    }
    return out
}

function end_of_file() {
    if (lines > 800) {
        printf "%s: %d lines: split it\n", file, lines
        bad = 1
    } else if (lines > 500) {
        printf "%s: %d lines (warning: more than 500)\n", file, lines
    }
}

FNR == 1 {
    if (file != "") {
        end_of_file()
    }
    file = FILENAME
    sub(/^\.\//, "", file)
    in_comment = 0
    if ($0 !~ /SPDX-License-Identifier: MIT/) {
        complain("the first line names the licence: SPDX-License-Identifier: MIT")
    }
}

FNR == 2 && index($0, file " - ") == 0 && file !~ /^tests\/fuzz\/corpus/ {
    complain("the second line says: " file " - what it is, in one sentence")
}

{
    lines = FNR
    if ($0 ~ /[ \t]$/) {
        complain("a blank at the end of the line")
    }
    if ($0 ~ /\t/) {
        complain("a tab")
    }
    # The formatter breaks no text and no table of macros.
    if (length($0) > 100 && $0 !~ /"|\\$/) {
        complain("longer than 100 columns")
    }
    code = code_of($0)
    if (code ~ /\/\//) {
        complain("a // comment is a leftover: comments are /* */")
    }
    if ($0 ~ /(^|[^A-Za-z])(TODO|FIXME|XXX)([^A-Za-z]|$)/) {
        complain("left open: " $0)
    }
    rest = code
    while (match(rest, /[A-Za-z_][A-Za-z0-9_]*[ ]*\(/)) {
        word = substr(rest, RSTART, RLENGTH - 1)
        before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
        rest = substr(rest, RSTART + RLENGTH)
        sub(/ *$/, "", word)
        if (file ~ /^tests\// && word ~ /^(popen|system)$/) {
            continue
        }
        if (word in banned && before != "." && before != ">") {
            complain(word "() " banned[word])
        }
        if (file ~ library && word ~ /^(printf|puts|putchar|perror|exit|_exit|signal|sigaction)$/) {
            complain("a library calls no " word "()")
        }
    }
}

END {
    if (file != "") {
        end_of_file()
    }
    exit bad
}
