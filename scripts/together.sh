#!/usr/bin/env bash
# Makes several lists of targets at the same time, each list in its order, and prints the output of each target when
# all are done. Most of what these suites do is to wait.
#
#   together.sh "etcd redis" "postgres firestore"
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for lane in "$@"; do
    for target in $lane; do
        make --no-print-directory "$target" >"$out/$target" 2>&1 || echo "$target" >>"$out/failed"
    done &
done
wait
touch "$out/failed"
for target in $*; do # those that failed come last
    grep -qx "$target" "$out/failed" || cat "$out/$target"
done
while read -r target; do
    cat "$out/$target"
    echo "make $target failed" >&2
done <"$out/failed"
[ ! -s "$out/failed" ]
