package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// The question to a person about a parked lease, and the answer.
//
// A lease that is parked with a reason asks a question, and is an approval until it is
// answered. It is listed among the approvals, and known there by the fence that it had, since
// its id is its holder's secret. The answer is kept with the lease until it is parked again.
//
//	parked: asks ──► approved ──► resumed by a waiting or a later caller
//	     │     └───► denied ────► not resumed: its holder is informed, and releases it
//	     └───────────────────────► resumed unapproved: the question is withdrawn
//
// The answer resumes the lease: a resumption that may wait waits for it, and is carried out
// when it comes. That wait is volatile, like one for the end of a task: the engine notifies the
// waiting caller of the answer, and the caller then resumes the lease. So a lease is never
// resumed for a holder that has died meanwhile; the answer stays with it until a holder comes,
// or the time of the parking ends. A resumption that may not wait is refused.
//
// The answer frees nothing and ends nothing: the keys stay as the parking has them. The time of
// a parking that asks a person does not run while no server runs, since no answer is possible
// then. A principal that holds the lease, or parked it, cannot answer. Without credentials an
// answer is a courtesy. A holder that continues without an approval states so:
// Resume.Unapproved.

// asksPerson is record.Event.Op of a parking that asks a person. A parking without it asks none,
// whatever its reason: it was made before leases were approvals.
const asksPerson = 1

// asksBy returns record.Event.Op of a parking for a reason.
func asksBy(reason string) uint8 {
	if reason == "" {
		return 0
	}
	return asksPerson
}

// maxHearers bounds how many wait for the answer about one lease. The longest waiting leaves
// first: it may be gone.
const maxHearers = 16

// answerListener is a caller that waits for the answer about a parked lease.
type answerListener struct {
	caller Caller
	link   uint64
}

// awaitsAnswer keeps a resumption waiting, or refuses it, if the lease asks a person and is not
// approved, and reports whether it did.
func (e *Engine) awaitsAnswer(c *Resume, r *request) bool {
	p, d := r.dealings.parking, r.dealings.decision
	switch {
	case !p.asks || c.Unapproved || d != nil && d.Verdict == interlock.Approved:
		return false
	case d != nil:
		eff := e.refuse(interlock.CodeDenied, message.New(message.ParkDenied, message.Str(r.firstKey()), message.Str(d.Answerer())))
		eff.Lease, eff.Conflict = e.lease(r), &Conflict{Key: r.firstKey()}
	case !c.Attach || c.OnConflict != interlock.Wait && c.OnConflict != interlock.Preempt:
		r.unhear(c.Link)
		e.refuseParked(r)
	default:
		if list := r.dealings.hearers; len(list) == maxHearers {
			eff := e.effect(list[0].caller, Refused)
			eff.Code, eff.Message = interlock.CodeTooManyWaiters, message.New(message.HearersAtLimit, message.Num(maxHearers))
			r.dealings.hearers = list[1:]
		}
		eff := e.reply(Queued)
		eff.Ticket.ID, eff.Question = interlock.TicketID(r.id), e.question(r)
		r.dealings.hearers = append(slices.Clip(r.dealings.hearers), answerListener{e.head.From, c.Link})
	}
	return true
}

// unhear ends the waits over a link for the answer about r.
func (r *request) unhear(link uint64) {
	if d := r.dealings; d != nil && link != 0 {
		d.hearers = slices.DeleteFunc(d.hearers, func(h answerListener) bool { return h.link == link })
	}
}

// wake notifies the callers that wait for the answer about r: it has been given, or is not
// needed any more.
func (e *State) wake(r *request) {
	if len(r.dealings.hearers) > 0 {
		e.woken, r.dealings.hearers = append(e.woken, r.dealings.hearers...), nil
	}
}

// reportWoken sends the notifications. Each caller then resumes the lease, and the answer has
// its state.
func (e *Engine) reportWoken() {
	for _, h := range e.woken {
		eff := e.effect(h.caller, Refused)
		eff.Code, eff.Message = interlock.CodeParked, message.New(message.ParkAnswered)
	}
	clear(e.woken)
	e.woken = e.woken[:0]
}

