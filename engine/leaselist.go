package engine

import (
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// RequestFilter chooses leases or tickets for a listing. What is empty chooses all.
type RequestFilter struct {
	Prefix    string // of a claimed key
	Agent     string
	Session   string // the public name
	Principal string
	After     uint64 // Next of the page before
	Limit     int    // 0: 100, and at most 1000
}

func (f *RequestFilter) matches(r *store.Request) bool {
	if r.Num <= f.After || f.Agent != "" && r.AgentName() != f.Agent {
		return false
	}
	if f.Session != "" && sessionName(r) != f.Session || f.Principal != "" && r.Owner() != f.Principal {
		return false
	}
	return f.Prefix == "" || slices.ContainsFunc(r.Claims(), func(c interlock.Claim) bool {
		return strings.HasPrefix(string(c.Key), f.Prefix)
	})
}

// sessionName returns the public name of the session of r, "" if it has none.
func sessionName(r *store.Request) string {
	if s := r.Session(); s != nil {
		return s.Name
	}
	return ""
}

// LeaseList lists leases in the order in which they were requested.
type LeaseList struct {
	Namespace interlock.Namespace
	Filter    RequestFilter
	Liveness  interlock.Liveness // 0: all

	Rows []LeaseRow
	More bool   // there are more than the filter's limit
	Next uint64 // the listing continues after it, whatever becomes of these leases

	found first[*store.Request]
	next  int
}

func (l *LeaseList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Filter.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.Requests.Part, &l.next, l.wants, store.ByNumber) {
		return false
	}
	l.More, done = l.found.show(limit, requestGlances, func(r *store.Request) {
		l.Next = r.Num
		l.Rows = append(l.Rows, leaseRow(r))
	})
	return done
}

// A row with the claims of a request weighs as much as this many glances: it has up to 64 of them.
const requestGlances = 8

func (l *LeaseList) wants(r *store.Request) bool {
	return r.Phase != store.Waiting && l.Filter.matches(r) && (l.Liveness == 0 || livenessOf(r) == l.Liveness)
}

// livenessOf returns the liveness of a lease, parked also for one that freed its keys.
func livenessOf(r *store.Request) interlock.Liveness {
	if r.IsParked() {
		return interlock.LiveParked
	}
	return r.Holder(interlock.Claim{}).Liveness
}

func leaseRow(r *store.Request) LeaseRow {
	h := r.Holder(interlock.Claim{})
	return LeaseRow{
		ID: r.ID, Request: r.Num, Agent: h.Agent, Session: h.Session, Flow: h.Flow, Principal: r.Owner(), Purpose: h.Purpose,
		Progress: h.Progress, Claims: slices.Clone(r.Claims()), Fence: r.Fence, Liveness: livenessOf(r), Held: h.Held,
		ExpiresIn: h.ExpiresIn, HeartbeatAge: h.HeartbeatAge, EndedBy: h.EndedBy, Parking: h.Parking, Task: r.AttemptAt(),
	}
}

// TicketList lists waiting and offered requests in the order of their arrival. Tasks in line are
// in TaskList.
type TicketList struct {
	Namespace interlock.Namespace
	Filter    RequestFilter
	Waiting   bool // only those in line
	Offered   bool // only those with an offer

	Rows []TicketRow
	More bool   // there are more than the filter's limit
	Next uint64 // the listing continues after it, whatever becomes of these requests

	found first[*store.Request]
	next  int
}

func (l *TicketList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Filter.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.Requests.Part, &l.next, l.wants, store.ByNumber) {
		return false
	}
	l.More, done = l.found.show(limit, requestGlances, func(r *store.Request) {
		l.Next = r.Num
		l.Rows = append(l.Rows, ticketRow(r))
	})
	return done
}

func (l *TicketList) wants(r *store.Request) bool {
	switch r.Phase {
	case store.Waiting:
		return !l.Offered && l.Filter.matches(r)
	case store.Offered:
		return !l.Waiting && l.Filter.matches(r)
	}
	return false
}

func ticketRow(r *store.Request) TicketRow {
	w := waiterView(r, 0)
	row := TicketRow{
		ID: r.ID, Request: r.Num, Agent: w.Agent, Session: w.Session, Flow: w.Flow, Principal: w.Owner, Purpose: w.Purpose,
		Claims: slices.Clone(r.Claims()), Any: r.Any, Priority: w.Priority, Waited: w.Waited, Offered: w.Offered,
	}
	switch {
	case w.Offered:
	case r.Target != nil:
		row.On = &FlowRef{Agent: r.Target.Agent, Session: r.Target.Name, Flow: r.TargetFlow}
	default:
		t := r.SoonestAlternative().Ticket()
		row.Position, row.Length, row.ETA = t.Position, t.Length, t.ETA
	}
	return row
}
