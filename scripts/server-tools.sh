#!/usr/bin/env bash
# Unpacks servers of Debian into dist/servers/NAME, those of the arguments that this machine lacks: redis-server,
# postgresql, pgbouncer, prometheus. It needs no root. apt-get fetches the packages and checks their signatures and
# hashes; it does not install them, because they would enable and start services on this machine. The programs are in
# bin: each sets the path of the libraries that this machine lacks.
. "$(dirname "$0")/tools.bash"

PATH=$PATH:/usr/sbin$(printf ':%s' /usr/lib/postgresql/*/bin) # where Debian keeps programs of servers
# PostgreSQL never runs as root, and other users cannot enter the home of root.
if [ "$(id -u)" -eq 0 ] && [ -z "${INTERLOCK_TEST_CACHE-}${XDG_CACHE_HOME-}" ]; then cache=/var/cache/interlock-test; fi
interpreters=()

# present PROGRAM... reports whether this machine has all of them.
present() {
    local program
    for program in "$@"; do command -v "$program" >/dev/null || return 1; done
}

# apt calls a program of apt with package lists of this script, below $folder: those of the machine may be empty or old,
# and only root may renew them.
apt() {
    LC_ALL=C "$1" -qq -o Dir::State::lists="$folder/apt/lists" -o Dir::Cache="$folder/apt" \
        -o APT::Sandbox::User=root "${@:2}"
}

# unpack SERVER unpacks its packages, and of those that they need the libraries that this machine lacks, into
# $folder/root. The C library belongs to its loader; LLVM only makes long queries faster.
unpack() {
    local packages=("$1") libraries deb
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
    apt apt-get update || echo "some package lists could not be read" >&2
    case $1 in
    redis-server) packages+=(redis-tools) ;;
    postgresql)
        packages=($(apt apt-cache depends postgresql | awk '$1 == "Depends:" && $2 ~ /^postgresql-[0-9]+$/ {print $2}'))
        packages+=("${packages[0]/-/-client-}")
        ;;
    esac
    libraries=$(apt apt-get -s --no-install-recommends install "${packages[@]}" | awk '
        $1 == "Inst" && $2 ~ /^lib/ && $2 !~ /^(libc6|libc-bin|libc-l10n|libjs-|libllvm|libperl)|-perl$/ {print $2}')
    (cd "$folder/apt" && apt apt-get download "${packages[@]}" $libraries)
    for deb in "$folder"/apt/*.deb; do dpkg-deb -x "$deb" "$folder/root"; done
    rm -rf "$folder/apt" "$folder"/root/usr/lib/postgresql/*/lib/llvmjit.so
}

# wrap writes the programs of $folder/bin.
wrap() {
    local libraries= library program
    for library in "$folder"/root/{,usr/}lib/*-linux-gnu*; do
        if [ -d "$library" ]; then libraries+=$library:; fi
    done
    mkdir "$folder/bin"
    for program in "$folder"/root/usr/{bin,sbin,lib/postgresql/*/bin}/*; do
        if [ ! -x "$program" ]; then continue; fi
        cat >"$folder/bin/${program##*/}" <<END
#!/bin/sh
LD_LIBRARY_PATH="$libraries\$LD_LIBRARY_PATH" exec "$program" "\$@"
END
        chmod +x "$folder/bin/${program##*/}"
    done
}

for server in "$@"; do
    case $server in
    redis-server) size=5 programs=(redis-server) ;;
    postgresql) size=60 programs=(postgres) ;;
    pgbouncer) size=3 programs=(pgbouncer) ;;
    prometheus) size=150 programs=(prometheus promtool) ;;
    *)
        echo "usage: $0 [-n] redis-server|postgresql|pgbouncer|prometheus..." >&2
        exit 2
        ;;
    esac
    if present "${programs[@]}"; then continue; fi
    if ! present apt-get dpkg-deb; then
        echo "missing: ${programs[*]}. This machine has no apt-get: install them by its own means." >&2
        exit 1
    fi
    wanted "servers/$server" $size || continue
    unpack "$server"
    wrap
    for program in "${programs[@]}"; do "$folder/bin/$program" --version >/dev/null; done
    if [ "$server" = postgresql ] && [ "$(id -u)" -eq 0 ] &&
        ! (cd / && setpriv --reuid=65534 --regid=65534 --clear-groups "$folder/bin/postgres" --version >/dev/null); then
        echo "PostgreSQL does not run as root, and other users cannot enter $folder:" >&2
        echo "set INTERLOCK_TEST_CACHE to a folder that they can enter." >&2
        exit 1
    fi
    installed
done
