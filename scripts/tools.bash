# Sourced by the scripts that install what tests need below dist, from lock files that name each package with its
# version and its hash. What is installed is in a cache that all clones of this user share, and dist/NAME is a link to
# it. With the option -n a script only lists what it would install. It asks before it installs something, unless YES=1
# is set; without a terminal it fails then.
#
# INTERLOCK_TEST_CACHE names another folder for the cache; with "off" it is dist/cache, for this clone alone.
# "scripts/install-deps.sh clean" removes the cache.
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."

list_only=
if [ "${1-}" = -n ]; then
    list_only=yes
    shift
fi

case ${INTERLOCK_TEST_CACHE-} in
'') cache=${XDG_CACHE_HOME:-${HOME:?names no folder for the cache: set INTERLOCK_TEST_CACHE}/.cache}/interlock-test ;;
off) cache=$PWD/dist/cache ;;
/*) cache=$INTERLOCK_TEST_CACHE ;;
*) cache=$PWD/$INTERLOCK_TEST_CACHE ;;
esac

# agree LIST shows what is to be installed, and ends the script unless that is wanted.
agree() {
    if [ "${YES-}" = 1 ]; then return; fi
    printf '%s\n' "$1"
    if [ ! -t 0 ] || [ ! -t 1 ]; then
        echo "Nothing was installed: there is no terminal to ask on. To install this, run: YES=1 ${AGAIN:-$0}" >&2
        exit 1
    fi
    local answer=
    read -rp "Install this? [y/N] " answer || true
    case $answer in
    y | Y | yes) export YES=1 ;;
    *)
        echo "Nothing was installed." >&2
        exit 1
        ;;
    esac
}

# platform prints what the installed files depend on beside the lock files.
interpreters=(python3 node)
platform() {
    uname -sm
    grep -E '^(ID|VERSION_ID)=' /etc/os-release 2>/dev/null || true
    local program path
    for program in "${interpreters[@]}"; do
        if path=$(command -v $program); then readlink -f "$path" && "$path" --version; fi
    done
}

# wanted NAME MEGABYTES FILE... reports whether the packages of the lock files are to be installed now, into the new
# folder $folder. Paths in a venv are absolute, so it is built in its final place; nothing links to it before
# "installed". The kernel gives the lock back when the script and what it started have ended, however they end.
wanted() {
    name=$1
    local size=$2 hash
    shift 2
    hash=$({ cat "$@" "scripts/${0##*/}" scripts/tools.bash && platform; } | sha256sum) || exit
    folder=$cache/${name//\//-}-${hash:0:16}
    if [ -e "$folder/installed" ]; then
        if [ -z "$list_only" ]; then publish; fi
        return 1
    fi
    local line="dist/$name: some $size MB, in $folder"
    if [ -n "$list_only" ]; then
        echo "- $line"
        return 1
    fi
    agree "To be installed: $line"
    mkdir -p "$cache"
    exec 9>"$folder.lock"
    if ! flock -n 9; then
        echo "waiting for another run that installs into $folder"
        flock 9
    fi
    if [ -e "$folder/installed" ]; then
        publish
        return 1
    fi
    echo "installing $line"
    rm -rf "${folder:?}"
    mkdir "$folder"
}

# from_pip VENV ARGUMENT... makes a venv if there is none, and lets its pip install or download, with hashes only.
from_pip() {
    local venv=$1 command=$2
    shift 2
    if [ ! -d "$venv/bin" ]; then python3 -m venv "$venv"; fi
    "$venv/bin/pip" "$command" -q --disable-pip-version-check --require-hashes --no-deps "$@"
}

# from_npm LOCKS [COMMAND] installs the packages of LOCKS/package-lock.json with "npm ci", or another command of npm.
# None of their scripts is run.
from_npm() {
    cp "$1/package.json" "$1/package-lock.json" "$folder"
    (cd "$folder" && npm "${2-ci}" --loglevel=error --ignore-scripts --no-audit --no-fund >/dev/null)
}

# installed records that all of it is there.
installed() {
    : >"$folder/installed"
    publish
}

# publish lets dist/NAME be a link to the folder, from one moment to the next, and ends the lock.
publish() {
    local link=dist/$name
    if [ "$(readlink "$link")" != "$folder" ]; then
        mkdir -p "$(dirname "$link")"
        if [ ! -L "$link" ]; then rm -rf "$link"; fi # mv replaces a link, and no folder
        ln -s "$folder" "$link.$$"
        mv -T "$link.$$" "$link"
    fi
    exec 9>&-
}
