#!/usr/bin/env bash
# A lease's whole life over HTTP, with curl: asked for, refused to another agent,
# waited for, renewed, checked, given back with a note, handed on.
source "$(dirname "$0")/../example.sh" curl

call() { # method path [body]
    curl -sS -X "$1" "$INTERLOCK_URL$2" "${headers[@]}" -H 'Content-Type: application/json' ${3:+-d "$3"}
}

answer=$(call POST /v1/leases '{"agent": "billing-7", "purpose": "apply late fee", "claims": [{"key": "account:12345"}]}')
lease=$(field id <<<"$answer")
fence=$(field fence <<<"$answer")
echo "billing-7: $(field outcome <<<"$answer"), fence $fence"

# Another agent does not want to wait. The refusal says who is in the way and what to do.
answer=$(call POST /v1/leases '{"agent": "support-2", "claims": [{"key": "account:12345"}]}')
echo "support-2: $(field code <<<"$answer"), $(field action <<<"$answer")"

# It asks again and takes a place in line. With a wait_ms above 0 the call itself would wait.
answer=$(call POST /v1/leases '{"agent": "support-2", "claims": [{"key": "account:12345"}], "wait_ms": 0, "on_conflict": "wait"}')
ticket=$(field id <<<"$answer")
echo "support-2: $(field outcome <<<"$answer")"

# The holder shows that it lives, and how far it is.
answer=$(call POST "/v1/leases/$lease/renew" '{"progress": "1/2"}')
echo "billing-7: renewed, $(field state <<<"$answer")"

# Whoever guards the account asks whether a write under this fence may go ahead.
answer=$(call POST /v1/fences/check "{\"key\": \"account:12345\", \"fence\": \"$fence\"}")
echo "guard: fence $fence is $(field outcome <<<"$answer")"

# The holder gives the key back, with a note for the next one, ...
answer=$(call POST "/v1/leases/$lease/release" '{"outcome": "done", "note": "fee of 35.00 applied"}')
echo "billing-7: $(field outcome <<<"$answer")"

# ... who has been waiting.
answer=$(call GET "/v1/tickets/$ticket?wait_ms=5000")
next=$(field id <<<"$answer")
echo "support-2: $(field outcome <<<"$answer"), fence $(field fence <<<"$answer"), note: $(field text <<<"$answer")"

# The first holder is late: its fence is refused, and its lease is gone.
answer=$(call POST /v1/fences/check "{\"key\": \"account:12345\", \"fence\": \"$fence\"}")
echo "guard: $(field code <<<"$answer")"
answer=$(call POST "/v1/leases/$lease/renew" '{}')
echo "billing-7: $(field code <<<"$answer")"

answer=$(call POST "/v1/leases/$next/release" '{"outcome": "done"}')
echo "support-2: $(field outcome <<<"$answer")"
