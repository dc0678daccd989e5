package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
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

// asksBy returns record.Event.Op of a parking for a reason.
func asksBy(reason string) uint8 {
	if reason == "" {
		return 0
	}
	return store.AsksPerson
}

// maxHearers bounds how many wait for the answer about one lease. The longest waiting leaves
// first: it may be gone.
const maxHearers = 16

// awaitsAnswer keeps a resumption waiting, or refuses it, if the lease asks a person and is not
// approved, and reports whether it did.
func (c *Resume) awaitsAnswer(e *Engine, r *store.Request) bool {
	p, d := r.Rare.Parking, r.Rare.Decision
	switch {
	case !p.Asks || c.Unapproved || d != nil && d.Verdict == interlock.Approved:
		return false
	case d != nil:
		eff := e.refuse(
			interlock.CodeDenied, message.New(message.ParkDenied, message.Str(r.FirstKey()), message.Str(d.Answerer())),
		)
		eff.Lease, eff.Conflict = r.Lease(), &store.Conflict{Conflict: interlock.Conflict{Key: r.FirstKey()}}
	case !c.Attach || c.OnConflict != interlock.Wait && c.OnConflict != interlock.Preempt:
		r.StopListening(c.Link)
		e.refuseParked(r)
	default:
		if list := r.Rare.Listeners; len(list) == maxHearers {
			eff := e.effect(list[0].Caller, Refused)
			eff.Code, eff.Message = interlock.CodeTooManyWaiters, message.New(message.HearersAtLimit, message.Num(maxHearers))
			r.Rare.Listeners = list[1:]
		}
		eff := e.reply(Queued)
		eff.Ticket.ID, eff.Question = interlock.TicketID(r.ID), questionOf(r)
		r.Rare.Listeners = append(slices.Clip(r.Rare.Listeners), store.AnswerListener{Caller: e.head.From, Link: c.Link})
	}
	return true
}

// reportWoken sends the notifications. Each caller then resumes the lease, and the answer has
// its state.
func (e *Engine) reportWoken() {
	for _, h := range e.Woken {
		eff := e.effect(h.Caller, Refused)
		eff.Code, eff.Message = interlock.CodeParked, message.New(message.ParkAnswered)
	}
	clear(e.Woken)
	e.Woken = e.Woken[:0]
}

// answerLease decides a person's answer about a parked lease.
func (c *Answer) answerLease(e *Engine, by string) {
	r := e.parkedWith(c.Fence)
	if r == nil || !r.Rare.Parking.Asks {
		e.refuse(interlock.CodeNotAsking, message.New(message.LeaseAsksNobody, message.Num(c.Fence)))
		return
	}
	p, d := r.Rare.Parking, r.Rare.Decision
	switch {
	case d != nil && d.Verdict == c.Verdict && d.By == by && d.Principal == c.Actor:
		e.reply(Done).Question = questionOf(r)
		return
	case d != nil:
		e.refuse(
			interlock.CodeNotAsking,
			message.New(message.LeaseAnswered, message.Str(d.Verdict.String()), message.Str(d.Answerer())),
		).Question = questionOf(r)
		return
	}
	principals, no := r.NS.ActsFor(c.Actor, c.Principal)
	if no != nil {
		e.refuse(no.Code, no.Message).Question = questionOf(r)
		return
	}
	for _, name := range principals {
		if name != "" && (name == r.Owner() || name == p.Asker) {
			e.refuse(interlock.CodeForbidden, message.New(message.OwnLease, message.Str(name))).Question = questionOf(r)
			return
		}
	}
	ev := e.event(record.Decided, r)
	ev.Fence, ev.Op, ev.Actor, ev.Agent, ev.Note = p.Fence, uint8(c.Verdict), c.Actor, by, c.Reason
	e.tag(ev, Done)
	e.emit(ev)
	e.Wake(r)
	e.reply(Done).Question = questionOf(r)
}

// parkedWith returns the parked lease that had a fence, nil for none.
func (e *Engine) parkedWith(fence interlock.Fence) *store.Request {
	if s := e.PendingWork.NS; s != nil {
		return s.Aside[fence]
	}
	return nil
}

// questionOf describes the question about a parked lease.
func questionOf(r *store.Request) *LeaseQuestion {
	p := r.Rare.Parking
	return &LeaseQuestion{
		Fence: p.Fence, Question: p.Reason, Agent: r.AgentName(), Principal: p.Asker, Purpose: r.Purpose, Claims: r.Claims(),
		Parking: *r.ParkStatus(), Decision: r.Rare.Decision,
	}
}

// LeaseQuestion returns the question about the parked lease that had a fence, nil if none is asked.
func (e *Engine) LeaseQuestion(ns interlock.Namespace, fence interlock.Fence) *LeaseQuestion {
	s := e.turnTo(ns)
	if s == nil || s.Aside[fence] == nil || !s.Aside[fence].Rare.Parking.Asks {
		return nil
	}
	return questionOf(s.Aside[fence])
}

// LeaseQuestions lists the leases that are parked with an open question, the oldest first.
type LeaseQuestions struct {
	Namespace interlock.Namespace
	Limit     int // 0: 100, and at most 1000

	Rows []LeaseQuestion
	More bool // there are more than Limit

	found first[*store.Request]
	next  int
}

func (l *LeaseQuestions) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.Requests.Part, &l.next, (*store.Request).AsksHuman, byParking) {
		return false
	}
	for _, r := range l.found.list[:min(len(l.found.list), limit)] {
		l.Rows = append(l.Rows, *questionOf(r))
	}
	l.More = len(l.found.list) > limit
	return true
}

func byParking(a, b *store.Request) int {
	return cmp.Or(cmp.Compare(a.Rare.Parking.Since, b.Rare.Parking.Since), store.ByNumber(a, b))
}
