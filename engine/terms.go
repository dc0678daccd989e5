package engine

import (
	"time"

	"github.com/interlockdev/interlock"
)

// terms are the conditions on which a request was made. They never change; a request
// can be given others. Most requests have the same as many others, and share them.
type terms struct {
	space      *space
	ttl, grace time.Duration
	maxHold    time.Duration // how long it may be held in all; 0 when it may be for ever
	stall      time.Duration // how long it may be held without progress; 0 when it may be for ever
	lockDelay  time.Duration
	maxWait    time.Duration
	group      string // claimant group
	division   interlock.Division
}

// details are what a request has for itself alone. They never change either.
type details struct {
	purpose    string
	trace      string
	window     window // see asof.go
	documents  bool   // its documents are handed over with it: see evidence.go
	generation uint64 // of the barrier that it is a party of
	task       *task  // that it waits for, or is an attempt at
}

var (
	noTerms   = &terms{}
	noDetails = &details{}
)

// agree gives terms that are t, in s: those that were given last time, unless something else
// was asked for in between that has the same place among the few that are kept.
func (s *space) agree(t terms) *terms {
	t.space = s
	kept := &s.agreed[mix(uint64(t.ttl)+uint64(t.grace)<<16+uint64(t.maxHold)<<24+uint64(t.maxWait)<<32)%uint32(len(s.agreed))]
	if *kept == nil || **kept != t {
		fresh := t
		*kept = &fresh
	}
	return *kept
}

// plain gives those of the terms that are told of what is over.
func (t *terms) plain() *terms {
	if *t == (terms{space: t.space, ttl: t.ttl, grace: t.grace}) {
		return t
	}
	return &terms{space: t.space, ttl: t.ttl, grace: t.grace}
}

// setTask has r be of a task, or of none.
func (r *request) setTask(t *task) {
	if t != r.task {
		d := *r.details
		d.task = t
		r.setDetails(d)
	}
}

// setDetails keeps d, unless there is nothing in it.
func (r *request) setDetails(d details) {
	if r.details = noDetails; d != (details{}) {
		kept := d
		r.details = &kept
	}
}
