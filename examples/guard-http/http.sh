#!/usr/bin/env bash
# A guard before an HTTP API: agents have no credential for the API, the guard has,
# and lets through who holds the lease.
source "$(dirname "$0")/../example.sh" curl python3

# The API, and the guard before it. Each says where it listens.
echo "token-of-the-api" > "$dir/token"
exec 3< <(exec python3 "$here/api.py" "$dir/token")
servers+=($!)
read -r api <&3 || fail "the API does not start"
exec 4< <(exec env API_TOKEN="$(cat "$dir/token")" interlock guard http --config "$here/guard.json" --upstream "$api" \
    --listen 127.0.0.1:0 --record "$dir/records" --calls "$dir/calls")
watch=$!
servers+=("$watch")
read -r ready <&4 || fail "the guard does not start"
guard=http://${ready#ready http=}

post() { curl -sS "$INTERLOCK_URL$1" "${headers[@]}" -H 'Content-Type: application/json' -d "$2"; }
acquire() { post /v1/leases "{\"agent\": \"$1\", \"claims\": [{\"key\": \"account:12345\"}]}" | field id; }
release() { post "/v1/leases/$1/release" '{}' > /dev/null; }
charge() { curl -sS "$guard/accounts/12345/fees" ${1:+-H "Interlock-Lease: $1"} -d 35; }

echo "straight to the API: $(curl -sS "$api/accounts/12345")"
echo "reading through the guard: $(curl -sS "$guard/accounts/12345")"
echo "charging without a lease: $(charge '' | field code)"

billing=$(acquire billing-7)
echo "charging with one: $(charge "$billing")"

# billing-7 loses its lease and does not know it yet; support-2 has the account now.
release "$billing"
support=$(acquire support-2)
echo "the late one: $(charge "$billing" | field code)"
echo "its successor: $(charge "$support")"

echo "a path that no route allows: $(curl -sS --path-as-is "$guard/accounts/12345/../67890/fees" -H "Interlock-Lease: $support" -d 35 | field code)"
release "$support"

# Who did what. A guard that is told to stop ends its calls, and so their records, first.
kill "$watch" && wait "$watch"
echo "recorded:"
while read -r record; do
    echo "  $(field agent <<< "$record" || true) $(field method <<< "$record") $(field path <<< "$record") $(grep -o '"status":[0-9]*' <<< "$record")"
done < "$dir/records"
