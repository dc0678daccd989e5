package main

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

const want = `plan: api is at it, generation 1
plan: docs is at it, generation 1
plan: web is at it, generation 1
write: api is at it, generation 2
write: docs is at it, generation 2
write: web is at it, generation 2
review: api is at it, generation 3
review: docs is at it, generation 3
review: web is at it, generation 3
end: api is told that the barrier is broken
end: docs has left
end: web is told that the barrier is broken
`

func TestRun(t *testing.T) {
	ctx := context.Background()
	j, err := (&memjournal.Store{}).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.Open(ctx, shard.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	srv, err := server.New(server.Config{Shard: s})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rpc := server.NewStreams(srv, server.StreamConfig{}).GRPCServer()
	go func() { _ = rpc.Serve(l) }()
	defer rpc.Stop()

	var out strings.Builder
	if err := run(ctx, l.Addr().String(), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwanted\n%s", out.String(), want)
	}
}
