package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// A barrier: parties that wait for each other.
//
// The requests for a barrier form one bucket of the key's line. When all its parties have
// arrived, no lease of an earlier set is held, and nothing else blocks any of them, the first
// of them are admitted together, in one step and so in one entry of the journal. That is a
// generation, and their leases are its set. A holder that arrives again joins the line once
// more, ahead of newcomers; when all of the set have, the next generation opens.
//
//	Acquire ─┐                              ┌─ Arrive ─┐
//	Acquire ─┼─► generation 1: three leases ┼─ Arrive ─┼─► generation 2: the same leases ...
//	Acquire ─┘                              └─ Arrive ─┘
//
// A generation that loses a party before it opens is broken: its other waiters are refused in
// the same step. A set that has lost a lease cannot open again. Newcomers wait until the last
// lease of a set is over.
//
// A barrier waits neither for a holder nor for a waiter, but for an absent party. So a waiter
// that only absence blocks is watched at the key, and the last party to arrive opens the
// barrier. If something else blocks one party of the generation, that party is watched at its
// blocker.

// partyBytes bounds the event that admits or dismisses one party, so that a whole
// generation is sure to fit in a step: MaxParties of them are less than stepBytes.
const partyBytes = stepBytes / interlock.MaxParties

// gathering returns r's need of a key that it uses together with others, as a party of a
// barrier or a member of a partitioned key; or nil.
func (r *request) gathering() *need {
	if n := len(r.needs()); n > 0 && r.needs()[n-1].counts > interlock.Permits {
		return &r.needs()[n-1] // it is the only claim
	}
	return nil
}

// barrier returns r's need of a barrier, or nil.
func (r *request) barrier() *need {
	if m := r.gathering(); m != nil && m.counts == interlock.Barrier {
		return m
	}
	return nil
}

// parties returns the bucket of the waiters for the barrier at n, or nil.
func (n *node) parties() *bucket {
	if n.line == nil {
		return nil
	}
	for c := n.line.first; c != nil; c = c.next {
		if c.counts == interlock.Barrier {
			return c
		}
	}
	return nil
}

// sizeOf returns the number of parties of the barrier at n, or of the parts into which n is
// divided; 0 if neither is in use.
func (n *node) sizeOf(mode interlock.Mode) uint32 {
	if n.line != nil {
		for c := n.line.first; c != nil; c = c.next {
			if c.counts == mode {
				return c.first().count
			}
		}
	}
	for h := n.first; h != nil && (n.gang > 0 || n.divided != nil); h = h.next {
		if h.counts == mode {
			return h.req.countOf(h)
		}
	}
	return 0
}

// gathered reports whether the generation to which r would belong is complete. r
// may be on trial and not in line yet.
func (r *request) gathered(m *need) bool {
	size, c := int(r.countOf(m)), m.node.parties()
	if r.base != nil {
		return c != nil && c.len() >= size && c.nth(size-1).req.base != nil
	}
	if m.node.gang > 0 {
		return false
	}
	there, ahead := 0, 0
	if c != nil {
		there, ahead = c.len(), c.countBefore(r)
	}
	if r.phase != waiting {
		there++
	}
	return there >= size && ahead < size
}

// gatheredAt returns the waiters of r's generation. If r waits for the first time, or is about
// to, they are the first newcomers, provided r is one of them; if r is a lease, or arrives
// again, those of its set that have arrived.
func (r *request) gatheredAt(m *need) (list []*request) {
	c := m.node.parties()
	if c == nil {
		return nil
	}
	size, again := int(r.countOf(m)), r.base != nil || r.phase > waiting
	if r.phase < waiting {
		size--
	}
	for p := c.first(); p != nil && len(list) < size; p = p.next() {
		if (p.req.base != nil) == again {
			list = append(list, p.req)
		}
	}
	if r.phase == waiting && !slices.Contains(list, r) {
		return nil
	}
	return list
}

// lockedOut returns the index of the first need where anything but absent parties blocks r, or
// -1.
func (r *request) lockedOut() int { return r.firstNeed(-1, (*request).lockedOutAt) }

