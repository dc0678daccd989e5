package store

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/record"
)

// End is when the session ends if nothing is heard of it.
func (s *Session) End() Time {
	end := s.Renewed.Add(s.TTL)
	if s.Spared {
		end = end.Add(spread(s.Num, s.TTL))
	}
	return end
}

// LeaseTTL is the ttl of a lease of s, or of none, that neither its request nor a pattern names.
func (s *Session) LeaseTTL() time.Duration {
	if s == nil || s.Adapts {
		return interlock.DefaultTTL
	}
	return s.TTL
}

// Cap returns ttl, or what a lease of s, or of none, can have of it: it ends with its session at the latest.
func (s *Session) Cap(ttl time.Duration) time.Duration {
	if s == nil || s.Adapts {
		return ttl
	}
	return min(ttl, s.TTL)
}

// adapt lets the session live as long as a lease of it, or a request for one, that has this ttl.
func (s *Session) adapt(ttl time.Duration) {
	if s != nil && s.Adapts {
		s.TTL = max(s.TTL, ttl)
	}
}

// Detachment is a connection that has ended with very many attached waits of a session: they
// are detached over several steps. Until then request.listener treats them as unattended.
type Detachment struct {
	Link  uint64
	Until uint64 // Engine.listens when it ended: later waits are attached over its successor
	Lines Sweep
	Left  int // waits of a large flow that are left
}

// isParting reports whether the caller of a wait began to listen over a connection that has
// ended since.
func (s *Session) isParting(w *Wait) bool {
	return s != nil && slices.ContainsFunc(s.Detachments, func(x *Detachment) bool { return x.Has(w) })
}

func (x *Detachment) Has(w *Wait) bool { return w.Link == x.Link && w.Since <= x.Until }

// IdleFlows is how many flows a session keeps that have neither a lease nor a wait.
const IdleFlows = 1024

// rest notes that a flow has nothing, for dropIdleFlows.
func (s *Session) rest(f *FlowState) {
	if !f.resting {
		f.resting = true
		s.resting.Push(f)
	}
}

// dropIdleFlows forgets empty flows, if there are many. Each new flow checks two of them, so
// their number does not grow however many names an agent uses.
func (s *Session) dropIdleFlows() {
	for range 2 {
		if s.resting.Len() < IdleFlows {
			return
		}
		f := s.resting.Pop()
		f.resting = false
		if f.isIdle() {
			s.Flows.Remove(f)
		}
	}
}

// Note sets the next heartbeat's report of r, in place of an earlier report.
func (s *Session) Note(r *Request, l Loss) {
	switch i := s.noted(r); {
	case i >= 0:
		s.Losses[i] = l
	case len(s.Losses) < MaxLosses:
		r.Listed = true
		s.Losses = append(s.Losses, l)
	}
}

// noted returns the index of the next heartbeat's report of r, -1 for nothing.
func (s *Session) noted(r *Request) int {
	if !r.Listed {
		return -1
	}
	return slices.IndexFunc(s.Losses, func(l Loss) bool { return l.Lease.ID == r.ID })
}

// MaxLosses bounds what a session that sends no heartbeat can make us keep.
const MaxLosses = 1024

// endedSession is the record of a session that is over.
type endedSession struct {
	ID  interlock.SessionID
	Why record.Reason
}

// Session is one live process or conversation.
type Session struct {
	Num      uint64
	ID       interlock.SessionID
	NS       *Namespace
	Agent    string
	Owner    string                       // the principal that opened it
	Name     string                       // public
	Place    collection.Element[*Session] // in Namespace.Roster
	TTL      time.Duration
	Adapts   bool // no ttl was asked for: TTL becomes that of its leases, if they have a longer one
	Opened   Time
	Flows    collection.Table[*FlowState]
	Waiting  []*FlowState  // the flows that wait, in the order of their names
	Attempts []*Request    // the attempts at tasks among its leases, in the order of their numbers
	Awaiting []*Request    // declared waits for it, in no order
	Work     int           // leases and waits
	Dead     bool          // it has ended; it stays until its last lease and wait have ended
	Why      record.Reason // of its end, if Dead
	Seqs     seqWindow
	IDs      IDWindow

	// Volatile.
	Renewed  Time
	Progress Progress
	MinTTL   time.Duration // not above the smallest TTL of its leases
	Timer    Timer
	Caller   Caller
	Link     uint64
	Losses   []Loss
	Pulls    collection.List[*Pull]
	Follows  collection.List[*Follower]
	Timed    int  // leases with a max_hold or a stall
	TimedAt  Time // not after the first of the Timed leases reaches its soft tier
	// resting has flows that had no leases or waits when they entered, the oldest entry first.
	resting                    collection.Queue[*FlowState]
	Spared                     bool     // no heartbeat since Recover
	LeftOut                    bool     // a list of known leases has left some out
	SameAgent, sameAgentBefore *Session // neighbours in the list of its agent's sessions in Namespace.Roll
	Detachments                []*Detachment
	Dying                      bool          // it is in PendingWork.Dying
	Sweeping                   Sweep         // if Dying: over the flows with waits to end, then over its leases
	WaitsSwept                 bool          // if Dying: its waits have ended
	Aging                      *Sweep        // over its leases, for their ends; nil unless that takes several steps
	Next                       Time          // if Aging: the first deadline of the leases checked so far
	Least                      time.Duration // if Aging: the smallest TTL of the leases checked so far
	Softly                     Sweep         // over its leases, by its heartbeats
	SoftAt                     Time          // the first soft tier of the leases that Softly has checked so far
}

// publicName derives the public name of a session from its secret id.
func publicName(id interlock.SessionID) string {
	sum := sha256.Sum256(id[:])
	return "s-" + hex.EncodeToString(sum[:6])
}

// joined and parted keep what the session counts of its leases.
func (s *Session) joined(r *Request) {
	if r.IsTimed() {
		s.Timed++
	}
	if r.Task != nil {
		s.worksAt(r)
	}
}

func (s *Session) parted(r *Request) {
	if r.IsTimed() {
		s.Timed--
	}
	if i, found := slices.BinarySearchFunc(s.Attempts, r, ByNumber); found {
		s.Attempts = slices.Delete(s.Attempts, i, i+1)
	}
}

// worksAt adds an attempt at a task, once.
func (s *Session) worksAt(r *Request) {
	if i, found := slices.BinarySearchFunc(s.Attempts, r, ByNumber); !found {
		s.Attempts = slices.Insert(s.Attempts, i, r)
	}
}
