#!/usr/bin/env bash
# An organisation may have two runs at a time, and ten callers come at once: exactly
# two are admitted, and eight are told so at once, with exit code 75 and what they
# could do instead.
source "$(dirname "$0")/../example.sh"
runs=org:acme/runs

interlock pattern set runs 'org:{org}/runs' --capacity 2

ask() { # number
    local code=0
    interlock lock --permits 1 --wait 0 --agent "caller-$1" "$runs" >"$dir/$1.lease" 2>"$dir/$1.said" || code=$?
    echo "$code" >"$dir/$1.code"
}
for n in {1..10}; do ask "$n" & done
finish
echo "admitted: $(cat "$dir"/*.code | grep -cx 0), refused with 75: $(cat "$dir"/*.code | grep -cx 75)"

# The permits of those who were admitted come back when they are done.
for n in {1..10}; do
    [[ $(<"$dir/$n.code") == 0 ]] || continue
    (. "$dir/$n.lease" && interlock unlock)
done
interlock run --quiet --permits 2 "$runs" -- echo "both permits are free again"
