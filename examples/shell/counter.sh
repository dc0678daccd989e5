#!/usr/bin/env bash
# Ten shells add one to a number in a file, each under a lease, and each shows its
# fence at the file: a shell that was frozen until its lease had passed on would be
# refused there.
source "$(dirname "$0")/../example.sh" flock
export counter=$dir/counter
echo 0 >"$counter"
echo 0 >"$counter.fence"

# guard FENCE COMMAND... runs a command on the counter unless the file has seen a
# higher fence. The lock makes looking and acting one step.
guard() {
    (
        flock 9
        read -r seen <"$counter.fence"
        if ((seen > $1)); then
            echo "fence $1 is stale, the counter has seen fence $seen" >&2
            exit 65
        fi
        echo "$1" >"$counter.fence"
        shift
        "$@"
    ) 9>>"$counter.lock"
}

add_one() {
    n=$(guard "$INTERLOCK_FENCE" cat "$counter") || return # reading shows the fence, too
    guard "$INTERLOCK_FENCE" tee "$counter" <<<$((n + 1)) >/dev/null
}
export -f guard add_one

for _ in {1..10}; do
    interlock run --quiet counter -- bash -c add_one &
done
finish
echo "ten shells, and the counter says $(<"$counter")"

INTERLOCK_FENCE=1 add_one || echo "a late shell is refused with exit code $?"
