#!/usr/bin/env bash
# Installs the compiler that builds the client for TypeScript, and what its tests are checked with, into
# dist/typescript. clients/typescript/package-lock.json names each package with its version and its hash. What was
# installed from the same lock file stays. With the option -n it only reports what it would do.
set -euo pipefail
cd "$(dirname "$0")/.."

package=clients/typescript
folder=dist/typescript
want=$(sha256sum <$package/package-lock.json | cut -d' ' -f1)
if [ "$(cat $folder/installed 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ "${1-}" = -n ]; then
    echo "missing: the packages of $package/package-lock.json, to be installed into $folder"
    exit 0
fi
echo "installing the packages of $package/package-lock.json into $folder"
rm -rf $folder
mkdir -p $folder
cp $package/package.json $package/package-lock.json $folder
(cd $folder && npm ci --silent --ignore-scripts --no-audit --no-fund)
echo "$want" >$folder/installed
