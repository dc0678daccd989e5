#!/bin/sh
# Creates the user that the server runs as. An upgrade restarts a running server: clients notice a pause of a second.
set -e
if ! getent passwd interlock >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/interlock --no-create-home --shell /usr/sbin/nologin interlock
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart interlock.service
fi
