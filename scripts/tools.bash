# Sourced by the scripts that install what tests need into folders below dist, from lock files that name each package
# with its version and its hash. What was installed from the same lock files stays. With the option -n a script only
# reports what it would install.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

list_only=
if [ "${1-}" = -n ]; then
    list_only=yes
    shift
fi

# wanted FOLDER FILE... reports whether the packages of the lock files are to be installed into the folder now, and
# empties it for them.
wanted() {
    local folder=$1
    shift
    want=$(cat "$@" | sha256sum | cut -d' ' -f1) || exit
    if [ "$(cat "$folder/installed" 2>/dev/null)" = "$want" ]; then return 1; fi
    if [ -n "$list_only" ]; then
        echo "missing: the packages of $*, to be installed into $folder"
        return 1
    fi
    echo "installing the packages of $* into $folder"
    rm -rf "${folder:?}"
    mkdir -p "$folder"
}

# from_pip VENV ARGUMENT... makes a venv if there is none, and lets its pip install or download, with hashes only.
from_pip() {
    local venv=$1 command=$2
    shift 2
    if [ ! -d "$venv/bin" ]; then python3 -m venv "$venv"; fi
    "$venv/bin/pip" "$command" -q --disable-pip-version-check --require-hashes --no-deps "$@"
}

# from_npm LOCKS FOLDER [COMMAND] installs the packages of LOCKS/package-lock.json with "npm ci", or another command of
# npm. None of their scripts is run.
from_npm() {
    cp "$1/package.json" "$1/package-lock.json" "$2"
    (cd "$2" && npm "${3-ci}" --silent --ignore-scripts --no-audit --no-fund)
}

# installed FOLDER records that all of it is there.
installed() { echo "$want" >"$1/installed"; }
