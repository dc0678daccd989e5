package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// expire fires the timers that are due by now, as many as one step may.
func (e *Engine) expire() {
	for {
		t := e.Timers.First()
		if t == nil || t.At > e.Clock || e.full() {
			return
		}
		e.fire(t)
	}
}

// fire carries out the due work of a timer, and rearms it.
func (e *Engine) fire(t *store.Timer) {
	e.Timers.Clear(t)
	switch {
	case t.Sess != nil:
		e.fireSession(t.Sess)
	case t.Pool != nil:
		e.FirePool(t.Pool)
	case t.Task != nil:
		e.fireTask(t.Task)
	default:
		e.fireRequest(t.Req)
	}
}

// fireSession warns of a session's leases or ends them when their holder was not
// heard of for so long, and ends the session when its own ttl has passed.
func (e *Engine) fireSession(s *store.Session) {
	if s.Dead {
		return
	}
	if e.Clock >= s.End() {
		e.endSession(s, record.ByDeath)
		return
	}
	if s.Aging == nil {
		if soft := s.Renewed.Add(store.SoftAt(s.MinTTL)); e.Clock < soft {
			e.Timers.Set(&s.Timer, soft)
			return
		}
		s.Aging, s.Least, s.Next = &store.Sweep{}, s.TTL, record.Never
	}
	next := min(s.Next, s.End())
	if soft := s.Renewed.Add(store.SoftAt(s.TTL)); e.Clock < soft {
		next = min(next, soft)
	}
	for {
		if e.full() { // the rest is due at once
			s.Next = next
			e.Timers.Set(&s.Timer, e.Clock)
			return
		}
		r, done := e.nextLease(s.Aging, s)
		if done {
			break
		}
		if r == nil {
			continue
		}
		s.Aging.Passed()
		if r.Phase != store.Held || r.Share != nil {
			continue
		}
		beat := r.Beat()
		soft, end := beat.Add(store.SoftAt(r.TTL)), r.TtlEnd()
		if e.Clock < end {
			s.Least = min(s.Least, r.TTL)
		}
		switch {
		case e.Clock >= end:
			e.hard(r, r.TtlReason())
		case e.Clock >= soft:
			if p := r.OwnProgress(); p.Told != beat+1 && !r.Unknown {
				p.Told = beat + 1
				e.warn(r)
			}
			next = min(next, end)
		default:
			next = min(next, soft)
		}
	}
	s.MinTTL, s.Aging = s.Least, nil
	if s.Work > crowded { // not for each of very many by itself
		next = max(next, e.Clock.Add(time.Duration(s.Work)*10*time.Microsecond))
	}
	e.Timers.Set(&s.Timer, max(next, e.Clock+1))
}

// crowded is how many leases and waits a session may have before the ends of its
// leases are gathered: each may then be up to 10 us late for each of them.
const crowded = 1000

// fireRequest carries out a request's due timer.
func (e *Engine) fireRequest(r *store.Request) {
	switch r.Phase {
	case store.Waiting:
		if r.IsBare() && e.Clock >= r.Renewed.Add(interlock.BareTicketTTL) {
			e.leaveLine(r, record.ByLapse)
			return
		}
		if e.Clock >= r.WaitEnd() {
			why := record.ByWaitLimit
			if r.IsToStart() {
				why = record.ByFull
			}
			e.leaveLine(r, why)
			return
		}
	case store.Offered:
		if e.Clock >= r.PhaseEnd() {
			e.end(r, record.ByLapse)
			return
		}
	case store.Parked, store.Away:
		if e.Clock >= r.KeptUntil() {
			e.end(r, record.ByMaxHold)
			return
		}
		if e.Clock >= r.PhaseEnd() {
			e.end(r, record.ByParking)
			return
		}
	case store.InGrace, store.Closed:
		if e.Clock >= r.PhaseEnd() {
			e.end(r, r.Reason)
			return
		}
	case store.Held:
		why := r.Overdue()
		if why == 0 && !r.LivesBySession() && e.Clock >= r.TtlEnd() {
			why = r.TtlReason()
		}
		if why != 0 {
			e.hard(r, why)
			return
		}
		e.warnTimed(r)
	case store.Over:
		return
	}
	e.Arm(r)
}

// hard passes the hard end of a lease: into grace, or to its end.
func (e *Engine) hard(r *store.Request, why record.Reason) {
	if r.Grace == 0 {
		e.end(r, why)
		return
	}
	ev := e.event(record.Grace, r)
	ev.Fence, ev.Reason, ev.Grace, ev.Held = r.Fence, why, r.Grace, e.Clock.Sub(r.Granted)
	if why == record.ByPreemption {
		ev.Actor, ev.Asker = r.Preemptor()
	}
	e.emit(ev)
	e.Arm(r)
	if s := r.Session(); s != nil {
		e.lost(s, r, r.Lease())
	}
}

// warn tells a session that a lease is in its soft tier.
func (e *Engine) warn(r *store.Request) {
	if s := r.Session(); s != nil && s.Caller != nil {
		e.effect(s.Caller, Warned).Lease = r.Lease()
	}
}

// leaveLine ends a wait against its waiter's will, and notifies its listener.
func (e *Engine) leaveLine(r *store.Request, why record.Reason) {
	e.giveUp(r, e.leaving(r, why))
}

// warnTimed warns of each of these deadlines that comes near, once.
func (e *Engine) warnTimed(r *store.Request) {
	due := false
	if d := r.MaxHold; d > 0 && !r.Warned && e.Clock >= r.Granted.Add(store.SoftAt(d)) {
		r.Warned, due = true, true
	}
	if d := r.Stall; d > 0 && !r.WarnedOfStall() && e.Clock >= r.StallSince().Add(store.SoftAt(d)) {
		r.OwnProgress().Warned, due = r.StallSince()+1, true
	}
	if due {
		e.warn(r)
	}
}
