#!/usr/bin/env bash
# Installs what the build and the tests need on a fresh Debian machine, and only what is missing:
# Go, a C compiler (the race detector needs it), strace (it lets
# the disk of the real server fail), iproute2 (a network is cut), systemd and rpm (they check the packages),
# buildah (it builds the image), curl (an example uses it), prometheus (alerts and dashboard are asked there),
# bubblewrap (it makes sandboxes), chromium (it opens the dashboard), tmux (it is the terminal of interlock top),
# a pooler of PostgreSQL, and what fences are checked in:
# PostgreSQL, SQLite, Redis, Git LFS, and Python with its cryptography. The tests start servers of their own.
# Python and Node also run the tests of the clients for TypeScript and Python: scripts/typescript-tools.sh and
# scripts/python-tools.sh install what these need below dist. The suites race, doors, redis and firestore install what
# they need beside that by scripts of their own.
# It lists the missing packages before it installs them. With the option -n it only lists them.
# With the argument "all" it installs the programs of those suites as well; with "peers" only what the comparison in
# bench/peers needs.
set -euo pipefail
cd "$(dirname "$0")/.."

list_only=
if [ "${1-}" = -n ]; then
    list_only=yes
    shift
fi
kind=${1-tests}
PATH=$PATH$(printf ':%s' /usr/lib/postgresql/*/bin) # where Debian keeps the server's programs
missing=()
need() { # command package...
    if ! command -v "$1" >/dev/null 2>&1; then missing+=("${@:2}"); fi
}
need go golang-go
need git git
need redis-server redis-server
need postgres postgresql
case $kind in
tests | all)
    need curl curl
    need gcc gcc libc6-dev
    need strace strace
    need ip iproute2
    need systemd-analyze systemd
    need rpm rpm
    need buildah buildah
    need psql postgresql-client
    need promtool prometheus
    if [ ! -x /usr/sbin/pgbouncer ]; then missing+=(pgbouncer); fi
    need redis-cli redis-tools
    need sqlite3 sqlite3
    need bwrap bubblewrap
    need chromium chromium
    need tmux tmux
    if [ ! -x /usr/sbin/mkfs.xfs ]; then missing+=(xfsprogs); fi
    need git-lfs git-lfs
    need python3 python3
    need node nodejs
    need npm npm
    if ! python3 -c 'import ensurepip' >/dev/null 2>&1; then missing+=(python3-venv); fi
    if ! /usr/bin/python3 -c 'import cryptography' >/dev/null 2>&1; then missing+=(python3-cryptography); fi
    ;;
peers) ;;
*)
    echo "usage: $0 [-n] [tests|all|peers]" >&2
    exit 2
    ;;
esac

if [ ${#missing[@]} -eq 0 ]; then
    echo "nothing is missing: all programs that the tests need are installed"
elif [ -n "$list_only" ]; then
    echo "missing Debian packages, to be installed without -n: ${missing[*]}"
else
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "missing: ${missing[*]}. This machine has no apt-get: install them by its own means." >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "missing: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    echo "installing these missing Debian packages with ${as_root[*]:+sudo }apt-get: ${missing[*]}"
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then # the packages shall not start their own servers now
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
        trap '"${as_root[@]}" rm -f $policy' EXIT
        "${as_root[@]}" chmod +x $policy
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ca-certificates "${missing[@]}" >/dev/null
fi

# Debian's Go may be older than this module asks for. From 1.21 on, Go fetches the version it needs by itself; before,
# and where that is switched off, only a newer Go helps.
want=$(awk '$1 == "go" {print $2; exit}' go.mod)
if ! have=$(go env GOVERSION 2>&1) || [[ $have != go* ]] ||
    [ "$(printf '%s\n%s\n' "$want" "${have#go}" | sort -V | head -n 1)" != "$want" ]; then
    echo "Interlock needs Go $want or newer; here is: ${have:-none}. Install it from https://go.dev/dl/ and put it first in PATH." >&2
    exit 1
fi

if [ "$kind" != peers ]; then
    scripts/typescript-tools.sh ${list_only:+-n}
    scripts/python-tools.sh ${list_only:+-n}
fi
if [ "$kind" = all ]; then
    scripts/openapi-tools.sh ${list_only:+-n}
    scripts/door-tools.sh ${list_only:+-n}
    scripts/redis-tools.sh ${list_only:+-n}
    scripts/typescript-tools.sh ${list_only:+-n} doors
    scripts/valkey.sh ${list_only:+-n}
fi
