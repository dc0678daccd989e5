#!/usr/bin/env bash
# Three workers go through two phases together: nobody begins the second before all
# have finished the first. A barrier's lease also tells when one of them dies.
#
# Start a server first: interlock serve --data-dir data
set -euo pipefail
export log
log=$(mktemp)
trap 'rm -f "$log"' EXIT

work() {
    echo "first" >>"$log"
    eval "$(interlock barrier arrive --wait 1m 2>/dev/null)" || return
    echo "second" >>"$log"
}
export -f work

for _ in {1..3}; do
    interlock run --quiet --parties 3 build:42 -- bash -c work &
done
wait
uniq -c "$log" | sed 's/^ *//'
