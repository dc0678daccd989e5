# The setup of the example scripts. Each sources this file with the programs that it needs.
#
#   INTERLOCK      the binary to use; without it the script builds bin/interlock, or, on a
#                  machine without Go, takes the interlock in PATH
#   INTERLOCK_URL  the server to use, and INTERLOCK_GRPC its session address; without them
#                  the script starts a server of its own and ends it
#
# A script works in a namespace of its own, example-FOLDER-SCRIPT, and empties it first. So the
# scripts run in any order on one server, and again. A command that fails ends the script.
# $dir is a directory for the script's files. It goes away at the end.
set -Eeuo pipefail

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
script=$(basename "$0" .sh)
namespace=example-$(basename "$here")-$script

fail() {
    echo "$script.sh: $*" >&2
    exit 1
}

dir=$(mktemp -d)
servers=() # process ids to end
leave() {
    kill "${servers[@]}" 2>/dev/null || true
    kill -KILL $(jobs -p) 2>/dev/null || true # also those that are frozen
    wait
    rm -rf "$dir" 2>/dev/null || true
}
trap leave EXIT
# A failure within $(...) or a job makes its caller fail, which reports it once.
trap 'code=$?; ((BASH_SUBSHELL)) || echo "$script.sh: line $LINENO failed with exit code $code: $BASH_COMMAND" >&2' ERR

for program in "$@"; do
    command -v "$program" >/dev/null || fail "it needs $program, which is not installed"
done

# The binary is the first interlock in PATH.
if [[ -z ${INTERLOCK-} ]]; then
    if command -v go >/dev/null; then
        INTERLOCK=$examples/../bin/interlock
        (cd "$examples/.." && go build -o bin/interlock ./cmd/interlock) || fail "bin/interlock cannot be built"
    else
        INTERLOCK=$(command -v interlock) || fail "it needs interlock: set INTERLOCK to the path of the binary"
    fi
fi
[[ -f $INTERLOCK && -x $INTERLOCK ]] || fail "INTERLOCK=$INTERLOCK is not a program: set it to the path of the binary"
mkdir "$dir/bin"
ln -s "$(cd "$(dirname "$INTERLOCK")" && pwd)/$(basename "$INTERLOCK")" "$dir/bin/interlock"
export PATH=$dir/bin:$PATH

# The caller's own lease, agent and so on are not the script's.
unset INTERLOCK_AGENT INTERLOCK_FENCE INTERLOCK_KEYS INTERLOCK_LEASE INTERLOCK_ROOT
export INTERLOCK_NAMESPACE=$namespace

if [[ -z ${INTERLOCK_URL-} ]]; then
    SHARED=$dir/shared
    mkdir "$SHARED"
    exec 9< <(exec interlock serve --data-dir "$dir/data" --http 127.0.0.1:0 --grpc 127.0.0.1:0 \
        --files "$namespace=$SHARED" 2>"$dir/server.log")
    servers+=($!)
    read -r _ http grpc _ <&9 || fail "the server does not start: $(tail -n 1 "$dir/server.log")"
    export INTERLOCK_URL=http://${http#http=} INTERLOCK_GRPC=${grpc#grpc=}
fi
interlock namespace delete "$namespace" --force >/dev/null || fail "the server at $INTERLOCK_URL cannot be used"

# What a request by curl needs.
headers=(-H "Interlock-Namespace: $namespace")
[[ -z ${INTERLOCK_CREDENTIAL-} ]] || headers+=(-H "Authorization: Bearer $INTERLOCK_CREDENTIAL")

# quiet COMMAND... runs a command and shows its standard error only if it fails.
quiet() {
    local code=0
    "$@" 2>"$dir/said.$BASHPID" || code=$?
    ((code == 0)) || cat "$dir/said.$BASHPID" >&2
    return "$code"
}

# finish waits for the jobs in the background. A failed one ends the script.
finish() {
    local job
    for job in $(jobs -p); do
        wait "$job" || fail "a command in the background failed with exit code $?"
    done
}

# field NAME prints the first string of that name in a JSON answer. A program uses a JSON library.
field() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }
