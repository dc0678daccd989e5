#!/usr/bin/env bash
# Runs each fuzz target for a number of inputs, or a time, and prints what "go test -json" prints.
# usage: fuzz.sh 5000x|5s [package...]
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1
shift
failed=0
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${@:-./...}")
for package in $packages; do
    dir=$(go list -f '{{.Dir}}' "$package")
    grep -qs '^func Fuzz' "$dir"/*_test.go || continue
    for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go); do
        go test -json -run='^$' -fuzz="^$target\$" -fuzztime="$time" "$package" || failed=1
    done
done
exit $failed
