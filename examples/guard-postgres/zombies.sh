#!/usr/bin/env bash
# Three agents charge fees on one account. Two of them are frozen while they think: the
# lease of one expires meanwhile, that of the other is revoked. Both wake up too late
# and write what they had decided.
#
# The database is the one that PGHOST, PGDATABASE and so on name. The script makes the schema
# example_zombies there.
source "$(dirname "$0")/../example.sh" psql

sql() { psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --set VERBOSITY=terse; }

# As the owner of the tables, once.
interlock guard postgres install
PGOPTIONS="-c client_min_messages=warning" sql <<<"
DROP SCHEMA IF EXISTS example_zombies CASCADE;
CREATE SCHEMA example_zombies;
CREATE TABLE example_zombies.account (id bigint PRIMARY KEY, balance bigint);
INSERT INTO example_zombies.account VALUES (12345, 1000);"
interlock guard postgres attach --table example_zombies.account --key 'account:{id}' --for "$namespace"

# under FENCE STATEMENT is one transaction.
under() {
    sql <<END
BEGIN;
SELECT interlock.enter('$namespace', 'account:12345', $1) \g /dev/null
$2;
COMMIT;
END
}

# tell NAME WHAT COMMAND... runs a command and says how it went.
tell() {
    local refusal
    if refusal=$("${@:3}" 2>&1); then echo "$1: $2"; else echo "$1 is refused: ${refusal#*ERROR:  }"; fi
}

# agent NAME FEE [frozen] is one agent, with a lease of $ttl. Its thinking takes minutes in
# real life; a frozen one is stopped in the middle of it.
agent() {
    lease=$(quiet interlock lock account:12345 --agent "$1" --ttl "${ttl-5m}" --grace 1ms --wait 30s)
    eval "$lease"
    balance=$(under "$INTERLOCK_FENCE" "SELECT balance FROM example_zombies.account WHERE id = 12345")
    echo "$1: reads $balance under fence $INTERLOCK_FENCE"
    if [ "${3-}" = frozen ]; then kill -STOP "$BASHPID"; fi
    tell "$1" "charges $2" under "$INTERLOCK_FENCE" \
        "UPDATE example_zombies.account SET balance = $((balance - $2)) WHERE id = 12345"
}

# freezes PID waits until an agent is frozen.
freezes() { until read -r _ _ state _ <"/proc/$1/stat" && [ "$state" = T ]; do :; done; }

# wakes PID lets it go on, and waits for its end.
wakes() { kill -CONT "$1" && wait "$1"; }

ttl=1s agent billing-1 500 frozen &
first=$!
freezes $first
agent billing-2 300 frozen & # is granted the key when the first lease has expired
second=$!
freezes $second
interlock lease revoke account:12345 --reason "it does not answer" -y >/dev/null
agent billing-3 35

wakes $first
wakes $second
tell somebody "writes without a fence" sql <<<"UPDATE example_zombies.account SET balance = 0;"
echo "balance: $(sql <<<"SELECT balance FROM example_zombies.account;")"
