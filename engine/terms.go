package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// terms are the conditions on which a request was made, with every default filled in: a
// zero field means none. They never change; a request can be given others. Most requests
// have the same as many others, and share them.
type terms struct {
	ns *namespace
	interlock.Terms
}

// requestDetail are the parts of the terms that a request has for itself alone. They never change
// either.
type requestDetail struct {
	purpose    string
	trace      string
	window     window // see asof.go
	documents  bool   // its documents are handed over with it: see evidence.go
	generation uint64 // of the barrier that it is a party of
	task       *task  // that it waits for, or is an attempt at
}

var (
	noTerms   = &terms{}
	noDetails = &requestDetail{}
)

// agree returns terms that are t, in s: those that were given last time, unless something else
// was asked for in between that has the same place among the few that are kept.
func (s *namespace) agree(t interlock.Terms) *terms {
	h := collection.Mix(uint64(t.TTL) + uint64(t.Grace)<<16 + uint64(t.MaxHold)<<24 + uint64(t.MaxWait)<<32)
	kept := &s.agreed[h%uint32(len(s.agreed))]
	if *kept == nil || (*kept).Terms != t {
		*kept = &terms{s, t}
	}
	return *kept
}

// plain returns the terms without those that only concern a live lease.
func (t *terms) plain() *terms {
	plain := interlock.Terms{TTL: t.TTL, Grace: t.Grace}
	if t.Terms == plain {
		return t
	}
	return &terms{t.ns, plain}
}

// setTask sets the task that r belongs to, nil for none.
func (r *request) setTask(t *task) {
	if t != r.task {
		d := *r.requestDetail
		d.task = t
		r.setDetails(d)
	}
}

// setDetails keeps d, unless there is nothing in it.
func (r *request) setDetails(d requestDetail) {
	if r.requestDetail = noDetails; d != (requestDetail{}) {
		kept := d
		r.requestDetail = &kept
	}
}
