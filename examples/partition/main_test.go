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

const want = `ann crawls 6 parts, ben 0
ann crawls 3 parts, ben 3
ann crawls 0 parts, ben 6
late writes of ann are refused
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
