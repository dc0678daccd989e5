package sim

import (
	"cmp"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// once checks that a command with a request id is carried out once.
func (a *audit) once(w *world, s *space, ev *record.Event) {
	if len(ev.Blob) > 0 && (ev.Kind == record.Queued || ev.Kind == record.Granted) {
		return // a run that could not start is asked for anew under its id
	}
	t := tag{s.name, ev.Scope, ev.RequestID, ev.Seq}
	if a.never[t] {
		w.fail("I15", "the command with request id %q or number %d of session %d was refused without room, "+
			"and is carried out at index %d", ev.RequestID, ev.Seq, ev.Scope, a.index)
	}
	if before, ok := a.done[t]; ok && before.at != a.index {
		w.fail("I14", "the command with request id %q or number %d of session %d is carried out at index %d and again at "+
			"index %d (%s)",
			ev.RequestID, ev.Seq, ev.Scope, before.at, a.index, ev.Kind)
	}
	a.done[t] = commandRecord{a.index, ev.Answer}
}

// tagOf is the tag of a command, once its session is known.
func (a *audit) tagOf(cmd engine.Command) tag {
	h := cmd.Header()
	t := tag{space: h.Namespace, id: h.RequestID, seq: h.Seq}
	if s := a.spaces[h.Namespace]; s != nil {
		if x := s.sessions[h.Session]; x != nil {
			t.scope = x.num
		}
	}
	return t
}

// submitted notes that a command has reached an owner, and refusedWithoutRoom that one was refused there because there
// was no room. When all that were sent of a command have been refused so, it was never carried out.
func (a *audit) submitted(cmd engine.Command) {
	t := a.tagOf(cmd)
	a.sent[t]++
	delete(a.never, t)
}

func (a *audit) refusedWithoutRoom(cmd engine.Command) {
	t := a.tagOf(cmd)
	if a.sent[t]--; a.sent[t] == 0 {
		a.never[t] = true
	}
}

// denied checks that no caller is refused what was carried out, when it only asks again.
func (a *audit) denied(s *space, r *receiver, eff *engine.Effect, at interlock.Index) {
	switch r.cmd.(type) {
	case *engine.Ack, *engine.Nack, *engine.Commit:
	default:
		return
	}
	switch eff.Code {
	case interlock.CodeRequestTooOld, interlock.CodeOverloaded:
		return
	}
	if x := s.sessions[r.cmd.Header().Session]; x != nil && x.ended {
		return // what was remembered in the session is gone with it
	}
	if c, ok := a.done[a.tagOf(r.cmd)]; ok && c.at <= at && c.answer == engine.Done {
		a.w.fail("I14", "%s was carried out at index %d, and is refused (%s) at index %d", r.op.words, c.at, eff.Code, at)
	}
}

// left checks an answer as it leaves a server.
func (a *audit) left(r *receiver, eff *engine.Effect, at interlock.At) {
	w, o := a.w, r.op
	if eff.Outcome == engine.Refused {
		if eff.Code == interlock.CodeNoSpace {
			a.refusedWithoutRoom(r.cmd)
		}
		switch eff.Code {
		case interlock.CodeNotOwner, interlock.CodeOutcomeUnknown, interlock.CodeShuttingDown, interlock.CodeNoSpace:
			return
		}
	}
	if r.tenure < a.tenures && r.arrived > a.since && eff.Outcome < engine.Warned {
		w.fail(
			"I16", "host %d of epoch %d answers %s, which came after epoch %d was opened", r.owner.h.number, at.Epoch, o.words,
			a.epoch,
		)
		return
	}
	if a.loss.open && r.arrived > a.loss.at && eff.Outcome < engine.Warned {
		w.fail("I15", "host %d answers %s, which came after the engine had lost entry %d", r.owner.h.number, o.words,
			a.loss.after+1)
		return
	}
	if r.losses < a.loss.count {
		return // it was true
	}
	if at.Index > a.tail() {
		w.fail("I15", "host %d answers %s with index %d, and %d is durable", r.owner.h.number, o.words, at.Index, a.tail())
		return
	}
	if r.tenure == a.tenures {
		a.hears(r, eff)
	}
	s := a.spaces[o.c.namespace]
	if s == nil {
		return
	}
	switch eff.Outcome {
	case engine.Granted:
		if eff.Lease.Fence > 0 && eff.Lease.State != interlock.Ended {
			a.shows(s, o, &eff.Lease, at.Index)
		}
		for i := range eff.Handed {
			a.shows(s, o, &eff.Handed[i].Lease, at.Index)
		}
	case engine.Queued:
		if x := s.requests[eff.Ticket.ID]; x != nil && x.from > at.Index {
			w.fail("I15", "%s was answered as queued at index %d, and %v came at index %d", o.words, at.Index, x, x.from)
		}
	case engine.Refused:
		a.denied(s, r, eff, at.Index)
		if c, ok := r.cmd.(*engine.Acquire); ok && eff.Code == interlock.CodeHeld && !eff.Repeated {
			a.reallyHeld(s, o, c, at.Index)
		}
	}
	switch c := r.cmd.(type) {
	case *engine.Commit:
		a.committed(s, o, c, eff, at.Index)
	case *engine.CheckFence:
		if x := a.byFence[c.Fence]; eff.Outcome == engine.Done &&
			(x == nil || x.heldFrom > at.Index || x.to != 0 && x.to <= at.Index) {
			w.fail("I3", "fence %d was said to be good at index %d, and it is nobody's", c.Fence, at.Index)
		}
	case *engine.Release:
		if x := s.requests[c.Lease]; eff.Outcome == engine.Done && x != nil && (x.to == 0 || x.to > at.Index) &&
			!eff.Repeated {
			w.fail("I15", "%s was answered at index %d, and %v is still there", o.words, at.Index, x)
		}
	}
}

// shows checks that a lease that an answer shows is in the journal at its index.
func (a *audit) shows(s *space, o *op, l *interlock.Lease, at interlock.Index) {
	x := s.requests[l.ID]
	if x == nil || x.heldFrom == 0 || x.heldFrom > at {
		a.w.fail("I15", "%s was answered at index %d with fence %d, and the journal has no such lease", o.words, at, l.Fence)
		return
	}
	if x.to != 0 && x.to <= at {
		a.w.fail(
			"I15", "%s was answered at index %d with fence %d, and %v was over at index %d", o.words, at, l.Fence, x, x.to,
		)
		return
	}
	ttl := x.ttls[0].ttl
	for _, t := range x.ttls {
		if t.index <= at {
			ttl = t.ttl
		}
	}
	if ttl != l.TTL && !x.part { // a part has its member's
		a.w.fail("I15", "%s was answered at index %d with a ttl of %v, and %v had one of %v", o.words, at, l.TTL, x, ttl)
		return
	}
	var fence interlock.Fence
	for _, f := range x.fences {
		if f.index <= at {
			fence = f.fence
		}
	}
	if fence != l.Fence {
		a.w.fail("I15", "%s was answered at index %d with fence %d, and the lease had fence %d", o.words, at, l.Fence, fence)
	}
}

// reallyHeld checks that a blocker did block a request that was refused.
func (a *audit) reallyHeld(s *space, o *op, c *engine.Acquire, at interlock.Index) {
	want := &request{space: s}
	want.claim(c.Claims)
	if x := s.sessions[c.Session]; x != nil {
		want.session, want.flow = x.num, cmp.Or(c.Flow, "main")
	}
	for i := len(s.records) - 1; i >= 0; i-- {
		x := s.records[i]
		if x.from <= at && (x.to == 0 || x.to > at) && anyPair(x.had, want.claims, func(p, q interlock.Claim) bool {
			return apart(p, q) || p.Key == q.Key && p.Mode.Counts()
		}) {
			return
		}
	}
	for _, t := range s.tasks {
		if !t.settled() {
			return // it may stand in line
		}
	}
	a.w.fail("I15", "%s was refused as held at index %d, and nobody was in its way", o.words, at)
}

// committed checks what a commit was answered against the documents at its index.
func (a *audit) committed(s *space, o *op, c *engine.Commit, eff *engine.Effect, at interlock.Index) {
	if eff.Repeated {
		return
	}
	switch {
	case eff.Outcome == engine.Done:
		for _, r := range c.Reads {
			if d := s.docs[r.Key].at(at - 1); r.Version != d.version && !(r.Version == 0 && d.absent) {
				a.w.fail("I11", "%s succeeded at index %d, and %s had version %d", o.words, at, r.Key, d.version)
			}
		}
		for _, x := range c.Writes {
			if d := s.docs[x.Key].at(at); d.index == at && d.version != eff.Version {
				a.w.fail(
					"I15", "%s was answered with version %d at index %d, and version %d was written", o.words, eff.Version, at,
					d.version,
				)
			}
		}
	case eff.Code == interlock.CodeStale:
		for _, r := range c.Reads {
			if d := s.docs[r.Key].at(at); r.Version != d.version || r.Version == 0 && !d.absent {
				return
			}
		}
		a.w.fail("I11", "%s was refused as stale at index %d, and what it read was current", o.words, at)
	}
}

// received checks an answer as it reaches its client: it is not older than what any client had
// received before the command was sent.
func (a *audit) received(o *op, eff *engine.Effect, at interlock.At) {
	if at.Index == 0 || o.losses < a.loss.count {
		return
	}
	if at.Index < o.floor {
		a.w.fail(
			"I16", "%s was sent after an answer of index %d had come, and is answered with index %d of epoch %d", o.words,
			o.floor, at.Index, at.Epoch,
		)
		return
	}
	a.told = max(a.told, at.Index)
	same := ""
	switch {
	case o.head.Seq == 0 && o.head.RequestID == "": // it may be answered as things stand
	case eff.Outcome == engine.Granted && eff.Lease.Fence > 0 && len(eff.Handed) == 0:
		same = eff.Lease.ID.String()
	case eff.Outcome == engine.Done && eff.Version > 0 && len(eff.Tasks) == 0:
		same = fmt.Sprint("version ", eff.Version)
	}
	if same == "" {
		return
	}
	if o.said != "" && o.said != same {
		a.w.fail("I14", "%s was answered with %s and then with %s", o.words, o.said, same)
	}
	o.said = same
}
