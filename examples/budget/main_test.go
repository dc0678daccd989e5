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

const want = `planner calls the model with 600 units
coder calls the model with 300 units
tester is refused (at_capacity): 2 of 2 calls run, the first is planner's
tester calls the model with 50 units
critic is refused (rate_limited): it wants 500 units of the 50 that are left
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
