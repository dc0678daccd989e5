#!/usr/bin/env bash
# Installs the agent frameworks that the client for Python is tested with into dist/frameworks, each into a venv of its
# own: they need different versions of the same packages. NAME.build has what builds those that are not taken as wheels.
. "$(dirname "$0")/tools.bash"

for lock in internal/test/frameworktest/testdata/*.txt; do
    build=${lock%.txt}.build
    [ -f "$build" ] || build=
    wanted "frameworks/$(basename "$lock" .txt)" 300 "$lock" $build || continue
    for file in $build "$lock"; do from_pip "$folder" install --no-build-isolation -r "$file"; done
    installed
done
