package engine

import (
	"time"

	"github.com/interlockdev/interlock"
)

// terms are the conditions on which a request was made. They never change; a request
// can be given others. Most requests have the same as many others, and share them.
type terms struct {
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
	generation uint64 // of the barrier that it is a party of
}

var (
	noTerms   = &terms{}
	noDetails = &details{}
)

// agree gives terms that are t: those that were given last time, unless something else
// was asked for in between that has the same place among the few that are kept.
func (e *Engine) agree(t terms) *terms {
	kept := &e.agreed[mix(uint64(t.ttl)+uint64(t.grace)<<16+uint64(t.maxHold)<<24+uint64(t.maxWait)<<32)%uint32(len(e.agreed))]
	if *kept == nil || **kept != t {
		fresh := t
		*kept = &fresh
	}
	return *kept
}

// plain gives those of the terms that are told of what is over.
func (t *terms) plain() *terms {
	if *t == (terms{ttl: t.ttl, grace: t.grace}) {
		return t
	}
	return &terms{ttl: t.ttl, grace: t.grace}
}

// setDetails keeps d, unless there is nothing in it.
func (r *request) setDetails(d details) {
	if r.details = noDetails; d != (details{}) {
		kept := d
		r.details = &kept
	}
}
