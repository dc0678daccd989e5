#!/bin/sh
# Makes sessionpb from the .proto files. It wants protoc 3.21.12 (Debian:
# apt-get install protobuf-compiler) and installs the two plugins and the formatter at the
# versions below into a temporary directory.
#
#   proto/generate.sh [OUTPUT_DIRECTORY]
set -eu

PROTOC=3.21.12
GEN_GO=v1.36.11
GEN_GO_GRPC=v1.6.1
GOFUMPT=v0.10.0

cd "$(dirname "$0")"
out=${1:-sessionpb}

if ! command -v protoc >/dev/null; then
	echo "proto/generate.sh: protoc is missing: apt-get install protobuf-compiler" >&2
	exit 1
fi
if [ "$(protoc --version)" != "libprotoc $PROTOC" ]; then
	echo "proto/generate.sh: want protoc $PROTOC, have $(protoc --version)" >&2
	exit 1
fi

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install "google.golang.org/protobuf/cmd/protoc-gen-go@$GEN_GO"
GOBIN=$bin go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$GEN_GO_GRPC"
GOBIN=$bin go install "mvdan.cc/gofumpt@$GOFUMPT"

mkdir -p "$out"
PATH=$bin:$PATH protoc -I . \
	--go_out="$out" --go_opt=paths=source_relative \
	--go-grpc_out="$out" --go-grpc_opt=paths=source_relative \
	model.proto task.proto session.proto
for _ in 1 2; do # what the first pass joins the second one parts
	"$bin/gofumpt" -w "$out"/model.pb.go "$out"/task.pb.go "$out"/session.pb.go "$out"/session_grpc.pb.go
done
