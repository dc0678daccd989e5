#!/bin/sh
# Leaves the journal and its owner: leases and fencing tokens must outlive a package.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
case "$1" in
purge | 0)
    if [ -d /var/lib/interlock ]; then echo "interlock: the journal is kept in /var/lib/interlock"; fi
    ;;
esac
