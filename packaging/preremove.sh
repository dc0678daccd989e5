#!/bin/sh
# Stops the server when the package goes, and not at an upgrade: dpkg passes "remove", rpm the number of packages left.
set -e
case "$1" in
remove | 0)
    if [ -d /run/systemd/system ]; then systemctl disable --now interlock.service; fi
    ;;
esac
