package store

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// Conditions are the conditions on which a request was made, with every default filled in: a
// zero field means none. They never change; a request can be given others. Most requests
// have the same as many others, and share them.
type Conditions struct {
	NS *Namespace
	interlock.Terms
}

// RequestDetail are the parts of the terms that a request has for itself alone. They never change
// either.
type RequestDetail struct {
	Purpose    string
	Trace      string
	Window     Window // see asof.go
	Documents  bool   // its documents are handed over with it: see evidence.go
	Generation uint64 // of the barrier that it is a party of
	Task       *Task  // that it waits for, or is an attempt at
}

var (
	noTerms   = &Conditions{}
	NoDetails = &RequestDetail{}
)

// Agree returns terms that are t, in s: those that were given last time, unless something else
// was asked for in between that has the same place among the few that are kept.
func (s *Namespace) Agree(t interlock.Terms) *Conditions {
	h := collection.Mix(uint64(t.TTL) + uint64(t.Grace)<<16 + uint64(t.MaxHold)<<24 + uint64(t.MaxWait)<<32)
	kept := &s.agreed[h%uint32(len(s.agreed))]
	if *kept == nil || (*kept).Terms != t {
		*kept = &Conditions{s, t}
	}
	return *kept
}

// setTTL changes the ttl of a lease. The parts that it has as a member of a partitioned key have the
// same one.
func (r *Request) setTTL(ttl time.Duration) {
	t := r.Conditions.Terms
	t.TTL = ttl
	r.Conditions = r.NS.Agree(t)
	r.Session().adapt(ttl)
	m := r.Membership()
	if m == nil || m.Node.Divided == nil {
		return
	}
	for i := range m.Node.Divided.Parts {
		s := &m.Node.Divided.Parts[i]
		for _, part := range []*Request{s.Held, s.Next} {
			if part != nil && part.Share.Member == r {
				part.setTTL(ttl)
			}
		}
	}
}

// plain returns the terms without those that only concern a live lease.
func (t *Conditions) plain() *Conditions {
	plain := interlock.Terms{TTL: t.TTL, Grace: t.Grace}
	if t.Terms == plain {
		return t
	}
	return &Conditions{t.NS, plain}
}

// setTask sets the task that r belongs to, nil for none.
func (r *Request) setTask(t *Task) {
	if t != r.Task {
		d := *r.RequestDetail
		d.Task = t
		r.SetDetails(d)
	}
}

// SetDetails keeps d, unless there is nothing in it.
func (r *Request) SetDetails(d RequestDetail) {
	if r.RequestDetail = NoDetails; d != (RequestDetail{}) {
		kept := d
		r.RequestDetail = &kept
	}
}
