package server

import (
	"slices"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/proto"
)

// operation receives the answers to one command: a shard.Receiver. As long as answers may come
// the engine keeps it, for each waiter, so it is small and drops the request with the first.
type operation struct {
	st   *stream
	seq  uint64
	open *question // until it was answered; Deliver is called by one goroutine
	slot uint32
	kind proto.OpKind

	brief bool // as in proto.Op
}

// question is the part of an operation that is kept until its first answer.
type question struct {
	cmd  engine.Command
	bulk int // bytes of documents and payloads in the command
}

// Deliver takes an answer, or for an attached session a push.
func (o *operation) Deliver(eff *engine.Effect, at interlock.At) {
	st, to, first := o.st, address{at: at, kind: o.kind, slot: o.slot, seq: o.seq, brief: o.brief}, o.open != nil
	if first {
		st.carry(-o.open.bulk)
		to.asAsked = o.answered(eff)
		if eff.Outcome == engine.Refused {
			switch eff.Code {
			case interlock.CodeMoving:
				st.cut(namespaceMoves(st.namespace)) // likewise
				return
			case interlock.CodeOutcomeUnknown, interlock.CodeNotOwner:
				// Nothing is known about this command, so it gets no answer: the client
				// repeats it, under the same number, on its next stream.
				st.cut(&interlock.Error{Code: eff.Code, Message: prose.Sentence(eff.Message), At: at})
				return
			}
		}
		if o.kind == proto.OpOpen && eff.Outcome == engine.Done && !st.bind(o.slot, eff.Session.ID) {
			eff = &engine.Effect{
				Outcome: engine.Refused, Code: interlock.CodeInvalidRequest,
				Message: message.Plain("the slot is in use, or the limit of slots is reached: use another slot, or another stream"),
			}
		}
	} else if o.kind == proto.OpAttach {
		to.seq = 0
	}
	st.deliver(eff, to, first)
}

// answered takes note of the first answer, and lets go of the question. It reports whether a lease
// is just as it was asked for, by a client that need not receive it again.
func (o *operation) answered(eff *engine.Effect) (asAsked bool) {
	obs := o.st.d.s.obs
	switch c := o.open.cmd.(type) {
	case *acquire:
		obs.Answered(&c.Acquire, eff)
		asAsked = o.brief && c.gets(eff)
		*c = acquire{}
		acquires.Put(c)
	case *engine.Release:
		obs.Answered(c, eff)
		*c = engine.Release{}
		releases.Put(c)
	default:
		obs.Answered(c, eff)
	}
	*o.open = question{}
	questions.Put(o.open)
	o.open = nil
	return asAsked
}

// acquire is the command, and the claims as they were asked for: the engine normalizes the keys of
// its own, and may choose among them.
type acquire struct {
	engine.Acquire
	asked []interlock.Claim
}

// gets reports whether the effect grants exactly the request.
func (c *acquire) gets(eff *engine.Effect) bool {
	l := &eff.Lease
	return eff.Outcome == engine.Granted && l.Flow == c.Flow && l.Purpose == c.Purpose && slices.Equal(l.Claims, c.asked)
}

// Questions, and the commands that come most, are used again once they were answered.
var (
	questions = sync.Pool{New: func() any { return new(question) }}
	acquires  = sync.Pool{New: func() any { return new(acquire) }}
	releases  = sync.Pool{New: func() any { return new(engine.Release) }}
)

