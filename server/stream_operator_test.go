package server_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// Operations that only operators may call over HTTP, only they may call over the stream.
func TestOperatorsOnTheStream(t *testing.T) {
	agent, agentLine, err := server.NewCredential(interlock.Principal{Name: "swarm"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	operator, operatorLine, err := server.NewCredential(interlock.Principal{Name: "ops"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(agentLine+"\n"+operatorLine+" operator\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials, err := server.LoadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	d := newStreamDoor(t, server.StreamConfig{})
	srv, err := server.New(server.Config{Shard: d.shard, Credentials: credentials, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	streams := server.NewStreams(srv, server.StreamConfig{})
	t.Cleanup(func() { streams.Cut(nil) })
	ops := []proto.Op{
		{Kind: proto.OpSetPattern, Pattern: &interlock.Pattern{Name: "jobs", Shape: "job:{id}", Capacity: 2}},
		{Kind: proto.OpRevertPattern, Name: "jobs", Revision: 1},
		{Kind: proto.OpDropPattern, Name: "jobs"},
		{Kind: proto.OpSetQueue, Queue: &interlock.TaskQueue{Name: "fees"}},
		{Kind: proto.OpDropQueue, Name: "fees"},
		{Kind: proto.OpConfigure, Settings: &interlock.Settings{Closed: true}},
	}
	try := func(credential string, outcome interlock.Outcome, code interlock.Code) {
		link, err := streams.Dial(context.Background(), proto.Hello{Credential: credential})
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close(nil)
		f := &frames{t: t, link: link}
		f.open(1)
		for i, op := range ops {
			op.Slot, op.Seq = 1, uint64(i+3)
			f.send(op)
			f.want(op.Seq, outcome, code)
		}
	}
	try(agent, proto.Refused, interlock.CodeForbidden)
	try(operator, proto.Done, "")
}
