#!/usr/bin/env bash
# Three agents change one file of a shared directory, each from what it read before it
# thought. What fits together is merged; what does not is refused with what changed, and
# made again. The third agent does not see the disk and goes through the server.
source "$(dirname "$0")/../example.sh" curl
export INTERLOCK_ROOT=${SHARED:?with INTERLOCK_URL set it to DIR of interlock serve --files $namespace=DIR}
cd "$dir"
old=$(interlock file version app.conf)
if [[ $old != none ]]; then # of an earlier run
    interlock file delete app.conf --base "$old" >/dev/null
fi

printf '%s\n' 'retries = 3' '' '# limits' 'per_minute = 60' '' '# log' 'level = info' |
    interlock file write app.conf --base none --agent setup --note "first version" >/dev/null

# All three read, and think.
for agent in ann bob; do
    interlock file read app.conf --version-file "$agent.base" >"$agent.conf" 2>"$agent.said"
done
curl -fsS "${headers[@]}" -D eve.headers -o eve.conf "$INTERLOCK_URL/v1/files/app.conf"
etag=$(sed -n 's/^[Ee][Tt][Aa][Gg]: \(.*\)\r$/\1/p' eve.headers)

sed -i 's/retries = 3/retries = 5/' ann.conf
interlock file write app.conf --base "$(<ann.base)" --agent ann --note "the gateway drops one in ten" <ann.conf >/dev/null
echo "ann: written"

sed -i 's/info/debug/' eve.conf
curl -fsS "${headers[@]}" -X PUT -H "If-Match: $etag" -H "Interlock-Agent: eve" --data-binary @eve.conf -o eve.answer "$INTERLOCK_URL/v1/files/app.conf"
echo "eve: $(grep -o '"outcome":"[a-z]*"' eve.answer)"

sed -i 's/retries = 3/retries = 0/' bob.conf
code=0
interlock file write app.conf --base "$(<bob.base)" --agent bob <bob.conf 2>bob.said || code=$?
echo "bob: refused with $code"
grep -E '^\| [-+](retries|level)' bob.said

# Bob decides again, with what has changed in its prompt, and leaves the retries alone.
interlock file read app.conf --version-file bob.base 2>/dev/null | sed 's/60/30/' >bob.conf
interlock file write app.conf --base "$(<bob.base)" --agent bob <bob.conf >/dev/null
interlock file read app.conf 2>/dev/null | grep =
