package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// A lease with a stall term ends when its holder reports no progress for so long, however
// lively its heartbeats are: an agent that goes round in circles sends them, too. A report with
// a heartbeat counts for all leases of its session, one with a renewal for that one lease.
// Repeating the last report is no progress.

// updateProgress takes in a text that is new.
func (e *Engine) updateProgress(p *store.Progress, text string) {
	e.turns++
	p.Text, p.At, p.Turn, p.Before = text, e.Clock, e.turns, p.Turn
}

// report records a session's report of its work.
func (e *Engine) report(s *store.Session, text string) {
	if text != "" && text != s.Progress.Text {
		e.updateProgress(&s.Progress, text)
	}
}

// reportOf records a report of the holder of r about this lease alone.
func (e *Engine) reportOf(r *store.Request, text string) {
	if said, _ := r.LastProgress(); text != "" && text != said {
		e.updateProgress(r.OwnProgress(), text)
	}
}

// stall is how long r may go without progress; 0 when it may do so for ever.
// stallSince is when r's stall term began: with the last progress, but not before
// the grant, nor before this owner's term, which knows of no earlier progress.
func (e *Engine) stallSince(r *store.Request) store.Time {
	_, at := r.LastProgress()
	return max(at, r.Granted, e.began)
}

// overdue returns the reason of a deadline that has passed, or 0.
func (e *Engine) overdue(r *store.Request) record.Reason {
	switch {
	case r.MaxHold > 0 && e.Clock >= r.Granted.Add(r.MaxHold):
		return record.ByMaxHold
	case r.Stall > 0 && e.Clock >= e.stallSince(r).Add(r.Stall):
		return record.ByStall
	}
	return 0
}

// timedEnd is the first of these deadlines, and timedSoft when the holder is
// warned of one; never when there is none.
func (e *Engine) timedEnd(r *store.Request) store.Time {
	end := record.Never
	if d := r.MaxHold; d > 0 {
		end = r.Granted.Add(d)
	}
	if d := r.Stall; d > 0 {
		end = min(end, e.stallSince(r).Add(d))
	}
	return end
}

func (e *Engine) timedSoft(r *store.Request) store.Time {
	soft := record.Never
	if d := r.MaxHold; d > 0 {
		soft = r.Granted.Add(softAt(d))
	}
	if d := r.Stall; d > 0 {
		soft = min(soft, e.stallSince(r).Add(softAt(d)))
	}
	return soft
}

// timedNext is when there is something to do about these deadlines: a warning
// that was not given yet, or an end.
func (e *Engine) timedNext(r *store.Request) store.Time {
	next := e.timedEnd(r)
	if d := r.MaxHold; d > 0 && !r.Warned {
		next = min(next, r.Granted.Add(softAt(d)))
	}
	if d := r.Stall; d > 0 && !e.warnedOfStall(r) {
		next = min(next, e.stallSince(r).Add(softAt(d)))
	}
	return next
}

func (e *Engine) warnedOfStall(r *store.Request) bool {
	return r.Progress != nil && r.Progress.Warned == e.stallSince(r)+1
}

// warnTimed warns of each of these deadlines that comes near, once.
func (e *Engine) warnTimed(r *store.Request) {
	due := false
	if d := r.MaxHold; d > 0 && !r.Warned && e.Clock >= r.Granted.Add(softAt(d)) {
		r.Warned, due = true, true
	}
	if d := r.Stall; d > 0 && !e.warnedOfStall(r) && e.Clock >= e.stallSince(r).Add(softAt(d)) {
		r.OwnProgress().Warned, due = e.stallSince(r)+1, true
	}
	if due {
		e.warn(r)
	}
}
