#!/usr/bin/env bash
# Installs what checks, tests and builds the client for Python into dist/python: mypy, ruff and hatchling in a venv,
# pytest as pure Python in the folder lib, for every interpreter of this machine, and pyright from npm. The lock files
# of internal/test/pythontest name each package with its version and its hash. What was installed from the same files
# stays. With the option -n it only reports what it would do.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=internal/test/pythontest/testdata
folder=dist/python
want=$(cat $locks/requirements.txt $locks/pytest.txt $locks/package-lock.json | sha256sum | cut -d' ' -f1)
if [ "$(cat $folder/installed 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ "${1-}" = -n ]; then
    echo "missing: the packages of $locks/requirements.txt, pytest.txt and package-lock.json, to be installed into $folder"
    exit 0
fi
echo "installing the packages of $locks/requirements.txt, pytest.txt and package-lock.json into $folder"
rm -rf $folder
mkdir -p $folder
python3 -m venv $folder/venv
pip=("$folder/venv/bin/pip" install -q --disable-pip-version-check --require-hashes --no-deps)
"${pip[@]}" -r $locks/requirements.txt
"${pip[@]}" -r $locks/pytest.txt --target $folder/lib --only-binary=:all: --platform any --implementation py \
    --abi none --python-version 3.10
cp $locks/package.json $locks/package-lock.json $folder
(cd $folder && npm ci --silent --ignore-scripts --no-audit --no-fund)
echo "$want" >$folder/installed
