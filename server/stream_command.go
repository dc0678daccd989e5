package server

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// operation is whom the answers to one command are for: a shard.Receiver. It
// lives in the same piece of memory as its command.
type operation struct {
	st       *stream
	cmd      engine.Command
	slot     uint32
	seq      uint64
	bulk     int  // bytes of documents and payloads in the command
	answered bool // Deliver is called by one goroutine
}

// Deliver takes an answer, or for an attached session a push.
func (o *operation) Deliver(eff *engine.Effect, at interlock.At) {
	st, seq, first := o.st, o.seq, !o.answered
	if first {
		o.answered = true
		st.carry(-o.bulk)
		st.d.s.obs.Answered(o.cmd, eff)
		if eff.Outcome == engine.Refused {
			switch eff.Code {
			case interlock.CodeOutcomeUnknown, interlock.CodeNotOwner:
				// Nothing is known about this command, so it gets no answer: the client
				// repeats it, under the same number, on its next stream.
				st.cut(&interlock.Error{Code: eff.Code, Message: eff.Message, At: at})
				return
			}
		}
		switch o.cmd.(type) {
		case *engine.OpenSession:
			if eff.Outcome == engine.Done && !st.bind(o.slot, eff.Session.ID) {
				refusal := engine.Effect{
					Outcome: engine.Refused, Code: interlock.CodeInvalidRequest,
					Message: "the slot is taken or there are too many: use another number, or another stream",
				}
				eff = &refusal
			}
		}
	} else if _, pushes := o.cmd.(*engine.Attach); pushes {
		seq = 0
	}
	st.deliver(&delivered{eff: *eff, at: at, cmd: o.cmd, slot: o.slot, seq: seq}, first)
}

// The commands together with whom they are answered to.
type (
	acquireOp struct {
		engine.Acquire
		operation
	}
	releaseOp struct {
		engine.Release
		operation
	}
	heartbeatOp struct {
		engine.Heartbeat
		operation
	}
)

// command turns one operation into a command and appends it to st.cmds, or answers
// it here when it makes no sense. A refusal that it returns ends the stream.
//
// The engine keeps the claims and gives their keys one spelling, while the client
// of a link within the process may send the same operation again: so it gets a
// copy.
func (st *stream) command(o *proto.Op) *interlock.Error {
	if st.overQuota(o) {
		return nil
	}
	if operatorOp(o.Kind) && !st.principal.Operator {
		st.refuse(o, interlock.CodeForbidden, notOperator)
		return nil
	}
	var id interlock.SessionID
	if o.Kind != proto.OpOpen && o.Kind != proto.OpAttach {
		var ok bool
		if id, ok = st.session(o.Slot); !ok {
			st.refuse(o, interlock.CodeUnknownSession, "no session is bound to this slot: open or attach one, and wait for the answer to an open")
			return nil
		}
	}
	if listens(o) && (o.Slot == 0 || o.RequestID != "") {
		st.refuse(o, interlock.CodeInvalidRequest, "who pulls tasks or follows one over a stream does so in the name of a session: open one, and submit without a request id or without attach")
		return nil
	}
	h := engine.Head{Namespace: st.namespace, Link: st.number, Session: id, Actor: st.principal.Name}
	if o.Slot != 0 && o.Kind != proto.OpOpen && o.Kind != proto.OpAttach {
		if acked := st.acked[o.Slot]; o.Acked > acked {
			st.acked[o.Slot] = o.Acked
		} else {
			o.Acked = acked
		}
		h.Seq, h.Acked = o.Seq, o.Acked
	}
	var who *operation
	var cmd engine.Command
	switch o.Kind {
	case proto.OpAcquire:
		c := &acquireOp{Acquire: engine.Acquire{
			Head: h, ID: st.random.id(), Flow: o.Flow, Purpose: o.Purpose, Trace: o.Trace,
			Claims: slices.Clone(o.Claims), Any: o.Any, Prefix: o.Prefix, Group: o.Group, Division: o.Division,
			TTL: o.TTL, Grace: o.Grace, MaxHold: o.MaxHold, Stall: o.Stall, LockDelay: o.LockDelay, MaxWait: o.MaxWait,
			Priority: int(o.Priority), OnConflict: o.OnConflict, AsOf: o.AsOf, Attach: true,
		}}
		c.Acquire.From, who, cmd = &c.operation, &c.operation, &c.Acquire
	case proto.OpRelease:
		c := &releaseOp{Release: engine.Release{Head: h, Lease: o.ID, Outcome: o.Outcome, Note: o.Note}}
		c.Release.From, who, cmd = &c.operation, &c.operation, &c.Release
	case proto.OpHeartbeat:
		h.Seq, h.Acked = 0, 0
		c := &heartbeatOp{Heartbeat: engine.Heartbeat{Head: h, Progress: o.Progress}}
		c.Heartbeat.From, who, cmd = &c.operation, &c.operation, &c.Heartbeat
	case proto.OpReadState, proto.OpReadHistory, proto.OpGetEffect, proto.OpListEffects, proto.OpContention,
		proto.OpListPatterns, proto.OpGetSettings, proto.OpGetTask, proto.OpListTasks, proto.OpListQueues, proto.OpReadLog:
		return st.query(o)
	default:
		if cmd, who = st.taskCommand(o, h); cmd != nil {
			break
		}
		who = new(operation)
		h.From = who
		if cmd = st.rareCommand(o, h); cmd == nil {
			return nil
		}
	}
	who.st, who.cmd, who.slot, who.seq = st, cmd, o.Slot, o.Seq
	switch o.Kind {
	case proto.OpCommit, proto.OpSubmitTask, proto.OpAckTask:
		who.bulk = o.Size()
		st.carry(who.bulk)
	}
	st.cmds = append(st.cmds, cmd)
	return nil
}

// listens reports whether an operation about tasks has the engine keep who listens. That
// ends with the stream, since its sessions are detached then; so it takes one, or tasks
// would be handed to streams that are gone.
func listens(o *proto.Op) bool {
	switch o.Kind {
	case proto.OpPullTasks:
		return true
	case proto.OpSubmitTask, proto.OpFollowTask:
		return o.Task.Attach
	}
	return false
}

// refuse answers an operation without the shard.
func (st *stream) refuse(o *proto.Op, code interlock.Code, message string) {
	eff := engine.Effect{Outcome: engine.Refused, Code: code, Message: message}
	st.deliver(&delivered{eff: eff, at: st.d.s.shard.At(), slot: o.Slot, seq: o.Seq}, true)
}
