#!/usr/bin/env bash
# Runs the server from the files of its image as a container engine or Kubernetes does: nothing else is there, the user
# is not root, and nothing but /data can be written to:
#
#   unshare --mount --net --pid --fork --kill-child bash image.sh ROOT DOCKERFILE [NAME=VALUE...]
set -euo pipefail
root=$1 dockerfile=$2
shift 2
environment=("$@")

ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o uid=65532,gid=65532,mode=0700 tmpfs "$root/data"
mount -o remount,ro,bind "$root"
mkfifo "$root/data/ready"
inside() { exec env -i "${environment[@]}" /usr/sbin/chroot --userspec=65532:65532 "$root" "$@"; }
mapfile -t health < <(sed -nE 's/^HEALTHCHECK .*CMD \["(.*)"\]$/\1/p' "$dockerfile" | sed 's/", "/\n/g')

inside /interlock serve --insecure >"$root/data/ready" &
server=$! # chroot and env become the server
read -r line <"$root/data/ready"
echo "$line"
(inside "${health[@]}")
(inside /interlock lock account:1 --ttl 30s) >/dev/null && echo "locked"
kill "$server"
wait "$server" && echo "stopped"
