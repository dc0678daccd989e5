package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// Change is a thing in two states. Before is nil for a new one, After for one that is gone.
type Change[T any] struct {
	Before *T
	After  *T
}

// Changes are the things of one kind that differ between two states.
type Changes[T any] struct {
	Rows    []Change[T] // the first ones
	New     int         // of all, also those that Rows has no room for
	Gone    int
	Changed int
}

// Comparison finds what differs between two states of a namespace, each in an engine of its own, for queries
// about the past. It is used once.
//
// A lease is compared at each of its keys, by its fence, mode, count and liveness. Where one exclusive lease of a key
// took the place of another, that is one change. Waiters, also those with an offer, are compared by their position,
// documents by their version, and tasks by their state and attempt.
type Comparison struct {
	Namespace interlock.Namespace
	Prefix    string // of a key: of the lease, the document, or one that the waiter or the task claims
	Limit     int    // of the rows of each kind; 0: 100, and at most 1000

	Leases    Changes[interlock.Holder]   // by key, then fence
	Waiters   Changes[TicketRow]          // in the order of their arrival
	Documents Changes[interlock.Document] // by key, without bodies
	Tasks     Changes[interlock.Task]     // in the order of their submission

	leases    first[pair[hold]]
	waiters   first[pair[*store.Request]]
	documents first[pair[*store.Document]]
	tasks     first[pair[*store.Task]]

	before, after *store.Namespace                // nil: there is none
	visits        []func(part int) (existed bool) // what is left to do
	part          int                             // of the first of visits
}

// hold is a claim of a lease.
type hold struct {
	lease *store.Request
	claim interlock.Claim
}

// pair is a Change before it is shown; the zero T is none.
type pair[T comparable] struct{ before, after T }

func (c pair[T]) latest() T {
	var none T
	if c.after != none {
		return c.after
	}
	return c.before
}

// Look continues the comparison, and reports whether it is complete.
func (c *Comparison) Look(before, after *Engine) (done bool) {
	c.before, c.after = before.turnTo(c.Namespace), after.turnTo(c.Namespace)
	if c.visits == nil {
		c.begin()
	}
	for range glances {
		if len(c.visits) == 0 {
			c.show()
			return true
		}
		if c.part++; !c.visits[0](c.part - 1) {
			c.visits, c.part = c.visits[1:], 0
		}
	}
	return false
}

func (c *Comparison) begin() {
	limit := rowsOf(c.Limit)
	c.leases.limit, c.waiters.limit, c.documents.limit, c.tasks.limit = limit, limit, limit, limit
	c.visits = []func(int) bool{}
	if s := c.after; s != nil {
		c.visits = append(
			c.visits, parts(s.Requests.Part, c.visitRequest), parts(s.Documents.Present.Part, c.visitDocument),
			parts(s.Tasks.All.Part, c.visitTask),
		)
	}
	if s := c.before; s != nil {
		c.visits = append(
			c.visits, parts(s.Requests.Part, c.visitOldRequest), parts(s.Documents.Present.Part, c.visitOldDocument),
			parts(s.Tasks.All.Part, c.visitOldTask),
		)
	}
}

func parts[M any](part func(i int, visit func(M)) bool, visit func(M)) func(int) bool {
	return func(i int) bool { return part(i, visit) }
}

// note counts a change, and keeps it if it is one of the first in an order.
func note[T comparable, V any](f *first[pair[T]], to *Changes[V], c pair[T], order func(a, b T) int) {
	var none T
	switch {
	case c.before == none:
		to.New++
	case c.after == none:
		to.Gone++
	default:
		to.Changed++
	}
	f.add(c, func(a, b pair[T]) int { return order(a.latest(), b.latest()) })
}

// visitRequest compares a request of the later state.
func (c *Comparison) visitRequest(r *store.Request) {
	old := sameRequest(c.before, r)
	if isLease(r) {
		for _, claim := range r.Claims() {
			c.compareHold(hold{old, claimOf(old, claim.Key)}, hold{r, claim})
		}
		return
	}
	if !isWaiter(old) {
		old = nil
	}
	if c.asked(r.Claims()) && (old == nil || old.Phase != r.Phase || positionOf(old) != positionOf(r)) {
		note(&c.waiters, &c.Waiters, pair[*store.Request]{old, r}, store.ByNumber)
	}
}

// compareHold compares a claim of a lease of the later state.
func (c *Comparison) compareHold(old, now hold) {
	if !strings.HasPrefix(string(now.claim.Key), c.Prefix) {
		return
	}
	if old.claim.Key == "" {
		old = hold{}
		if lost, gained := c.handover(now.claim.Key); gained == now.lease {
			old = hold{lost, claimOf(lost, now.claim.Key)}
		}
	} else if old.claim == now.claim && old.lease.Fence == now.lease.Fence &&
		livenessOf(old.lease) == livenessOf(now.lease) {
		return
	}
	note(&c.leases, &c.Leases, pair[hold]{old, now}, byHold)
}

// visitOldRequest notes what is gone of a request of the earlier state.
func (c *Comparison) visitOldRequest(r *store.Request) {
	now := sameRequest(c.after, r)
	if !isLease(r) {
		if !isWaiter(now) && c.asked(r.Claims()) {
			note(&c.waiters, &c.Waiters, pair[*store.Request]{before: r}, store.ByNumber)
		}
		return
	}
	for _, claim := range r.Claims() {
		if claimOf(now, claim.Key).Key != "" || !strings.HasPrefix(string(claim.Key), c.Prefix) {
			continue
		}
		if lost, _ := c.handover(claim.Key); lost != r {
			note(&c.leases, &c.Leases, pair[hold]{before: hold{r, claim}}, byHold)
		}
	}
}

