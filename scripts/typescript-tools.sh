#!/usr/bin/env bash
# Installs what the client for TypeScript is built and tested with into dist/typescript: the compiler, and what checks
# the format. With the argument doors it installs into dist/typescriptdoors what tries the finished package: frameworks,
# Deno, Bun, publint and attw. A lock file names each package with its version and its hash. What was installed from
# the same lock file stays. With the option -n it only reports what it would do.
set -euo pipefail
cd "$(dirname "$0")/.."

list_only=
if [ "${1-}" = -n ]; then
    list_only=yes
    shift
fi
case ${1-client} in
client) locks=clients/typescript folder=dist/typescript ;;
doors) locks=internal/test/typescriptdoors/testdata folder=dist/typescriptdoors ;;
*)
    echo "usage: $0 [-n] [client|doors]" >&2
    exit 2
    ;;
esac
want=$(sha256sum <$locks/package-lock.json | cut -d' ' -f1)
if [ "$(cat $folder/installed 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ -n "$list_only" ]; then
    echo "missing: the packages of $locks/package-lock.json, to be installed into $folder"
    exit 0
fi
echo "installing the packages of $locks/package-lock.json into $folder"
rm -rf $folder
mkdir -p $folder
cp $locks/package.json $locks/package-lock.json $folder
(cd $folder && npm ci --silent --ignore-scripts --no-audit --no-fund)
echo "$want" >$folder/installed
