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

const want = `billing holds account:12345
support is refused (held): billing holds it to "apply late fee"
support stands in line, place 1 of 1
billing has released it
support holds it; changed while waiting: true
note of billing: "charged a late fee of 35.00"
a write of billing is refused: its fence is old
a write of support may go ahead
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
