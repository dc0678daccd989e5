#!/usr/bin/env bash
# A guard in a git repository: whatever an agent has on its disk, it cannot push a file
# that another agent holds, nor one for which it lost its lease.
source "$(dirname "$0")/../example.sh" git
cd "$dir"
export HOME=$dir GIT_CONFIG_NOSYSTEM=1 LC_ALL=C # nobody's own configuration

# The repository on the side of the server, with its hook.
git init -q --bare -b main web.git
git -C web.git config receive.advertisePushOptions true
cat > web.git/hooks/pre-receive << 'END'
#!/bin/sh
exec interlock guard git pre-receive --repo web
END
chmod +x web.git/hooks/pre-receive

clone() { # agent
    git clone -q web.git "$1" 2> clone.log
    git -C "$1" config user.name "$1"
    git -C "$1" config user.email "$1@example.com"
}
change() { # agent file text
    mkdir -p "$1/$(dirname "$2")"
    echo "$3" > "$1/$2"
    git -C "$1" add -A
    git -C "$1" commit -q -m "$3"
}
push() { # agent [option...]
    local agent=$1
    shift
    if git -C "$agent" push -q "$@" origin HEAD:main 2> push.log; then
        echo "$agent: pushed"
    else
        echo "$agent: refused"
        sed -n 's/ *$//; s/for [0-9a-z]*s)/for TIME)/; s/^remote: /  /p' push.log
    fi
}

clone ann
change ann src/auth.ts "first version"
change ann README.md "read me"
push ann

# ann holds a directory while she works in it.
answer=$(quiet interlock lock repo:web/src --agent ann --purpose 'rename the session type')
eval "$answer"
lease=$INTERLOCK_LEASE
unset INTERLOCK_LEASE # the hook runs on this machine here, and would find it

clone ben
change ben README.md "read me, please"
push ben
change ben src/auth.ts "a quick fix"
push ben

# With her lease ann gets through; when she has given it back, she does not any more.
git -C ann pull -q --rebase origin main
change ann src/auth.ts "session renamed"
push ann -o "interlock-lease=$lease"
INTERLOCK_LEASE=$lease interlock unlock > release.log
change ann src/auth.ts "one more thing"
push ann -o "interlock-lease=$lease"
