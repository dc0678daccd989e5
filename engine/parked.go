package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
)

// ParkedAt is the place of a parked lease among the others of its namespace.
type ParkedAt struct {
	Time Time
	Num  uint64 // of its request; the earlier asked come first
}

func (a ParkedAt) compare(b ParkedAt) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Num, b.Num))
}

// ParkedRow is a parked lease as others see it. It has no id, since any caller with the id
// could resume the lease.
type ParkedRow struct {
	Agent, Flow string
	Purpose     string // the holder's text
	Claims      []interlock.Claim
	Fence       interlock.Fence // that it had
	Parking     interlock.ParkStatus
}

// ParkedList lists the parked leases of a namespace, including those that stand at no key
// because their keys were freed. They come in the order of parking.
type ParkedList struct {
	Namespace interlock.Namespace
	After     ParkedAt // Next of the page before; zero: from the beginning
	Limit     int      // 0: 100, and at most 1000

	Rows []ParkedRow
	More bool     // there are more than Limit
	Next ParkedAt // the listing continues after it, whatever becomes of these leases

	found first[*request]
	next  int
	shown int // of found
}

func (l *ParkedList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.requests.Part, &l.next, l.wants, func(a, b *request) int { return a.parkedAt().compare(b.parkedAt()) }) {
		return false
	}
	for range glances / parkedGlances {
		switch l.shown {
		case len(l.found.list):
			return true
		case limit:
			l.More = true
			return true
		}
		r := l.found.list[l.shown]
		l.shown++
		l.Next = r.parkedAt()
		l.Rows = append(l.Rows, ParkedRow{
			Agent: r.agentName(), Flow: r.flowName(), Purpose: r.purpose, Claims: slices.Clone(r.claims()), Fence: r.fence, Parking: *e.parking(r),
		})
	}
	return false
}

// A row of ParkedList weighs as much as this many glances: it has up to 64 claims.
const parkedGlances = 8

func (l *ParkedList) wants(r *request) bool {
	return r.isParked() && r.parkedAt().compare(l.After) > 0
}

// parkedAt is the place of a parked lease in ParkedList.
func (r *request) parkedAt() ParkedAt { return ParkedAt{r.dealings.parking.since, r.num} }
