package store

import (
	"time"

	"github.com/interlockdev/interlock/engine/record"
)

// A lease with a stall term ends when its holder reports no progress for so long, however
// lively its heartbeats are: an agent that goes round in circles sends them, too. A report with
// a heartbeat counts for all leases of its session, one with a renewal for that one lease.
// Repeating the last report is no progress.

// StallSince returns when r's stall term began: with the last progress, but not before the grant, nor
// before this owner's term, because earlier progress is unknown to it.
func (r *Request) StallSince() Time {
	_, at := r.LastProgress()
	return max(at, r.Granted, r.NS.Agenda.began)
}

// Overdue returns the reason of a deadline that has passed, or 0.
func (r *Request) Overdue() record.Reason {
	switch {
	case r.MaxHold > 0 && r.NS.Now() >= r.Granted.Add(r.MaxHold):
		return record.ByMaxHold
	case r.Stall > 0 && r.NS.Now() >= r.StallSince().Add(r.Stall):
		return record.ByStall
	}
	return 0
}

// timedEnd is the first of these deadlines, and timedSoft when the holder is
// warned of one; never when there is none.
func (r *Request) timedEnd() Time {
	end := record.Never
	if d := r.MaxHold; d > 0 {
		end = r.Granted.Add(d)
	}
	if d := r.Stall; d > 0 {
		end = min(end, r.StallSince().Add(d))
	}
	return end
}

func (r *Request) TimedSoft() Time {
	soft := record.Never
	if d := r.MaxHold; d > 0 {
		soft = r.Granted.Add(SoftAt(d))
	}
	if d := r.Stall; d > 0 {
		soft = min(soft, r.StallSince().Add(SoftAt(d)))
	}
	return soft
}

// TimedNext is when there is something to do about these deadlines: a warning
// that was not given yet, or an end.
func (r *Request) TimedNext() Time {
	next := r.timedEnd()
	if d := r.MaxHold; d > 0 && !r.Warned {
		next = min(next, r.Granted.Add(SoftAt(d)))
	}
	if d := r.Stall; d > 0 && !r.WarnedOfStall() {
		next = min(next, r.StallSince().Add(SoftAt(d)))
	}
	return next
}

func (r *Request) WarnedOfStall() bool {
	return r.Progress != nil && r.Progress.Warned == r.StallSince()+1
}

// Report records a session's report of its work.
func (s *Session) Report(text string) {
	if text != "" && text != s.Progress.Text {
		s.Progress.update(text, s.NS)
	}
}

// Report records a report of the holder of r about this lease alone.
func (r *Request) Report(text string) {
	if said, _ := r.LastProgress(); text != "" && text != said {
		r.OwnProgress().update(text, r.NS)
	}
}

// update records a text that is new.
func (p *Progress) update(text string, s *Namespace) {
	s.turns++
	p.Text, p.At, p.Turn, p.Before = text, s.Now(), s.turns, p.Turn
}

// SoftAt returns the part of a term after which its holder is warned.
func SoftAt(term time.Duration) time.Duration { return term / 3 * 2 }
