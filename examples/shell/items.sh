#!/usr/bin/env bash
# Eight workers race for the next of forty items. Each item has one winner: a worker
# asks for any one member of the pool, and gets exactly one that nobody else has.
source "$(dirname "$0")/../example.sh"

interlock pattern set item 'item:{n:int}' --member 'item:{1..40}'

# work NAME takes items until there are none, and keeps them, so that nobody takes
# one a second time.
work() {
    while lease=$(interlock lock --any-prefix item: --wait 0 --agent "$1" 2>/dev/null); do
        (eval "$lease" && echo "$INTERLOCK_KEYS") >>"$dir/$1"
    done
}
for n in {1..8}; do work "worker-$n" & done
finish
echo "items taken: $(cat "$dir"/worker-* | wc -l), taken twice: $(sort "$dir"/worker-* | uniq -d | wc -l)"
