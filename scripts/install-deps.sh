#!/usr/bin/env bash
# Installs what the build and the tests need on a Debian machine, and only what is missing. It lists that with its size,
# asks, and then installs it; with the option -n it only lists it, with YES=1 it does not ask. scripts/tools.bash
# describes where the packages of PyPI and npm are.
#
#   install-deps.sh [-n] [tests]  for "make test": Go, a C compiler, SQLite, Git LFS, curl, bubblewrap (it makes
#                                 sandboxes), tmux (it is the terminal of interlock top), Node, and Python with its
#                                 cryptography
#   install-deps.sh [-n] all      for "make prove": also strace (it lets the disk of the real server fail), iproute2 (a
#                                 network is cut), systemd and rpm (they check the packages), buildah (it builds the
#                                 image), chromium (it opens the dashboard), and what the suites race, doors, redis and
#                                 firestore need
#   install-deps.sh [-n] peers    for the comparison in bench/peers
#   install-deps.sh clean         removes the cache of scripts/tools.bash
#
# Nothing is enabled or started on this machine: the tests start servers of their own, which scripts/server-tools.sh
# unpacks, and for what other packages bring scripts/no-services is first in the PATH of their scripts.
. "$(dirname "$0")/tools.bash"

kind=${1-tests}
missing=()
need() { # command package...
    if ! command -v "$1" >/dev/null 2>&1; then missing+=("${@:2}"); fi
}
tools=()
PATH=$PATH:/usr/sbin # where Debian keeps mkfs.xfs
need go golang-go
need git git
need flock util-linux
case $kind in
tests | all)
    need curl curl
    need openssl openssl
    need gcc gcc libc6-dev
    need psql postgresql-client
    need redis-cli redis-tools
    need sqlite3 sqlite3
    need bwrap bubblewrap
    need tmux tmux
    need mkfs.xfs xfsprogs
    need git-lfs git-lfs
    need gpg gpg
    need gpg-agent gpg-agent
    need ssh-keygen openssh-client
    need python3 python3
    need node nodejs
    need npm npm
    if [ ! -e /usr/share/zoneinfo ]; then missing+=(tzdata); fi
    if ! python3 -c 'import ensurepip' >/dev/null 2>&1; then missing+=(python3-venv); fi
    if ! /usr/bin/python3 -c 'import cryptography' >/dev/null 2>&1; then missing+=(python3-cryptography); fi
    tools=("server-tools.sh redis-server postgresql" typescript-tools.sh python-tools.sh)
    ;;&
all)
    need strace strace
    need ip iproute2
    need systemd-analyze systemd
    need rpm rpm
    need buildah buildah
    need chromium chromium
    tools+=(
        "server-tools.sh prometheus pgbouncer" openapi-tools.sh door-tools.sh redis-tools.sh "typescript-tools.sh doors"
        framework-tools.sh valkey.sh
    )
    ;;
tests) ;;
peers) tools=("server-tools.sh redis-server postgresql") ;;
clean)
    folders=("$cache")
    # Root has servers there, see server-tools.sh.
    if [ -z "${INTERLOCK_TEST_CACHE-}${XDG_CACHE_HOME-}" ]; then folders+=(/var/cache/interlock-test); fi
    for folder in "${folders[@]}"; do
        rm -rf "$folder"/*-????????????????{,.lock}
    done
    exit
    ;;
*)
    echo "usage: $0 [-n] [tests|all|peers|clean]" >&2
    exit 2
    ;;
esac

# Debian's Go may be older than this module asks for. From 1.21 on, Go fetches the version it needs by itself; before,
# and where that is switched off, only a newer Go helps.
check_go() {
    local want have
    want=$(awk '$1 == "go" {print $2; exit}' go.mod)
    if ! have=$(go env GOVERSION 2>&1) || [[ $have != go* ]] ||
        [ "$(printf '%s\n%s\n' "$want" "${have#go}" | sort -V | head -n 1)" != "$want" ]; then
        echo "Interlock needs Go $want or newer; here is: ${have:-none}." >&2
        echo "Install it from https://go.dev/dl/ and put it first in PATH." >&2
        exit 1
    fi
}
if command -v go >/dev/null; then check_go; fi

# sizes PACKAGE... prints how much these and what they need beside it take. It needs no root.
sizes() {
    local all
    all=$(LC_ALL=C apt-get -s --no-install-recommends install "$@" 2>/dev/null |
        awk '$1 == "Inst" {v = $3 ~ /^\[/ ? $4 : $3; sub(/^\(/, "", v); print $2 "=" v}') &&
        LC_ALL=C apt-cache show --no-all-versions $all | awk '
            $1 == "Package:" {p = $2}
            $1 == "Size:" {load[p] = $2 / 1e6}
            $1 == "Installed-Size:" {full[p] = $2 * 1024 / 1e6}
            END {for (p in load) {n++; l += load[p]; f += full[p]}
                printf "with what they need %d packages, %.0f MB to download, %.0f MB installed", n, l, f}' ||
        echo "of unknown size, because the package lists of this machine are empty or old"
}

list=
as_root=()
if [ ${#missing[@]} -gt 0 ]; then
    if ! command -v apt-get >/dev/null; then
        echo "missing Debian packages: ${missing[*]}" >&2
        echo "This machine has no apt-get: install their programs by its own means." >&2
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
    list="- into this system, with ${as_root[*]:+sudo }apt-get: ${missing[*]} ($(sizes "${missing[@]}"))"$'\n'
fi
for tool in "${tools[@]}"; do
    part=$(scripts/${tool/.sh/.sh -n})
    list+=${part:+$part$'\n'}
done

if [ -n "$list" ]; then
    list="These packages are missing:"$'\n'${list%$'\n'}
else
    echo "nothing is missing: all programs that the tests need are installed"
fi
if [ -n "$list_only" ]; then
    printf '%s' "${list:+$list$'\n'}"
    exit
fi
if [ ${#as_root[@]} -gt 0 ] && ! command -v sudo >/dev/null; then
    echo "$list" >&2
    echo "There is no sudo. Run this as root first: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
fi
if [ -n "$list" ]; then agree "$list"; fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing Debian packages: ${missing[*]}"
    "${as_root[@]}" apt-get update -qq || echo "some package lists could not be read" >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get install -y -qq \
        --no-install-recommends --no-remove -o DPkg::Lock::Timeout=600 \
        -o DPkg::Path="$PWD/scripts/no-services:/usr/sbin:/usr/bin:/sbin:/bin" "${missing[@]}" >/dev/null
fi
check_go
for tool in "${tools[@]}"; do scripts/$tool; done
