#!/usr/bin/env bash
# Installs what checks, tests and builds the client for Python into dist/python: mypy, ruff and hatchling in a venv,
# pytest as pure Python in the folder lib, for every interpreter of this machine, and pyright from npm.
. "$(dirname "$0")/tools.bash"

locks=internal/test/pythontest/testdata
wanted python 180 $locks/requirements.txt $locks/pytest.txt $locks/package-lock.json || exit 0
from_pip "$folder/venv" install -r $locks/requirements.txt
from_pip "$folder/venv" install -r $locks/pytest.txt --target "$folder/lib" --only-binary=:all: --platform any \
    --implementation py --abi none --python-version 3.10
from_npm $locks
installed
