#!/usr/bin/env bash
# Runs the tests that need a real etcd cluster, and prints what "go test -json" prints. They are a module of their
# own, so that etcd's server is downloaded by nobody else. The test with a network namespace takes root and iproute2.
set -euo pipefail
cd "$(dirname "$0")/../journal/etcdjournal/etcdtest"
failovers=$1
namespaces=()
try=interlock-try-$$
if ip netns add "$try" 2>/dev/null; then
    ip netns del "$try"
    namespaces=(-namespaces)
fi
skip=()
if [ ${#namespaces[@]} -eq 0 ]; then
    echo "etcd: no network namespaces can be made here: the cut is tested by proxies only" >&2
    skip=(-skip '^TestCutByNamespace$')
fi
exec go test -json -count=1 -timeout=15m "${skip[@]}" . -failovers "$failovers" "${namespaces[@]}"
