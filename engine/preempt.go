package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
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

// rareState are for the few requests that are asked for, or parked.
type rareState struct {
	askers []*request // of a lease: the requests that ask its holder to yield, in the order of asking
	asked  []*request // of a request: the leases that it asked for

	parking  *parkState          // while it is put aside
	decision *interlock.Decision // about the last parking
	arrived  Time                // of a lease that was put aside once: when its request first arrived
	hearers  []answerListener    // its listeners
	moved    []interlock.Key     // and which of its keys others may have written meanwhile
}

func (r *request) deal() *rareState {
	if r.dealings == nil {
		r.mutableExt().dealings = &rareState{}
	}
	return r.dealings
}

// preempt asks the blockers of a new waiter to yield. Of several alternatives it asks for the
// one with the earliest expected grant. It returns the warnings for the caller: the first key
// with a pattern that forbids to ask.
func (e *Engine) preempt(r *request) (warnings []*message.Text) {
	way := e.soonestAlternative(r)
	v := viewer{e: e, limit: maxAsked, except: way}
	for i := range way.needs() {
		m := &way.needs()[i]
		v.at(m.node, lockmode.Conflicts[m.mode])
		if m.claimed {
			v.below(m.node, lockmode.Conflicts[m.mode])
		}
		if m.counts == interlock.Permits && way.short(m) == shortOfPermits {
			v.cheapest(m)
		}
	}
	begin := len(e.out.Entry)
	for i, l := range v.found {
		if len(e.out.Entry)-begin > maxAskBytes {
			return
		}
		if l.phase == inGrace || l.phase == closed || slices.Contains(v.found[:i], l) {
			continue
		}
		switch policy := preemptPolicy(l, v.via[i:]); {
		case policy != interlock.PreemptNever:
			e.ask(r, l, policy)
		case warnings == nil:
			warnings = []*message.Text{message.New(message.NotPreemptible, message.Str(v.via[i].node.key))}
		}
	}
	return warnings
}

// cheapest adds holders of as many permits as m lacks: those with the lowest
// priority, of equals the youngest.
func (v *viewer) cheapest(m *need) {
	all := viewer{e: v.e, limit: maxMore, except: v.except}
	all.permits(m.node)
	slices.SortFunc(all.via, func(a, b *need) int {
		return cmp.Or(cmp.Compare(a.req.priority, b.req.priority), cmp.Compare(b.req.fence, a.req.fence))
	})
	pool, want := m.node.pool(), int64(m.req.countOf(m))
	lacks := int64(pool.used) + int64(pool.ahead(m.req)) + want - int64(pool.policy.Capacity)
	if lacks <= 0 { // it is its group that lacks them
		lacks = want
	}
	for _, h := range all.via {
		if lacks > 0 {
			lacks -= int64(h.req.countOf(h))
			v.add(h)
		}
	}
}

// preemptPolicy returns the strongest policy of the patterns of the keys, among via, where l
// blocks.
func preemptPolicy(l *request, via []*need) interlock.PreemptPolicy {
	policy := interlock.PreemptNever
	for _, m := range via {
		if m.req != l {
			continue
		}
		switch p := l.ns.policyAt(m.node.key); {
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
func (e *Engine) ask(r, l *request, policy interlock.PreemptPolicy) {
	ev := e.event(record.YieldRequested, l)
	ev.Fence, ev.Actor, ev.Asker, ev.Purpose, ev.Priority = l.fence, e.head.Actor, r.agentName(), r.purpose, int(r.priority)
	if s := r.session(); s != nil {
		ev.Target, ev.TargetFlow = s.num, r.flow().name
	}
	ev.By, ev.ByID = r.num, r.id
	e.emit(ev)
	shown := l.asker() == r
	if policy == interlock.PreemptRevoke && l.phase == held && r.priority >= l.priority {
		e.hard(l, record.ByPreemption)
	}
	if shown && l.phase != over {
		e.reportAsked(l)
	}
}

func (l *request) evolveAsked(ev *record.Event) error {
	r := l.ns.live(ev.ByID)
	if l.phase == waiting || l.isOver() || r == nil || r.num != ev.By || r.phase != waiting {
		return errUnknown
	}
	l.deal().askers = append(l.dealings.askers, r)
	r.deal().asked = append(r.dealings.asked, l)
	return nil
}

// unask ends what r has asked of others, and others of r: one of both is over.
func (r *request) unask() {
	d := r.dealings
	if d == nil {
		return
	}
	for _, l := range d.asked {
		l.dealings.askers = slices.DeleteFunc(l.dealings.askers, func(x *request) bool { return x == r })
	}
	for _, w := range d.askers {
		w.dealings.asked = slices.DeleteFunc(w.dealings.asked, func(x *request) bool { return x == r })
	}
	d.asked, d.askers = nil, nil
}

// asker is the request to which the holder of r is to yield, nil for none.
func (r *request) asker() (best *request) {
	if r.dealings == nil {
		return nil
	}
	for _, x := range r.dealings.askers {
		if best == nil || x.priority > best.priority {
			best = x
		}
	}
	return best
}

// yield returns the holder's view of the request that asks for r, or nil.
func (e *Engine) yield(r *request) *interlock.Yield {
	x := r.asker()
	if x == nil {
		return nil
	}
	y := &interlock.Yield{
		Agent: x.agentName(), Flow: x.flowName(), Purpose: x.purpose, Priority: int(x.priority),
		Since: e.now.Sub(x.arrived()), Revoked: r.phase == inGrace && r.reason == record.ByPreemption,
	}
	if s := x.session(); s != nil {
		y.Session = s.name
	}
	return y
}

// reportAsked reports to a session that one of its leases is asked for: by a push if it has a
// listener, and with the next heartbeat.
func (e *Engine) reportAsked(r *request) {
	s := r.session()
	if s == nil {
		return
	}
	lease := e.lease(r)
	if r.phase != inGrace { // else it is noted as a loss
		s.note(r, Loss{Lease: lease, Message: r.yieldWords()})
	}
	if s.caller != nil {
		eff := e.effect(s.caller, Asked)
		eff.Lease, eff.Message = lease, r.yieldWords()
	}
}

// yieldWords say what is asked of the holder of r.
func (r *request) yieldWords() *message.Text {
	if r.phase == inGrace {
		return message.New(message.YieldTaken, message.Str(r.asker().agentName()), message.Str(r.claims()[0].Key))
	}
	return message.New(message.YieldAsked, message.Str(r.asker().agentName()), message.Str(r.claims()[0].Key))
}

// preemptor returns the principal and the agent of the request that r was taken for, or is.
func (r *request) preemptor() (principal, agent string) {
	if r.endCause != nil {
		return r.endCause.actor, r.endCause.asker
	}
	if x := r.asker(); x != nil {
		return x.owner(), x.agentName()
	}
	return "", ""
}
