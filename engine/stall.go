package engine

import "github.com/interlockdev/interlock/engine/record"

// A lease with a stall term ends when its holder reports no progress for so long, however
// lively its heartbeats are: an agent that goes round in circles sends them, too. A report with
// a heartbeat counts for all leases of its session, one with a renewal for that one lease.
// Repeating the last report is no progress.

// progress is a holder's last report of its work, and the warnings that it got about its time.
// All of it is volatile.
type progress struct {
	text   string
	at     Time   // when it began to say so
	turn   uint64 // among all that was ever new, to tell what was said in one instant
	before uint64 // and of the report before it
	warned Time   // the begin of the stall term in which a lease was warned, plus one
	told   Time   // the beat since which a lease was warned of its ttl, plus one
}

// updateProgress takes in a text that is new.
func (e *Engine) updateProgress(p *progress, text string) {
	e.turns++
	p.text, p.at, p.turn, p.before = text, e.now, e.turns, p.turn
}

// report records a session's report of its work.
func (e *Engine) report(s *session, text string) {
	if text != "" && text != s.progress.text {
		e.updateProgress(&s.progress, text)
	}
}

// reportOf records a report of the holder of r about this lease alone.
func (e *Engine) reportOf(r *request, text string) {
	if said, _ := r.lastProgress(); text != "" && text != said {
		e.updateProgress(r.ownProgress(), text)
	}
}

func (r *request) ownProgress() *progress {
	if r.progress == nil {
		r.mutableExt().progress = &progress{}
	}
	return r.progress
}

// lastProgress returns the last report of r's holder on its work, here or for its whole
// session, and its time.
func (r *request) lastProgress() (text string, at Time) {
	var own, all progress
	if r.progress != nil {
		own = *r.progress
	}
	if s := r.session(); s != nil {
		all = s.progress
	}
	if own.turn > all.turn || own.turn > all.before && own.text == all.text { // its session said nothing new of it
		return own.text, own.at
	}
	return all.text, all.at
}

// stall is how long r may go without progress; 0 when it may do so for ever.
// stallSince is when r's stall term began: with the last progress, but not before
// the grant, nor before this owner's term, which knows of no earlier progress.
func (e *Engine) stallSince(r *request) Time {
	_, at := r.lastProgress()
	return max(at, r.granted, e.began)
}

// The deadlines of a lease that no heartbeat puts off: max_hold and stall. They
// have the request's own timer, so leases without them cost nothing.

// isTimed reports whether r has such a deadline.
func (r *request) isTimed() bool { return r.MaxHold > 0 || r.Stall > 0 }

// overdue returns the reason of a deadline that has passed, or 0.
func (e *Engine) overdue(r *request) record.Reason {
	switch {
	case r.MaxHold > 0 && e.now >= r.granted.Add(r.MaxHold):
		return record.ByMaxHold
	case r.Stall > 0 && e.now >= e.stallSince(r).Add(r.Stall):
		return record.ByStall
	}
	return 0
}

// timedEnd is the first of these deadlines, and timedSoft when the holder is
// warned of one; never when there is none.
func (e *Engine) timedEnd(r *request) Time {
	end := record.Never
	if d := r.MaxHold; d > 0 {
		end = r.granted.Add(d)
	}
	if d := r.Stall; d > 0 {
		end = min(end, e.stallSince(r).Add(d))
	}
	return end
}

func (e *Engine) timedSoft(r *request) Time {
	soft := record.Never
	if d := r.MaxHold; d > 0 {
		soft = r.granted.Add(softAt(d))
	}
	if d := r.Stall; d > 0 {
		soft = min(soft, e.stallSince(r).Add(softAt(d)))
	}
	return soft
}

// timedNext is when there is something to do about these deadlines: a warning
// that was not given yet, or an end.
func (e *Engine) timedNext(r *request) Time {
	next := e.timedEnd(r)
	if d := r.MaxHold; d > 0 && !r.warned {
		next = min(next, r.granted.Add(softAt(d)))
	}
	if d := r.Stall; d > 0 && !e.warnedOfStall(r) {
		next = min(next, e.stallSince(r).Add(softAt(d)))
	}
	return next
}

func (e *Engine) warnedOfStall(r *request) bool {
	return r.progress != nil && r.progress.warned == e.stallSince(r)+1
}

// warnTimed warns of each of these deadlines that comes near, once.
func (e *Engine) warnTimed(r *request) {
	due := false
	if d := r.MaxHold; d > 0 && !r.warned && e.now >= r.granted.Add(softAt(d)) {
		r.warned, due = true, true
	}
	if d := r.Stall; d > 0 && !e.warnedOfStall(r) && e.now >= e.stallSince(r).Add(softAt(d)) {
		r.ownProgress().warned, due = e.stallSince(r)+1, true
	}
	if due {
		e.warn(r)
	}
}
