#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/python.sh - a Python of 3.13 or later, which tests/interop needs.
#
# usage: python.sh find DIR     prints the path of one: $PYTHON, or of the system, or that in DIR
#        python.sh ensure DIR   the same; where there is none and this is Debian, that of release 13
#                               is unpacked into DIR: nothing is installed, no root is needed
#
# Exit 1 and a sentence: there is none.
set -eu

usage() {
    sed -n 's/^# \(usage.*\|       python.*\)/\1/p' "$0" >&2
    exit 2
}

[ $# -eq 2 ] || usage
mkdir -p "$2"
root=$(cd "$2" && pwd)
release=trixie
packages="python3.13 python3.13-venv"

# It runs, is new enough, and can make a virtual environment and load our libraries.
suits() {
    "$1" -c 'import ctypes, ensurepip, ssl, sys, venv; sys.exit(sys.version_info < (3, 13))' \
        2>/dev/null
}

find_one() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.13 python3.14 python3.15 "$root/usr/bin/python3.13"
    fi
    for name; do
        if path=$(command -v "$name") && suits "$path"; then
            echo "$path"
            return 0
        fi
    done
    return 1
}

# What apt is told here of fetching, such as a proxy, but none of its hooks; and places of our own.
apt_settings() {
    apt-config dump | grep '^Acquire::[A-Za-z]'
    cat <<END
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$root/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$root/apt/state";
Dir::State::status "$root/apt/status";
Dir::Cache "$root/apt/cache";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
END
}

# The mirror that this machine's apt uses.
mirror() {
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        awk -v codename="$codename" '$1 ~ "^(" codename "|stable|oldstable)$" {print $2; exit}'
}

# Two of the files say where things are, and have to know that they are elsewhere.
settle() {
    loader=$(ls "$root"/usr/lib*/ld-linux*.so.* | head -n 1)
    libraries=$(dirname "$(ls "$root"/usr/lib/*/libc.so.6)")
    mv "$root/usr/bin/python3.13" "$root/usr/bin/python3.13.bin"
    cat >"$root/usr/bin/python3.13" <<END
#!/bin/sh
exec "$loader" --argv0 "\$0" --library-path "$libraries" "$root/usr/bin/python3.13.bin" "\$@"
END
    chmod 755 "$root/usr/bin/python3.13"
    sed -i "s|'/usr/share/python-wheels/*'|'$root/usr/share/python-wheels'|" \
        "$root"/usr/lib/python3.13/_sysconfigdata_*.py
}

fetch() {
    uri=$(mirror)
    [ -n "$uri" ] || { echo "apt names no mirror of Debian"; return 1; }
    rm -rf "$root"
    mkdir -p "$root/apt/state/lists/partial" "$root/apt/cache/archives/partial"
    : >"$root/apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $release main" \
        >"$root/apt/sources.list"
    apt_settings >"$root/apt/apt.conf"
    APT_CONFIG=$root/apt/apt.conf
    export APT_CONFIG
    apt-get -qq update || return 1
    apt-get -qq install --yes --download-only --no-install-recommends $packages || return 1
    for package in "$root"/apt/cache/archives/*.deb; do
        dpkg-deb --extract "$package" "$root" || return 1
    done
    rm -rf "$root/apt"
    settle
}

case $1 in
find) find_one && exit 0 ;;
ensure)
    find_one && exit 0
    if grep -q '^ID=debian' /etc/os-release 2>/dev/null && [ "${PYTHON:-}" = "" ]; then
        echo "Fetching Python 3.13 of Debian 13 into $2 ..." >&2
        if log=$(fetch 2>&1); then
            find_one && exit 0
        fi
        echo "$log" | tail -n 5 >&2
        rm -rf "$root"
    fi
    ;;
*) usage ;;
esac
echo "There is no Python 3.13 or later with pip and venv. Install one, or name it in PYTHON." >&2
exit 1
