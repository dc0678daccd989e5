package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

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
	After     store.ParkedAt // Next of the page before; zero: from the beginning
	Limit     int            // 0: 100, and at most 1000

	Rows []ParkedRow
	More bool           // there are more than Limit
	Next store.ParkedAt // the listing continues after it, whatever becomes of these leases

	found first[*store.Request]
	next  int
}

func (l *ParkedList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	if !sift(
		&l.found, s.Requests.Part, &l.next, l.wants,
		func(a, b *store.Request) int { return a.ParkedAt().Compare(b.ParkedAt()) },
	) {
		return false
	}
	l.More, done = l.found.show(limit, requestGlances, func(r *store.Request) {
		l.Next = r.ParkedAt()
		l.Rows = append(l.Rows, ParkedRow{
			Agent: r.AgentName(), Flow: r.FlowName(), Purpose: r.Purpose, Claims: slices.Clone(r.Claims()), Fence: r.Fence,
			Parking: *r.ParkStatus(),
		})
	})
	return done
}

func (l *ParkedList) wants(r *store.Request) bool {
	return r.IsParked() && r.ParkedAt().Compare(l.After) > 0
}
