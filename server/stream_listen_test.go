package server_test

import (
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// Clients listen over a stream only in the name of a session, and the listening ends with it: a
// task is not handed to a stream that is gone.
func TestListeningTakesASession(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(
		proto.Op{Kind: proto.OpSetQueue, Slot: 1, Seq: 3, Queue: &interlock.TaskQueue{Name: "fees"}},
		proto.Op{Kind: proto.OpSubmitTask, Seq: 4, Task: &proto.TaskOp{Specs: []interlock.TaskSpec{{Queue: "fees"}}}},
	)
	f.want(3, proto.Done, "")
	id := f.want(4, proto.Done, "").Tasks[0].ID
	submit := proto.TaskOp{Attach: true, Specs: []interlock.TaskSpec{{Queue: "fees"}}}
	f.send(
		proto.Op{Kind: proto.OpPullTasks, Seq: 5, ID: [16]byte{1}, Task: &proto.TaskOp{Queue: "fees", Limit: 1}},
		proto.Op{Kind: proto.OpFollowTask, Seq: 6, ID: id, Task: &proto.TaskOp{Attach: true}},
		proto.Op{Kind: proto.OpSubmitTask, Seq: 7, Task: &submit},
		proto.Op{Kind: proto.OpSubmitTask, Slot: 1, Seq: 8, RequestID: "one", Task: &submit},
		proto.Op{Kind: proto.OpFollowTask, Seq: 9, ID: id, Task: &proto.TaskOp{}},
		proto.Op{Kind: proto.OpListTasks, Seq: 10, Task: &proto.TaskOp{}},
	)
	for seq := uint64(5); seq <= 8; seq++ {
		f.want(seq, proto.Refused, interlock.CodeInvalidRequest)
	}
	f.want(9, proto.Done, "")
	if tasks := f.want(10, proto.Done, "").Tasks; len(tasks) != 1 || tasks[0].State != interlock.TaskWaiting {
		t.Errorf("tasks %+v", tasks)
	}
}
