package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// lastKind is the last kind of operation that there is.
const lastKind = proto.OpRevertPattern

// opOf is an operation of a kind that gets as far as the shard.
func opOf(kind proto.OpKind, seq uint64) proto.Op {
	op := proto.Op{
		Kind: kind, Slot: 1, Seq: seq, ID: [16]byte{1}, Agent: "ann", Key: "a", Name: "a", LeaseRequest: interlock.LeaseRequest{
			OnConflict: interlock.Skip,
			Claims:     []interlock.Claim{{Key: "a", Mode: interlock.Exclusive}},
		},
		On: &proto.WaitTarget{Agent: "ben"}, Pattern: &interlock.Pattern{Name: "a", Shape: "a:{id}"},
		Settings: &interlock.Settings{Closed: true},
		Commit:   &interlock.CommitRequest{}, State: &proto.StateQuery{},
		Effect: &proto.EffectOp{Tool: "charge", Target: "customer:1"},
		Task:   &proto.TaskOp{Queue: "fees", Limit: 1, Specs: []interlock.TaskSpec{{Queue: "fees"}}},
		Queue:  &interlock.TaskQueue{Name: "fees"}, Run: &proto.RunOp{Org: "acme", Workflow: "triage"},
	}
	switch kind {
	case proto.OpOpen, proto.OpAttach:
		op.Slot = 2
	}
	return op
}

// Every operation of the stream has one answer, also one that does not exist.
func TestEveryOperationIsAnswered(t *testing.T) {
	for kind := proto.OpOpen; kind <= lastKind+2; kind++ {
		d := newStreamDoor(t, server.StreamConfig{})
		f := d.dial()
		f.open(1)
		f.send(opOf(kind, 3))
		r := f.next()
		if r.Seq != 3 || r.Outcome == 0 || r.Code == interlock.CodeInternal {
			t.Errorf("operation %d: %+v", kind, r)
		}
		if unknown := r.Code == interlock.CodeUnsupported; unknown != (kind > lastKind) {
			t.Errorf("operation %d: %+v: lastKind is not the last one", kind, r)
		}
	}
}

// A stream of a server that has lost the shard, and has not noticed yet, answers no operation: it
// ends with the reason.
func TestFormerOwnerAnswersNoOperation(t *testing.T) {
	for kind := proto.OpOpen; kind <= lastKind; kind++ {
		var store memjournal.Store
		j, err := store.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		s, err := shard.Open(t.Context(), shard.Config{Journal: j, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		srv, err := server.New(server.Config{Shard: s, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		d := &streamDoor{t: t, shard: s, srv: srv, Streams: server.NewStreams(srv, server.StreamConfig{})}
		f := d.dial()
		f.open(1)
		if _, err := store.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.send(opOf(kind, 3))
		var frame proto.ServerFrame
		err = f.link.Recv(&frame)
		refusal, _ := errors.AsType[*interlock.Error](err)
		if len(frame.Replies) > 0 || refusal == nil || refusal.Code != interlock.CodeNotOwner {
			t.Errorf("operation %d: %+v, %v", kind, frame.Replies, err)
		}
		d.Cut(nil)
		_ = s.Close(context.Background()) // it has failed
	}
}
