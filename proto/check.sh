#!/bin/sh
# Fails when sessionpb is not what proto/generate.sh makes of the .proto files.
set -eu

cd "$(dirname "$0")"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
./generate.sh "$fresh"
for file in model.pb.go task.pb.go session.pb.go session_grpc.pb.go; do
	if ! diff -u "sessionpb/$file" "$fresh/$file"; then
		echo "proto/check.sh: sessionpb/$file is stale: run proto/generate.sh" >&2
		exit 1
	fi
done
