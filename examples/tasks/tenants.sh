#!/usr/bin/env bash
# One tenant has a backlog of twelve tasks, then two others come with two each. They take
# turns, so nobody waits behind the backlog; acme pays for two turns in each round.
source "$(dirname "$0")/../example.sh"

quiet interlock queue set mail --group acme=2
for tenant in acme{,,,,,,,,,,,} bell bell cord cord; do
    quiet interlock task create mail --group "$tenant" --kind "$tenant" >/dev/null
done
interlock task work mail --quiet --idle 0 -o json -- sh -c 'printf "%s" "$INTERLOCK_KIND"' |
    grep '"event":"done"' | grep -o '"detail":"[^,}]*' | tr -dc 'a-z\n' | sed 's/^detail//' | head -n 8 | sort | uniq -c | sed 's/^ *//'
