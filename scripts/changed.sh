#!/usr/bin/env bash
# Prints the packages whose files differ from BASE, committed or not. Packages that import them are left to "make test".
# The default for BASE is where this branch left origin/main or main; on main itself it is the commit before HEAD.
# usage: changed.sh [BASE]
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1-}
if [ -z "$base" ]; then
    for main in origin/main main; do
        if git rev-parse --verify --quiet "$main" >/dev/null; then
            base=$(git merge-base HEAD "$main")
            break
        fi
    done
    if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=HEAD~; fi
fi

# The folder of a file is the next one above it that has Go files: testdata belongs to its package.
folders=$({
    git diff --name-only --no-renames "$base"
    git ls-files --others --exclude-standard
} | while read -r file; do
    dir=$(dirname "$file")
    while [ "$dir" != . ] && ! compgen -G "$dir/*.go" >/dev/null; do dir=$(dirname "$dir"); done
    case $dir/$file in ./*.go | [!.]*) echo "$dir" ;; esac
done | sort -u)

# Folders of other modules, and folders that are gone, are no packages of this module.
go list ./... | awk -v folders="$folders" -v module="$(go list -m)" '
    BEGIN {
        n = split(folders, list, "\n")
        for (i = 1; i <= n; i++) changed[list[i] == "." ? module : module "/" list[i]] = 1
    }
    $1 in changed'