// command turns one operation into a command and appends it to st.cmds, or answers
// it here when it makes no sense. A refusal that it returns ends the stream.
//
// The engine keeps the claims and normalizes their keys, while the client of a link within the
// process may send the same operation again: so it gets a copy.
func (st *stream) command(o *proto.Op) *interlock.Error {
	if st.overQuota(o) {
		return nil
	}
	if no := st.mayOp(o); no != nil {
		st.refuse(o, no.Code, no.Message)
		return nil
	}
	var id interlock.SessionID
	if o.Kind != proto.OpOpen && o.Kind != proto.OpAttach {
		var ok bool
		if id, ok = st.session(o.Slot); !ok {
			st.refuse(
				o, interlock.CodeUnknownSession,
				"no session is bound to this slot: open or attach one, and wait for the answer to an open",
			)
			return nil
		}
	}
	if listens(o) && (o.Slot == 0 || o.RequestID != "") {
		st.refuse(
			o, interlock.CodeInvalidRequest,
			"pulling and following tasks over a stream needs a session: open one, and submit without a request id or "+
				"without attach",
		)
		return nil
	}
	who := &operation{st: st, seq: o.Seq, slot: o.Slot, kind: o.Kind}
	h := engine.Head{
		Namespace: st.namespace, From: who, Link: st.number, Session: id, Actor: st.identity.name(),
		Principal: st.identity.Principal,
	}
	if o.Slot != 0 && o.Kind != proto.OpOpen && o.Kind != proto.OpAttach {
		if acked := st.acked[o.Slot]; o.Acked > acked {
			st.acked[o.Slot] = o.Acked
		} else {
			o.Acked = acked
		}
		h.Seq, h.Acked = o.Seq, o.Acked
	}
	var cmd, asked engine.Command // asked is compared with the answer, if it is more than cmd
	switch o.Kind {
	case proto.OpAcquire:
		c := acquires.Get().(*acquire)
		c.asked = o.Claims
		c.Acquire = engine.Acquire{
			Head: h, ID: st.random.id(), LeaseRequest: o.LeaseRequest, Attach: true,
		}
		c.Claims = slices.Clone(o.Claims)
		cmd, asked, who.brief = &c.Acquire, c, o.Brief && o.Slot != 0
	case proto.OpRelease:
		c := releases.Get().(*engine.Release)
		*c = engine.Release{Head: h, Lease: o.ID, Outcome: o.Outcome, Note: o.Note}
		cmd = c
	case proto.OpHeartbeat:
		h.Seq, h.Acked = 0, 0
		cmd = &engine.Heartbeat{Head: h, Progress: o.Progress, Known: o.Known}
	case proto.OpReadState, proto.OpReadHistory, proto.OpGetEffect, proto.OpListEffects, proto.OpGetContention,
		proto.OpListPatterns, proto.OpGetSettings, proto.OpGetTask, proto.OpListTasks, proto.OpListQueues, proto.OpReadLog:
		return st.query(o)
	default:
		if cmd = st.taskCommand(o, h); cmd != nil {
			break
		}
		if cmd = st.rareCommand(o, h); cmd == nil {
			return nil
		}
	}
	if asked == nil {
		asked = cmd
	}
	who.open = questions.Get().(*question)
	who.open.cmd = asked
	switch o.Kind {
	case proto.OpCommit, proto.OpSubmitTask, proto.OpAckTask:
		who.open.bulk = o.Size()
		st.carry(who.open.bulk)
	}
	st.enqueue(cmd)
	return nil
}

// enqueue adds a command to those that the next submit hands over. Its answer is that of the
// operation at hand.
func (st *stream) enqueue(cmd engine.Command) {
	st.cmds, st.handled = append(st.cmds, cmd), true
}

// listens reports whether an operation about tasks makes the engine keep the listener. That ends
// with the stream, since its sessions are detached then; so it takes one, or tasks would be handed
// to streams that are gone.
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
func (st *stream) refuse(o *proto.Op, code interlock.Code, text string) {
	st.refuseWith(o, &engine.Effect{Outcome: engine.Refused, Code: code, Message: message.Plain(text)})
}

// refuseWith is refuse for an effect. The reader calls it.
func (st *stream) refuseWith(o *proto.Op, eff *engine.Effect) {
	st.handled = true
	st.deliver(eff, address{at: st.d.s.shard.At(), slot: o.Slot, seq: o.Seq}, true)
}

// unanswered answers an operation that came to nothing, so that its caller does not wait for ever.
func (st *stream) unanswered(o *proto.Op) {
	st.d.s.log.Error("an operation was not answered because of an internal error", "kind", o.Kind)
	st.refuse(o, interlock.CodeInternal, "internal error in this operation: check the server's log")
}