// asksHuman reports whether the lease is parked and a person is to decide about it.
func (r *request) asksHuman() bool {
	return r.isParked() && r.dealings.parking.asks && r.dealings.decision == nil
}

// pauseParkings extends the parkings that ask a person by the period before a term in which no
// answer was possible, as pauseQuestions does.
func (s *namespace) pauseParkings(now Time, idle time.Duration) {
	for _, fence := range slices.Sorted(maps.Keys(s.aside)) {
		if p := s.aside[fence].dealings.parking; p.asks {
			p.until = p.until.Add(min(idle, now.Sub(p.since)))
		}
	}
}

// answerParked takes in a person's answer about a parked lease.
func (e *Engine) answerParked(c *Answer, by string) {
	r := e.parkedWith(c.Fence)
	if r == nil || !r.dealings.parking.asks {
		e.refuse(interlock.CodeNotAsking, message.New(message.LeaseAsksNobody, message.Num(c.Fence)))
		return
	}
	p, d := r.dealings.parking, r.dealings.decision
	switch {
	case d != nil && d.Verdict == c.Verdict && d.By == by && d.Principal == c.Actor:
		e.reply(Done).Question = e.question(r)
		return
	case d != nil:
		e.refuse(interlock.CodeNotAsking, message.New(message.LeaseAnswered, message.Str(d.Verdict.String()), message.Str(d.Answerer()))).Question = e.question(r)
		return
	case c.Actor != "" && (c.Actor == r.owner() || c.Actor == p.asker):
		e.refuse(interlock.CodeForbidden, message.New(message.OwnLease, message.Str(c.Actor))).Question = e.question(r)
		return
	}
	ev := e.event(record.Decided, r)
	ev.Fence, ev.Op, ev.Actor, ev.Agent, ev.Note = p.fence, uint8(c.Verdict), c.Actor, by, c.Reason
	e.tag(ev, Done)
	e.emit(ev)
	e.wake(r)
	e.reply(Done).Question = e.question(r)
}

// parkedWith returns the parked lease that had a fence, nil for none.
func (e *Engine) parkedWith(fence interlock.Fence) *request {
	if s := e.pendingWork.ns; s != nil {
		return s.aside[fence]
	}
	return nil
}

// evolveDecided folds a person's answer about a lease, which a snapshot may have of one that
// was resumed since.
func (r *request) evolveDecided(ev *record.Event) error {
	v := interlock.Verdict(ev.Op)
	if v != interlock.Approved && v != interlock.Denied || r.isOver() {
		return errUnknown
	}
	r.deal().decision = &interlock.Decision{Verdict: v, By: ev.Agent, Principal: ev.Actor, Reason: ev.Note}
	return nil
}

// putAside lists r among the leases that are put aside.
func (s *namespace) putAside(r *request) {
	if s.aside == nil {
		s.aside = map[interlock.Fence]*request{}
	}
	s.aside[r.dealings.parking.fence] = r
}

// question describes the question about a parked lease.
func (e *Engine) question(r *request) *LeaseQuestion {
	p := r.dealings.parking
	return &LeaseQuestion{
		Fence: p.fence, Question: p.reason, Agent: r.agentName(), Principal: p.asker, Purpose: r.purpose, Claims: r.claims(),
		Parking: *e.parking(r), Decision: r.dealings.decision,
	}
}

// LeaseQuestions lists the leases that are parked with an open question, the oldest first.
type LeaseQuestions struct {
	Namespace interlock.Namespace
	Limit     int // 0: 100, and at most 1000

	Rows []LeaseQuestion
	More bool // there are more than Limit

	found first[*request]
	next  int
}

func (l *LeaseQuestions) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.requests.Part, &l.next, (*request).asksHuman, byParking) {
		return false
	}
	for _, r := range l.found.list[:min(len(l.found.list), limit)] {
		l.Rows = append(l.Rows, *e.question(r))
	}
	l.More = len(l.found.list) > limit
	return true
}

func byParking(a, b *request) int {
	return cmp.Or(cmp.Compare(a.dealings.parking.since, b.dealings.parking.since), byNumber(a, b))
}
