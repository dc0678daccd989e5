#!/usr/bin/env bash
# Three workers go through two phases together: nobody begins the second before all
# have finished the first. A barrier's lease also tells when one of them dies.
source "$(dirname "$0")/../example.sh"
export log=$dir/log

work() {
    echo "first" >>"$log"
    lease=$(quiet interlock barrier arrive --wait 1m) || return
    eval "$lease"
    echo "second" >>"$log"
}
export -f quiet work
export dir

for _ in {1..3}; do
    interlock run --quiet --parties 3 build:42 -- bash -c work &
done
finish
uniq -c "$log" | sed 's/^ *//'
