package exampletest

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// Run calls run, which is an example's, with the address of the session streams of a new
// server that keeps its journal in memory, and fails the test unless it prints want.
func Run(t *testing.T, run func(ctx context.Context, addr string, out io.Writer) error, want string) {
	t.Helper()
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
	rpc := server.NewStreams(srv, server.StreamConfig{}).Server()
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
