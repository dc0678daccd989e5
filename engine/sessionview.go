package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock/engine/internal/store"
)

// MaxSessionWork bounds the leases, and the tickets, of a SessionWork: the oldest are listed.
const MaxSessionWork = 1000

func (c *ShowSession) decide(e *Engine) {
	s, ok := e.needSession()
	if !ok {
		return
	}
	var leases, tickets []*store.Request
	for _, f := range s.Flows.All() {
		for _, r := range f.Leases {
			if r.Phase == store.Offered { // its client has to take it up by the ticket
				tickets = append(tickets, r)
			} else {
				leases = append(leases, r)
			}
		}
		for _, r := range f.Waits {
			if r.Parent != nil {
				r = r.Parent // alternatives share one ticket
			}
			tickets = append(tickets, r)
		}
	}
	work := &SessionWork{}
	for _, r := range oldest(leases) {
		work.Leases = append(work.Leases, leaseRow(r))
	}
	for _, r := range oldest(tickets) {
		work.Tickets = append(work.Tickets, ticketRow(r))
	}
	eff := e.reply(Done)
	eff.Session, eff.Work = e.show(s), work
}

// oldest returns the first requests of a list by their numbers, each once.
func oldest(list []*store.Request) []*store.Request {
	slices.SortFunc(list, func(a, b *store.Request) int { return cmp.Compare(a.Num, b.Num) })
	list = slices.Compact(list)
	return list[:min(len(list), MaxSessionWork)]
}
