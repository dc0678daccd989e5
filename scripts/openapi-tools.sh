#!/usr/bin/env bash
# Installs the programs that read the OpenAPI document into dist/openapi: validators, generators of clients,
# schemathesis.
. "$(dirname "$0")/tools.bash"

locks=internal/test/openapitest/testdata
wanted openapi 190 $locks/requirements.txt $locks/package-lock.json || exit 0
from_pip "$folder/venv" install -r $locks/requirements.txt
from_npm $locks
installed
