package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// A request with Preempt stands in line like any other, and the holders that block it when it
// arrives are asked to yield. They learn of it by a push, and with each answer about their
// lease, for as long as the request waits. If the pattern of the contested key revokes, and the
// request's priority is not lower than the lease's, they lose the lease after its grace; the
// key then passes on by the line. Of the holders of permits, as many as necessary are asked.
//
// A lease may be asked for by several requests. Its holder is shown the one with
// the highest priority, of equals the first; when that leaves, the next.

// maxAsked bounds the holders that one request asks, and maxAskBytes the events of that, if
// there are several. The holders beyond them are only waited for.
const (
	maxAsked    = 64
	maxAskBytes = stepBytes / 4
)

// preempt asks the blockers of a new waiter to yield. Of several alternatives it asks for the
// one with the earliest expected grant. It returns the warnings for the caller: the first key
// with a pattern that forbids to ask.
func (e *Engine) preempt(r *store.Request) (warnings []*message.Text) {
	v := e.holdersAgainst(r)
	begin := len(e.out.Entry)
	for i, l := range v.Found {
		if len(e.out.Entry)-begin > maxAskBytes {
			return
		}
		if l.Phase == store.InGrace || l.Phase == store.Closed || slices.Contains(v.Found[:i], l) {
			continue
		}
		switch policy := preemptPolicy(l, v.Via[i:]); {
		case policy != interlock.PreemptNever:
			e.ask(r, l, policy)
		case warnings == nil:
			warnings = []*message.Text{message.New(message.NotPreemptible, message.Str(v.Via[i].Node.Key))}
		}
	}
	return warnings
}

// holdersAgainst finds the holders that keep a waiter from its keys, 64 at most. Of several alternatives it looks
// at the one with the earliest expected grant.
func (e *Engine) holdersAgainst(r *store.Request) store.Viewer {
	way := r.SoonestAlternative()
	v := e.View(maxAsked, way)
	for i := range way.Needs() {
		m := &way.Needs()[i]
		v.At(m.Node, lockmode.Conflicts[m.Mode])
		if m.Claimed {
			v.Below(m.Node, lockmode.Conflicts[m.Mode])
		}
		if m.Counts == interlock.Permits && way.Short(m) == store.ShortOfPermits {
			v.Cheapest(m)
		}
	}
	return v
}

// maxAskers bounds the waiters that are looked at for one that a lease is in the way of.
const maxAskers = 64

// firstWaiterFor returns the first request in the line of a key that a lease keeps from its keys, or nil. A task in
// line is none: it has no agent yet.
func (e *Engine) firstWaiterFor(l *store.Request, key interlock.Key) (first *store.Request) {
	n := e.PendingWork.NS.NodeAt(string(key))
	if n == nil || n.Line == nil {
		return nil
	}
	looks := 0
	walkLine(n, func(p *store.QueueEntry) bool {
		looks++
		if p.Req.Task == nil && slices.Contains(e.holdersAgainst(p.Req).Found, l) {
			first = p.Req.Whole()
		}
		return first == nil && looks < maxAskers
	})
	return first
}

// preemptPolicy returns the strongest policy of the patterns of the keys, among via, where l
// blocks.
func preemptPolicy(l *store.Request, via []*store.Need) interlock.PreemptPolicy {
	policy := interlock.PreemptNever
	for _, m := range via {
		if m.Req != l {
			continue
		}
		switch p := l.NS.PolicyAt(m.Node.Key); {
		case p == nil || p.Preempt == interlock.PreemptAsk:
			policy = interlock.PreemptAsk
		case p.Preempt == interlock.PreemptRevoke:
			return interlock.PreemptRevoke
		}
	}
	return policy
}

// ask asks the holder of l to yield to r, and ends l after its grace if the policy
// and the priorities say so.
func (e *Engine) ask(r, l *store.Request, policy interlock.PreemptPolicy) {
	e.emit(e.yieldEvent(r, l))
	shown := l.Asker() == r
	if policy == interlock.PreemptRevoke && l.Phase == store.Held && r.Priority >= l.Priority {
		e.hard(l, record.ByPreemption)
	}
	if shown && l.Phase != store.Over {
		e.reportAsked(l)
	}
}

// yieldEvent returns the event that asks the holder of l to yield to r.
func (e *Engine) yieldEvent(r, l *store.Request) *record.Event {
	ev := e.event(record.YieldRequested, l)
	ev.Fence, ev.Actor, ev.Asker, ev.Purpose, ev.Priority = l.Fence, e.head.Actor, r.AgentName(), r.Purpose,
		int(r.Priority)
	if s := r.Session(); s != nil {
		ev.Target, ev.TargetFlow = s.Num, r.Flow().Name
	}
	ev.By, ev.ByID = r.Num, r.ID
	return ev
}

// reportAsked reports to a session that one of its leases is asked for: by a push if it has a
// listener, and with the next heartbeat.
func (e *Engine) reportAsked(r *store.Request) {
	s := r.Session()
	if s == nil {
		return
	}
	lease := r.Lease()
	if r.Phase != store.InGrace { // else it is noted as a loss
		s.Note(r, store.Loss{Lease: lease, Message: r.YieldWords()})
	}
	if s.Caller != nil {
		eff := e.effect(s.Caller, Asked)
		eff.Lease, eff.Message = lease, r.YieldWords()
	}
}
