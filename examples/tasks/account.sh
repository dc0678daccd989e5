#!/usr/bin/env bash
# Twenty agents charge and credit one account at once. None of them may write it: they
# send, and the account's writer decides, one message after the other. A worker that is
# killed in the middle loses nothing.
source "$(dirname "$0")/../example.sh"
export dir

quiet interlock queue set accounts --backoff 10ms --grace 100ms
interlock writer set account --queue accounts --shape 'account:{id}'

cat >"$dir/teller" <<'TELLER'
cents=$(interlock state get "$INTERLOCK_KEYS" 2>/dev/null || echo 0)
amount=$(cat)
if ((cents + amount < 0)); then
    exec interlock task ack "refused: there are $cents"
fi
if ((cents > 0)) && mkdir "$dir/died" 2>/dev/null; then
    kill -KILL "$PPID" # the first worker dies at its second message, before it has said anything
    exit 1
fi
interlock task ack "$((cents + amount))" --put "$INTERLOCK_KEYS=$((cents + amount))"
TELLER

quiet interlock message send account:1 credit 10000 --agent branch >/dev/null
for n in {1..10}; do
    quiet interlock message send account:1 fee --agent "billing-$n" -- -50 >/dev/null &
    quiet interlock message send account:1 credit 20 --agent "support-$n" >/dev/null &
done
finish
interlock state set account:1 1000000 2>/dev/null || echo "around the writer: refused with $?"

{ interlock task work accounts --quiet --idle 0 --ttl 1s --agent teller-1 -- bash "$dir/teller" || died=$?; } 2>/dev/null
echo "teller-1: died with $died"
interlock task work accounts --quiet --idle 5s --agent teller-2 -- bash "$dir/teller" 2>/dev/null
echo "balance $(interlock state get account:1 2>/dev/null), handled by teller-2: $(interlock message log account:1 | grep -c '^ *done by teller-2')"
interlock message log account:1 | grep -o 'attempt 2' | sort | uniq -c | sed 's/^ *//'
