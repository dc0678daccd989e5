#!/usr/bin/env bash
# Installs the agent frameworks that the client for Python is tested with into dist/frameworks, each into a venv of its
# own: they need different versions of the same packages. The requirements of internal/test/frameworktest name each
# package with its version and its hash. NAME.build has what builds those that are not taken as wheels. What was
# installed from the same files stays. With the option -n it only reports what it would do.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=internal/test/frameworktest/testdata
folder=dist/frameworks
for lock in $locks/*.txt; do
    name=$(basename "$lock" .txt)
    build=${lock%.txt}.build
    [ -f "$build" ] || build=
    want=$(cat "$lock" $build | sha256sum | cut -d' ' -f1)
    if [ "$(cat "$folder/$name/installed" 2>/dev/null)" = "$want" ]; then continue; fi
    if [ "${1-}" = -n ]; then
        echo "missing: the packages of $lock, to be installed into $folder/$name"
        continue
    fi
    echo "installing the packages of $lock into $folder/$name"
    rm -rf "${folder:?}/$name"
    mkdir -p $folder
    python3 -m venv "$folder/$name"
    for file in $build "$lock"; do
        "$folder/$name/bin/pip" install -q --disable-pip-version-check --require-hashes --no-deps --no-build-isolation \
            -r "$file"
    done
    echo "$want" >"$folder/$name/installed"
done
