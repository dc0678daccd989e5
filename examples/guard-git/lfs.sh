#!/usr/bin/env bash
# Git LFS locks as leases, as a git-lfs client asks for them: what an agent holds is
# locked, and what is locked is held.
source "$(dirname "$0")/../example.sh" curl

exec 3< <(exec interlock guard git lfs --repo web --listen 127.0.0.1:0)
servers+=($!)
read -r ready <&3 || fail "the guard does not start"
locks=http://${ready#ready http=}/locks

call() { # user method path [body]
    curl -sS -u "$1:" -X "$2" "$locks$3" -H 'Content-Type: application/vnd.git-lfs+json' ${4:+-d "$4"}
}

# git lfs lock art/logo.png
id=$(call ann POST '' '{"path": "art/logo.png"}' | field id)
echo "interlock says: $(interlock key get repo:web/art/logo.png | sed -n '/^ann /s/ .*//p') holds it"
echo "ben is told: $(call ben POST '' '{"path": "art/logo.png"}' | field message | sed 's/since .*/since TIME/')"

# git push asks what others have locked. An agent's lease counts.
quiet interlock lock repo:web/art/icon.png --agent painter-3 > /dev/null
call ben POST /verify '{}' | grep -o '"theirs".*' | grep -o '"path":"[^"]*"' | sed 's/^/theirs: /'

# git lfs unlock art/logo.png
echo "ben may not unlock it: $(call ben POST "/$id/unlock" '{}' | field message)"
echo "ann may: $(call ann POST "/$id/unlock" '{}' | field path)"
interlock run repo:web/art/logo.png -q -- echo "and it is free at once"