// open admits the generation that r completes. If something else blocks one of its parties,
// open watches that party there instead.
func (e *Engine) open(r *request) bool {
	list := r.gatheredAt(r.barrier())
	for _, w := range list {
		if i := w.lockedOut(); i >= 0 {
			e.watch(r, len(r.needs())-1)
			e.watch(w, i)
			return false
		}
	}
	for _, w := range list {
		e.admit(w)
	}
	return true
}

// opens reports whether r, which is not in line yet, is the last party that its barrier waits
// for, and nothing else blocks it.
func (r *request) opens() bool {
	m := r.barrier()
	if m == nil || r.blocker() >= 0 {
		return false
	}
	for _, w := range r.gatheredAt(m) {
		if w.lockedOut() >= 0 {
			return false
		}
	}
	return true
}

// brokenBarrier is a waiter in a generation that has lost a party, and the cause of the loss.
type brokenBarrier struct {
	req  *request
	num  uint64 // of the request of the party that was lost
	who  string // its agent
	what string // why it is lost
}

// lostState returns the word for what an event did to a party.
func lostState(ev *record.Event) string {
	if ev.Kind == record.Parked {
		return "parked"
	}
	return ev.Reason.String()
}

// breakUp lists the waiters of the generation that loses a party by an event.
func (e *Engine) breakUp(ev *record.Event) {
	switch ev.Kind {
	case record.Left, record.Grace, record.Closed, record.Ended, record.Parked:
	default:
		return
	}
	r := e.hint.req
	if r == nil || ev.Reason == record.ByBreak {
		return
	}
	if m := r.barrier(); m != nil {
		for _, w := range r.gatheredAt(m) {
			if w != r {
				e.broken = append(e.broken, brokenBarrier{w, r.num, r.agentName(), lostState(ev)})
			}
		}
	}
}

// dismiss refuses the waiters of broken generations.
func (e *Engine) dismiss() {
	for _, b := range e.broken {
		if b.req.phase == waiting {
			ev := e.leaving(b.req, record.ByBreak)
			ev.By, ev.Asker, ev.Outcome = b.num, b.who, b.what
			e.giveUp(b.req, ev)
		}
	}
	clear(e.broken)
	e.broken = e.broken[:0]
}

// absent returns the leases that are known to keep r waiting at a barrier: those of its set
// that have not arrived again, or of an earlier set. For other modes it returns none.
func (r *request) absent(m *need) (list []*request) {
	if m.counts != interlock.Barrier {
		return nil
	}
	for h := m.node.first; h != nil && m.node.gang > 0; h = h.next {
		if h.counts == interlock.Barrier && (r.base == nil || h.req.conversion == nil) {
			list = append(list, h.req)
		}
	}
	return list
}

// eachAbsent is eachBlocker for a barrier: it visits the holders of the leases that absent
// returns and, once all parties are there, the blockers of its generation. If r itself is the
// blocker, r waits for the party that it locks out.
func (e *Engine) eachAbsent(r *request, visit func(need int, p *flowState, r *request) bool) bool {
	m := r.barrier()
	if m == nil {
		return false
	}
	at := len(r.needs()) - 1
	for _, x := range r.absent(m) {
		if p := x.party; p != nil && len(p.waits) > 0 && visit(at, p, nil) {
			return true
		}
	}
	if !r.gathered(m) {
		return false
	}
	for _, w := range r.gatheredAt(m) {
		if w == r || w.lockedOut() < 0 {
			continue
		}
		closed := e.eachBlocker(w, func(_ int, p *flowState, x *request) bool {
			if p != nil && p == r.party {
				p, x = w.party, w
			}
			return visit(at, p, x)
		})
		if closed {
			return true
		}
	}
	return false
}

// generation returns how often the barrier at n has opened, if a set holds it; otherwise 0.
func (n *node) generation() uint64 {
	if n == nil || n.gang == 0 {
		return 0
	}
	return n.ofSet().req.generation
}

// broken reports whether the set that holds the barrier at n has lost a party. Then
// it can never open again.
func (n *node) broken() bool {
	if n == nil || n.gang == 0 {
		return false
	}
	h := n.ofSet()
	return n.membersLeft() < h.req.countOf(h)
}

