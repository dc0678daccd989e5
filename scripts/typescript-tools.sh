#!/usr/bin/env bash
# Installs what the client for TypeScript is built and tested with into dist/typescript: the compiler, and what checks
# the format. With the argument doors it installs into dist/typescriptdoors what tries the finished package: frameworks,
# Deno, Bun, publint and attw.
. "$(dirname "$0")/tools.bash"

case ${1-client} in
client) locks=clients/typescript name=typescript size=40 ;;
doors) locks=internal/test/typescriptdoors/testdata name=typescriptdoors size=340 ;;
*)
    echo "usage: $0 [-n] [client|doors]" >&2
    exit 2
    ;;
esac
wanted $name $size $locks/package-lock.json || exit 0
from_npm $locks
installed
