#!/usr/bin/env bash
# An agent wants to refund a large amount, which a person must approve. Meanwhile it
# parks its lease, so that the account is free for others. The answer resumes it: it is
# told that the account was written to, and reads it again before it acts.
source "$(dirname "$0")/../example.sh"
account=$dir/account
said=$dir/said
echo 1200 >"$account"

lease=$(quiet interlock lock account:12345 --agent refunds-1 --purpose "refund")
eval "$lease"
echo "refunds-1 reads $(<"$account")"
interlock lease park --free --for 8h --reason "refund 1200?"

# Another agent takes its turn.
interlock run --quiet --agent fees-2 account:12345 -- sh -c 'echo 1165 >"$0"' "$account"

# A person finds the question in the list of approvals, and answers it.
quiet interlock approval list | grep '| refund'
quiet interlock approval approve "$INTERLOCK_FENCE" --by ada

# The lease is resumed under a new fence. Before the answer this would have waited.
lease=$(interlock lease resume --wait 1m 2>"$said") || fail "$(<"$said")"
eval "$lease"
grep -o 'read them again.*' "$said"
echo "refunds-1 reads $(<"$account")"
interlock unlock --note "refunded"