// ofSet returns a claim of the set that holds the barrier at n; there is one.
func (n *node) ofSet() *need {
	h := n.first
	for h.counts != interlock.Barrier {
		h = h.next
	}
	return h
}

// nextGeneration returns the generation in which a waiting party is admitted; 0 for a request
// that is not at a barrier.
func (r *request) nextGeneration() uint64 {
	switch {
	case r.barrier() == nil:
		return 0
	case r.base != nil:
		return r.base.generation + 1
	}
	return 1
}

// setGeneration records the generation that admitted r, if it is a party.
func (r *request) setGeneration(generation uint64) {
	if generation != 0 {
		d := *r.requestDetail
		d.generation = generation
		r.setDetails(d)
	}
}

// there returns the lease or the wait that already makes r's flow a party or a member there, or
// nil.
func (r *request) there(m *need) *request {
	if r.party.at(m.node) == (flowTally{}) {
		return nil
	}
	*r.ns.agenda.objects += len(r.party.leases) + len(r.party.waits)
	for _, list := range [][]*request{r.party.leases, r.party.waits} {
		for _, x := range list {
			if o := x.gathering(); o != nil && o.node == m.node && o.counts == m.counts && x.phase != inGrace {
				return x
			}
		}
	}
	return nil
}

// meet answers an Acquire for a barrier or a membership that its party has already,
// so that none is counted twice, and one that comes to it with another number or is
// one too many. It reports whether it did.
func (e *Engine) meet(c *Acquire, r *request) bool {
	m := r.gathering()
	if m == nil {
		return false
	}
	size, x := m.node.sizeOf(m.counts), r.there(m)
	switch {
	case size != 0 && size != r.countOf(m):
		e.refuse(interlock.CodeMismatch, message.New(message.BarrierMismatch, message.Str(c.Claims[0].Key), message.Str(c.Claims[0].Mode.String()), message.Num(size)))
	case x != nil:
		e.follow(x, c.Attach)
		e.out.Effects[e.replied].Lease.Reused = x.phase != waiting
	case m.node.divided != nil && len(m.node.divided.members) >= interlock.MaxParts:
		e.refuse(interlock.CodeTooManyLeases, message.New(message.MembersAtLimit, message.Str(c.Claims[0].Key), message.Num(interlock.MaxParts)))
	default:
		return false
	}
	return true
}

// decide enqueues the holder of a party's lease for the next generation.
func (c *Arrive) decide(e *Engine) {
	if code, problem := checkMaxWait(c.MaxWait); code != "" {
		e.refuse(code, problem)
		return
	}
	l := e.findHeld(c.Lease)
	if l == nil {
		return
	}
	m := l.barrier()
	switch {
	case m == nil:
		e.refuse(interlock.CodeInvalidRequest, message.New(message.NotABarrierParty, message.Str(l.claims()[0].Key)))
		return
	case l.phase == inGrace:
		e.refuseInGrace(l)
		return
	case l.phase != held:
		e.refuse(interlock.CodeUnknownLease, message.New(message.OnlyOffered))
		return
	case l.conversion != nil:
		e.follow(l.conversion, c.Attach)
		return
	case m.node.broken():
		e.refuse(interlock.CodeBroken, message.New(message.BarrierBroken, message.Str(l.claims()[0].Key)))
		return
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	if e.isTaken(c.ID) {
		return
	}
	r := e.conversion(&Convert{Head: c.Head, ID: c.ID, Claims: l.claims(), MaxWait: c.MaxWait}, l)
	if !e.queue(r, interlock.Wait, c.Attach) {
		e.discard(r)
	}
}

// membersLeft counts the leases of the set at n that are in their holders' hands.
func (n *node) membersLeft() (count uint32) {
	for h := n.first; h != nil; h = h.next {
		if h.counts == interlock.Barrier && h.req.phase != inGrace && h.req.phase != closed {
			count++
		}
	}
	return count
}

func (c *Arrive) again(e *Engine, a *storedAnswer) { e.answerAgain(a, c.Attach) }
