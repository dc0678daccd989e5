package server_test

import (
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// Runs are started over the stream, also under a request id, and patterns are reverted.
func TestRunsOnTheStream(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	pattern := func(seq uint64, capacity uint32) proto.Op {
		return proto.Op{
			Kind: proto.OpSetPattern, Slot: 1, Seq: seq,
			Pattern: &interlock.Pattern{Name: "runs", Shape: "org:{org}/runs", Capacity: capacity},
		}
	}
	start := func(seq uint64, id string) proto.Op {
		return proto.Op{
			Kind: proto.OpStartRun, Slot: 1, Seq: seq, RequestID: id, Run: &proto.RunOp{Org: "acme", Workflow: "triage"},
		}
	}
	f.send(pattern(2, 2), pattern(3, 1), start(4, ""), start(5, "mine"))
	f.want(2, proto.Done, "")
	f.want(3, proto.Done, "")
	f.want(4, proto.Granted, "")
	f.want(5, proto.Refused, interlock.CodeTooManyRuns)
	f.send(
		proto.Op{Kind: proto.OpRevertPattern, Slot: 1, Seq: 6, Name: "runs"}, start(7, "mine"), start(8, "mine"),
		start(9, ""),
	)
	f.want(6, proto.Done, "")
	mine := f.want(7, proto.Granted, "")
	if again := f.want(8, proto.Granted, ""); again.Lease.ID != mine.Lease.ID {
		t.Errorf("%v became %v", mine.Lease.ID, again.Lease.ID)
	}
	f.want(9, proto.Refused, interlock.CodeTooManyRuns)

	// A waiter is granted when a run ends, and leaves the line with the stream.
	waiting := start(10, "")
	waiting.MaxWait = interlock.MaxLongPoll
	f.send(waiting)
	f.want(10, proto.Queued, "")
	f.send(proto.Op{Kind: proto.OpRelease, Slot: 1, Seq: 11, ID: mine.Lease.ID})
	f.want(11, proto.Done, "")
	f.want(10, proto.Granted, "")
}
