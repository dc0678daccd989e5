#!/usr/bin/env bash
# A refund above a limit needs a person's word. The task asks, and holds neither account
# nor worker meanwhile; the person sees who asks, why, and what has changed since.
source "$(dirname "$0")/../example.sh"

quiet interlock queue set refunds
interlock state set balance:12 5000 >/dev/null

cat >"$dir/refund" <<'REFUND'
amount=$(cat)
if ((amount > 1000)) && [[ $INTERLOCK_APPROVAL != approved ]]; then
    exec interlock task ask "refund $amount to customer 12?" --for 8h --read "balance:12=$(interlock state version balance:12)"
fi
interlock task ack "refunded $amount" --put "balance:12=$(($(interlock state get balance:12 2>/dev/null) - amount))"
REFUND
work() { quiet interlock task work refunds --quiet --idle 0 --agent refunds-1 -- bash "$dir/refund"; }

small=$(quiet interlock task create refunds 300 --key balance:12)
large=$(quiet interlock task create refunds 1200 --key balance:12 --purpose "ticket 77" --agent support-2)
work
interlock task wait "$small"
interlock state set balance:12 4000 --if-version "$(interlock state version balance:12)" --agent fees-2 --note "fee of 700" >/dev/null

interlock approval get "$large" | grep -E '^  (\| refund|asker|for)'
interlock approval get "$large" | grep -o 'fees-2.*: fee of 700' | sed 's/ .* ago//'
interlock approval approve "$large" --by ada --reason "checked with the customer"
work
interlock task wait "$large"
