#!/usr/bin/env bash
# Installs the Debian package on a copy of this machine, runs the server as its unit does, and purges the package; then
# installs the RPM and removes it:
#
#   unshare --mount --net --pid --fork --kill-child bash install.sh DEB RPM SCRATCH
#
# The copy is an overlay in memory over the machine's own files, so that nothing of it stays.
set -euo pipefail
deb=$1 rpm=$2 scratch=$3

mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch"/{upper,work,root}
mount -t overlay overlay -o lowerdir=/,upperdir="$scratch/upper",workdir="$scratch/work" "$scratch/root"
cp "$deb" "$scratch/root/interlock.deb"
cp "$rpm" "$scratch/root/interlock.rpm"
mount --rbind /dev "$scratch/root/dev"
mount -t proc proc "$scratch/root/proc"
ip link set lo up

exec chroot "$scratch/root" bash -euo pipefail <<'CHROOT'
cd /
dpkg -i interlock.deb
dpkg --verify interlock && echo "verified"
id -nG interlock
interlock --version
interlock-hook --version
interlock health || echo "exit code $?"

unit=/usr/lib/systemd/system/interlock.service
systemd-analyze verify "$unit" && echo "the unit is in order"
systemd-analyze security --offline=true --threshold=20 "$unit" | tail -n 1

# What systemd does before it starts the server: the state directory, the user, the rights, the environment.
# systemd makes files of ExecStart's program; strace lists the system calls that its filter has to allow.
install -d -m 0700 -o interlock -g interlock /var/lib/interlock
set -a
eval "$(sed -n 's/^Environment=//p' "$unit")"
echo 'INTERLOCK_SERVE_HTTP=127.0.0.1:7999' >> /etc/interlock/interlock.env
. /etc/interlock/interlock.env
set +a
umask 0077
mkfifo /run/ready
setpriv --reuid=interlock --regid=interlock --init-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    strace --follow-forks --quiet=all -e signal=none -o /var/lib/interlock/calls \
    $(sed -n 's/^ExecStart=//p' "$unit") > /run/ready &
read -r line < /run/ready
echo "$line"
interlock lock account:1 --url http://127.0.0.1:7999 --ttl 30s > /dev/null && echo "locked"
interlock health --ready --url http://127.0.0.1:7999
kill "$(pgrep -u interlock -x interlock)"
wait $! || echo "the server ended with $?"

sed -E 's/^[0-9]+ +(<\.\.\. )?([a-z_0-9]+).*/\2/' /var/lib/interlock/calls | grep -xE '[a-z_0-9]+' | sort -u > /run/called
flat() { # the system calls of a group, and of the groups in it
    local name
    systemd-analyze syscall-filter "$1" | sed -nE 's/^    ([-@a-z_0-9]+)$/\1/p' | while read -r name; do
        if [[ $name == @* ]]; then flat "$name"; else echo "$name"; fi
    done
}
comm -23 <({ flat @system-service; flat @default; } | sort -u) <({ flat @privileged; flat @resources; } | sort -u) > /run/allowed
echo "refused system calls: $(comm -23 /run/called /run/allowed | tr '\n' ' ')"
echo "writable code: $(grep -cE 'PROT_WRITE\|PROT_EXEC' /var/lib/interlock/calls || true)"

dpkg --purge interlock
test -e /usr/bin/interlock || test -e /etc/interlock/interlock.env || echo "purged"
ls /var/lib/interlock/*.log | wc -l

# This machine's packages are no RPMs, so what the package needs cannot be looked up.
rpm --force-debian --nodeps --install interlock.rpm
rpm --verify --nodeps interlock && echo "verified the RPM"
rpm --query --requires interlock
interlock --version
rpm --force-debian --erase interlock
test -e /usr/bin/interlock || echo "erased"
CHROOT
