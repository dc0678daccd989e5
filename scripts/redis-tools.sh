#!/usr/bin/env bash
# Installs the test suites of libraries for locks over Redis into dist/redis: those of redis-py, pottery and redlock-py
# from their source distributions, that of redlock from npm, and what they need. The lists and the lock file of
# internal/test/redistest name each package with its version and its hash. What was installed from the same files stays.
# With the option -n it only reports what it would do.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=internal/test/redistest/testdata
folder=dist/redis
want=$(cat $locks/requirements.txt $locks/suites.txt $locks/package-lock.json | sha256sum | cut -d' ' -f1)
if [ "$(cat $folder/installed 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ "${1-}" = -n ]; then
    echo "missing: the packages of requirements.txt, suites.txt and package-lock.json in $locks, for $folder"
    exit 0
fi
echo "installing the packages of $locks/requirements.txt, suites.txt and package-lock.json into $folder"
rm -rf $folder
mkdir -p $folder
python3 -m venv $folder/venv
pip=$folder/venv/bin/pip
$pip install -q --disable-pip-version-check --require-hashes --no-deps -r $locks/requirements.txt
$pip download -q --disable-pip-version-check --require-hashes --no-deps --no-binary :all: --no-build-isolation \
    -r $locks/suites.txt -d $folder
for archive in $folder/*.tar.gz; do tar -xzf "$archive" -C $folder; done
cp $locks/package.json $locks/package-lock.json $folder
(cd $folder && npm ci --silent --ignore-scripts --no-audit --no-fund)
echo "$want" >$folder/installed
