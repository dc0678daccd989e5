#!/usr/bin/env bash
# Installs Gemini CLI and OpenCode into dist/live, for "make live".
. "$(dirname "$0")/tools.bash"

locks=internal/test/livetest/testdata
wanted live 500 $locks/package-lock.json || exit 0
# Not "npm ci": it insists on the packages of OpenCode for other platforms, which not every registry serves.
from_npm $locks install
# OpenCode's own step puts the program for this platform in its place.
(cd "$folder"/node_modules/opencode-ai && node postinstall.mjs >/dev/null)
installed
