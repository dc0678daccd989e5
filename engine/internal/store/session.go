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

// Note sets what the next heartbeat reports of r, in place of an earlier report.
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
	Owner    string // the principal that opened it
	Name     string // public
	TTL      time.Duration
	Opened   Time
	Flows    collection.Table[*FlowState]
	Waiting  []*FlowState // the flows that wait, in the order of their names
	Attempts []*Request   // the attempts at tasks among its leases, in the order of their numbers
	Awaiting []*Request   // declared waits for it, in no order
	Work     int          // leases and waits
	Dead     bool         // over; it stays until its last lease and wait have ended
	Why      record.Reason
	Seqs     seqWindow
	IDs      IDWindow

	// Volatile.
	Renewed  Time
	Progress Progress
	MinTTL   time.Duration // at most the smallest ttl of its leases
	Timer    Timer
	Caller   Caller
	Link     uint64
	Losses   []Loss
	Pulls    collection.List[*Pull]
	Follows  collection.List[*Follower]
	Timed    int  // leases with a max_hold or a stall
	TimedAt  Time // not after the first of them is in its soft tier for it
	// flows that had nothing when they entered: first those that entered first
	resting                    collection.Queue[*FlowState]
	Spared                     bool     // not heard of since Recover
	SameAgent, sameAgentBefore *Session // in the list of its agent's in space.roll
	Detachments                []*Detachment
	Dying                      bool   // stands in agenda.dying
	Sweeping                   Sweep  // then: the flows with waits to end, and later its leases
	WaitsSwept                 bool   // its waits have ended
	Aging                      *Sweep // sessions to check for their ends, while that takes several steps
	Next                       Time   // of those looked at so far: what comes next, and
	Least                      time.Duration
	Softly                     Sweep // of the leases that a heartbeat looks at
	SoftAt                     Time  // the first of those looked at so far that is timed
}

// publicName derives what others may see of a session from its secret id.
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
