package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// expire fires the timers that are due by now, as many as one step may.
func (e *Engine) expire() {
	for {
		t := e.timers.first()
		if t == nil || t.at > e.now || e.full() {
			return
		}
		e.fire(t)
	}
}

// fire carries out the due work of a timer, and rearms it.
func (e *Engine) fire(t *timer) {
	e.timers.clear(t)
	switch {
	case t.sess != nil:
		e.fireSession(t.sess)
	case t.pool != nil:
		e.firePool(t.pool)
	case t.task != nil:
		e.fireTask(t.task)
	default:
		e.fireRequest(t.req)
	}
}

// fireSession warns of a session's leases or ends them when their holder was not
// heard of for so long, and ends the session when its own ttl has passed.
func (e *Engine) fireSession(s *session) {
	if s.dead {
		return
	}
	if e.now >= s.end() {
		e.endSession(s, record.ByDeath)
		return
	}
	if s.aging == nil {
		if soft := s.renewed.Add(softAt(s.minTTL)); e.now < soft {
			e.timers.set(&s.timer, soft)
			return
		}
		s.aging, s.least, s.next = &sweep{}, s.ttl, record.Never
	}
	next := min(s.next, s.end())
	if soft := s.renewed.Add(softAt(s.ttl)); e.now < soft {
		next = min(next, soft)
	}
	for {
		if e.full() { // the rest is due at once
			s.next = next
			e.timers.set(&s.timer, e.now)
			return
		}
		r, done := e.nextLease(s.aging, s)
		if done {
			break
		}
		if r == nil {
			continue
		}
		s.aging.passed()
		if r.phase != held || r.share != nil {
			continue
		}
		beat := r.beat()
		soft, end := beat.Add(softAt(r.TTL)), r.ttlEnd()
		if e.now < end {
			s.least = min(s.least, r.TTL)
		}
		switch {
		case e.now >= end:
			e.hard(r, record.ByTTL)
		case e.now >= soft:
			if p := r.ownProgress(); p.told != beat+1 {
				p.told = beat + 1
				e.warn(r)
			}
			next = min(next, end)
		default:
			next = min(next, soft)
		}
	}
	s.minTTL, s.aging = s.least, nil
	if s.work > crowded { // not for each of very many by itself
		next = max(next, e.now.Add(time.Duration(s.work)*10*time.Microsecond))
	}
	e.timers.set(&s.timer, max(next, e.now+1))
}

// crowded is how many leases and waits a session may have before the ends of its
// leases are gathered: each may then be up to 10 us late for each of them.
const crowded = 1000

// fireRequest carries out a request's due timer.
func (e *Engine) fireRequest(r *request) {
	switch r.phase {
	case waiting:
		if r.isBare() && e.now >= r.renewed.Add(interlock.BareTicketTTL) {
			e.leaveLine(r, record.ByLapse)
			return
		}
		if e.now >= r.waitEnd() {
			why := record.ByWaitLimit
			if r.isToStart() {
				why = record.ByFull
			}
			e.leaveLine(r, why)
			return
		}
	case offered:
		if e.now >= e.endOf(r) {
			e.end(r, record.ByLapse)
			return
		}
	case parked, away:
		if e.now >= r.keptUntil() {
			e.end(r, record.ByMaxHold)
			return
		}
		if e.now >= e.endOf(r) {
			e.end(r, record.ByParking)
			return
		}
	case inGrace, closed:
		if e.now >= e.endOf(r) {
			e.end(r, r.reason)
			return
		}
	case held:
		why := e.overdue(r)
		if why == 0 && r.session() == nil && e.now >= r.ttlEnd() {
			why = record.ByTTL
		}
		if why != 0 {
			e.hard(r, why)
			return
		}
		e.warnTimed(r)
	case over:
		return
	}
	e.arm(r)
}

// arm sets r's timer to the next deadline of its phase. Leases of a session that have no other
// deadline live by the session's timer.
func (e *Engine) arm(r *request) {
	at := record.Never
	switch r.phase {
	case waiting:
		at = r.waitEnd()
		if r.isBare() {
			at = min(at, r.renewed.Add(interlock.BareTicketTTL))
		}
	case offered, inGrace, parked, away, closed:
		at = e.endOf(r)
	case held:
		if sess := r.session(); sess == nil {
			at = r.ttlEnd()
		} else if r.share == nil {
			e.minTerm(sess, r)
		}
		if r.isTimed() {
			if s := r.session(); s != nil {
				if soft := e.timedSoft(r); s.timed == 1 || soft < s.timedAt {
					s.timedAt = soft
				}
			}
			at = min(at, e.timedNext(r))
		}
	}
	if at == record.Never {
		e.timers.clear(r.timer)
		return
	}
	if r.timer == nil {
		r.mutableExt().timer = &timer{pos: -1, ord: r.num << 1, req: r}
	}
	e.timers.set(r.timer, at)
}

// hard passes the hard end of a lease: into grace, or to its end.
func (e *Engine) hard(r *request, why record.Reason) {
	if r.Grace == 0 {
		e.end(r, why)
		return
	}
	ev := e.event(record.Grace, r)
	ev.Fence, ev.Reason, ev.Grace, ev.Held = r.fence, why, r.Grace, e.now.Sub(r.granted)
	if why == record.ByPreemption {
		ev.Actor, ev.Asker = r.preemptor()
	}
	e.emit(ev)
	e.arm(r)
	if s := r.session(); s != nil {
		e.lost(s, r, e.lease(r))
	}
}

// warn tells a session that a lease is in its soft tier.
func (e *Engine) warn(r *request) {
	if s := r.session(); s != nil && s.caller != nil {
		e.effect(s.caller, Warned).Lease = e.lease(r)
	}
}

// isBare reports whether only polls of its ticket keep r, which waits, alive.
func (r *request) isBare() bool { return r.session() == nil && r.wait.caller == nil && r.share == nil }

// offerTTL is how long an offer stays open.
func (r *request) offerTTL() time.Duration {
	if r.session() != nil {
		return interlock.OfferTTL
	}
	return interlock.BareOfferTTL
}

// waitEnd is when r must leave the line, never when it may wait for ever.
func (r *request) waitEnd() Time {
	if r.MaxWait == 0 {
		return record.Never
	}
	return r.arrived().Add(r.MaxWait)
}

// leaveLine ends a wait against its waiter's will, and notifies its listener.
func (e *Engine) leaveLine(r *request, why record.Reason) {
	e.giveUp(r, e.leaving(r, why))
}
