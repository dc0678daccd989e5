#!/usr/bin/env bash
# An agent wants to refund a large amount, which a person must approve. Meanwhile it
# parks its lease, so that the account is free for others. The answer resumes it: it is
# told that the account was written to, and reads it again before it acts.
#
# Start a server first: interlock serve --data-dir data
set -euo pipefail
account=$(mktemp)
said=$(mktemp)
trap 'rm -f "$account" "$said"' EXIT
echo 1200 >"$account"

eval "$(interlock lock account:12345 --agent refunds-1 --purpose "refund" 2>/dev/null)"
echo "refunds-1 reads $(<"$account")"
interlock lease park --free --for 8h --reason "refund 1200?"

# Another agent takes its turn.
interlock run --quiet --agent fees-2 account:12345 -- sh -c 'echo 1165 >"$0"' "$account"

# A person finds the question in the list of approvals, and answers it.
interlock approval list 2>/dev/null | grep '| refund'
interlock approval approve "$INTERLOCK_FENCE" --by ada 2>/dev/null

# The lease is resumed under a new fence. Before the answer this would have waited.
eval "$(interlock lease resume --wait 1m 2>"$said")"
grep -o 'read them again.*' "$said"
echo "refunds-1 reads $(<"$account")"
interlock unlock --note "refunded"
