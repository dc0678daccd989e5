package proto

import (
	"math/rand/v2"
	"reflect"

	"github.com/interlockdev/interlock"
)

// keepTask fills in the fields of an operation about tasks, and nothing else.
func keepTask(r *rand.Rand, kept, o *Op) {
	x := &TaskOp{}
	random(r, reflect.ValueOf(x).Elem())
	kept.ID = o.ID
	switch kept.Kind {
	case OpSubmitTask:
		kept.ID = [16]byte{}
		kept.Flow, kept.RequestID, kept.Agent = o.Flow, o.RequestID, o.Agent
		kept.Task = &TaskOp{Specs: make([]interlock.TaskSpec, 1), Attach: x.Attach}
		random(r, reflect.ValueOf(&kept.Task.Specs[0]).Elem())
	case OpPullTasks:
		kept.TTL, kept.Task = o.TTL, &TaskOp{Queue: x.Queue, Limit: x.Limit}
	case OpAckTask:
		kept.Task = &TaskOp{Result: x.Result, Specs: x.Specs}
		if c := o.Commit; c != nil && (len(c.Reads)+len(c.Writes) > 0 || c.AsOf > 0 || c.Note != "") {
			kept.Commit = &interlock.CommitRequest{Reads: c.Reads, Writes: c.Writes, AsOf: c.AsOf, Note: c.Note}
		}
	case OpNackTask:
		kept.Task = &TaskOp{Reason: x.Reason, Delay: x.Delay, Dead: x.Dead}
	case OpAskHuman:
		kept.Task = &TaskOp{Question: x.Question}
	case OpAnswerTask:
		kept.Fence, kept.Task = o.Fence, &TaskOp{Verdict: x.Verdict, By: x.By, Reason: x.Reason}
	case OpChangeTask:
		kept.Task = &TaskOp{Change: x.Change, Delay: x.Delay, Reason: x.Reason}
	case OpFollowTask:
		kept.Flow, kept.Task = o.Flow, &TaskOp{Attach: x.Attach}
	case OpListTasks:
		kept.ID = [16]byte{}
		kept.Group, kept.Key = o.Group, o.Key
		kept.Task = &TaskOp{Queue: x.Queue, State: x.State, From: x.From, Limit: x.Limit}
	case OpReadLog:
		kept.ID = [16]byte{}
		kept.Key, kept.Task = o.Key, &TaskOp{From: x.From, Limit: x.Limit}
	}
}