// handover returns the lease that held a key exclusively, and another one that holds it so now; nil if there is no
// such pair.
func (c *Comparison) handover(key interlock.Key) (lost, gained *store.Request) {
	lost, gained = exclusiveAt(c.before, key), exclusiveAt(c.after, key)
	if lost == nil || gained == nil || claimOf(sameRequest(c.after, lost), key).Key != "" ||
		claimOf(sameRequest(c.before, gained), key).Key != "" {
		return nil, nil
	}
	return lost, gained
}

// exclusiveAt returns the lease that holds a key exclusively; nil if there is none, or more than one, as of a flow that
// has asked again.
func exclusiveAt(s *store.Namespace, key interlock.Key) (lease *store.Request) {
	if s == nil {
		return nil
	}
	n := s.NodeAt(string(key))
	if n == nil {
		return nil
	}
	for h := n.First; h != nil; h = h.Next {
		if h.Claimed && h.ModeOf() == interlock.Exclusive && isLease(h.Req) {
			if lease != nil {
				return nil
			}
			lease = h.Req
		}
	}
	return lease
}

// sameRequest returns a request in another state, nil if it is not there or over.
func sameRequest(s *store.Namespace, r *store.Request) *store.Request {
	if s == nil {
		return nil
	}
	if same := s.Live(r.ID); same != nil && same.Num == r.Num {
		return same
	}
	return nil
}

func isWaiter(r *store.Request) bool {
	return r != nil && (r.Phase == store.Waiting || r.Phase == store.Offered)
}

func isLease(r *store.Request) bool { return r != nil && !isWaiter(r) && r.Phase != store.Over }

// claimOf returns a claim of a lease, zero for none.
func claimOf(r *store.Request, key interlock.Key) (claim interlock.Claim) {
	if isLease(r) {
		for _, c := range r.Claims() {
			if c.Key == key {
				return c
			}
		}
	}
	return claim
}

func byHold(a, b hold) int {
	return cmp.Or(cmp.Compare(a.claim.Key, b.claim.Key), byFence(a.lease, b.lease))
}

// asked reports whether one of some claims has the prefix.
func (c *Comparison) asked(claims []interlock.Claim) bool {
	return c.Prefix == "" || slices.ContainsFunc(claims, func(claim interlock.Claim) bool {
		return strings.HasPrefix(string(claim.Key), c.Prefix)
	})
}

// positionOf returns the place of a waiter in line, 0 if it has an offer or waits for an agent.
func positionOf(r *store.Request) int { return ticketRow(r).Position }

func (c *Comparison) visitDocument(d *store.Document) {
	old := documentAt(c.before, d.Key)
	if strings.HasPrefix(string(d.Key), c.Prefix) && (old == nil || old.Now.Version != d.Now.Version) {
		note(&c.documents, &c.Documents, pair[*store.Document]{old, d}, byKey)
	}
}

func (c *Comparison) visitOldDocument(d *store.Document) {
	if strings.HasPrefix(string(d.Key), c.Prefix) && documentAt(c.after, d.Key) == nil {
		note(&c.documents, &c.Documents, pair[*store.Document]{before: d}, byKey)
	}
}

// documentAt returns the document at a key, nil for none.
func documentAt(s *store.Namespace, key interlock.Key) *store.Document {
	if s == nil || s.Documents.Known[key].IsAbsent() {
		return nil
	}
	return s.Documents.Known[key]
}

func (c *Comparison) visitTask(t *store.Task) {
	old := taskOf(c.before, t.ID)
	if c.asked(t.Spec.Claims) && (old == nil || old.State != t.State || old.Attempt != t.Attempt) {
		note(&c.tasks, &c.Tasks, pair[*store.Task]{old, t}, bySubmission)
	}
}

func (c *Comparison) visitOldTask(t *store.Task) {
	if c.asked(t.Spec.Claims) && taskOf(c.after, t.ID) == nil {
		note(&c.tasks, &c.Tasks, pair[*store.Task]{before: t}, bySubmission)
	}
}

func taskOf(s *store.Namespace, id interlock.TaskID) *store.Task {
	if s == nil {
		return nil
	}
	return s.Tasks.Known[id]
}

// show describes what was found.
func (c *Comparison) show() {
	c.Leases.Rows = rowsOfChanges(&c.leases, func(h hold) interlock.Holder { return h.lease.Holder(h.claim) })
	c.Waiters.Rows = rowsOfChanges(&c.waiters, ticketRow)
	c.Documents.Rows = rowsOfChanges(&c.documents, func(d *store.Document) interlock.Document {
		return d.Now.Show(d.Key, false, d.Now.At)
	})
	c.Tasks.Rows = rowsOfChanges(&c.tasks, func(t *store.Task) interlock.Task { return t.Show().Task })
}

func rowsOfChanges[T comparable, V any](f *first[pair[T]], show func(T) V) (rows []Change[V]) {
	side := func(of T) *V {
		var none T
		if of == none {
			return nil
		}
		v := show(of)
		return &v
	}
	for _, c := range f.list {
		rows = append(rows, Change[V]{side(c.before), side(c.after)})
	}
	return rows
}
