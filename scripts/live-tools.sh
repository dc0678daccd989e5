#!/usr/bin/env bash
# Installs Gemini CLI and OpenCode into dist/live, for "make live". The lock file of internal/test/livetest names each
# package with its version and its hash. What was installed from the same lock file stays.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=internal/test/livetest/testdata
folder=dist/live
want=$(sha256sum <$locks/package-lock.json | cut -d' ' -f1)
if [ "$(cat $folder/installed 2>/dev/null)" = "$want" ]; then exit 0; fi
echo "installing the packages of $locks/package-lock.json into $folder"
rm -rf $folder
mkdir -p $folder
cp $locks/package.json $locks/package-lock.json $folder
# Not "npm ci": it insists on the packages of OpenCode for other platforms, which not every registry serves.
(cd $folder && npm install --silent --ignore-scripts --no-audit --no-fund)
# OpenCode's own step puts the program for this platform in its place.
(cd $folder/node_modules/opencode-ai && node postinstall.mjs >/dev/null)
echo "$want" >$folder/installed
