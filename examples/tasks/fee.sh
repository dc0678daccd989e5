#!/usr/bin/env bash
# A billing agent wants to charge a late fee while support works on the account. It does
# not wait, and does not ask again every minute: it leaves a task, which waits for the
# account. Its worker finds the card network down and is asked again in 60 seconds, which
# an operator cuts short.
source "$(dirname "$0")/../example.sh"

quiet interlock queue set billing --max-attempts 3

lease=$(quiet interlock lock account:12345 --agent support-2 --purpose goodwill)
eval "$lease"
task=$(quiet interlock task create billing '{"fee": 3500}' --key account:12345 --agent billing-7)
echo "billing-7 has left a task and goes on"
interlock task work billing --quiet --idle 0 -- echo "never: the account is taken"
interlock unlock

work() { # command: what is done with each task that can run
    interlock task work billing --quiet --idle 0 --later 60s -- bash -c "$1" 2>&1
}
work 'echo "attempt $INTERLOCK_ATTEMPT: the card network is down" >&2; exit 75'
interlock task list --state scheduled --ids | xargs interlock task reschedule >/dev/null
work 'echo "charged $(grep -o "[0-9]*") in attempt $INTERLOCK_ATTEMPT"'
interlock task wait "$task"
