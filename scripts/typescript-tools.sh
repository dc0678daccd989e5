#!/usr/bin/env bash
# Installs what the client for TypeScript is built and tested with into dist/typescript: the compiler, and what checks
# the format. With the argument doors it installs into dist/typescriptdoors what tries the finished package: frameworks,
# Deno, Bun, publint and attw.
. "$(dirname "$0")/tools.bash"

case ${1-client} in
client) locks=clients/typescript folder=dist/typescript ;;
doors) locks=internal/test/typescriptdoors/testdata folder=dist/typescriptdoors ;;
*)
    echo "usage: $0 [-n] [client|doors]" >&2
    exit 2
    ;;
esac
wanted $folder $locks/package-lock.json || exit 0
from_npm $locks $folder
installed $folder
