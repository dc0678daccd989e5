#!/usr/bin/env bash
# Installs the test suites of libraries for locks over Redis into dist/redis: those of redis-py, pottery and redlock-py
# from their source distributions, that of redlock from npm, and what they need.
. "$(dirname "$0")/tools.bash"

locks=internal/test/redistest/testdata
wanted redis 80 $locks/requirements.txt $locks/suites.txt $locks/package-lock.json || exit 0
from_pip "$folder/venv" install -r $locks/requirements.txt
from_pip "$folder/venv" download --no-binary :all: --no-build-isolation -r $locks/suites.txt -d "$folder"
for archive in "$folder"/*.tar.gz; do tar -xzf "$archive" -C "$folder"; done
from_npm $locks
installed
