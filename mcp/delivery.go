package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// crossing is how long after an answer a cancellation is taken for one that crossed it on the way. Some clients cancel
// calls that they have the answers of, when a person interrupts the agent later.
const crossing = 10 * time.Second

// delivery is the answer to a call on its way to the client. What the answer grants is returned if it is lost:
//
//	under way ──► answered ──► sent ──► followed by another call ──► known, by a call that names it
//	    │             │          │            │
//	    │             │          │            └──► lost: the client reset its connection with the answer unread
//	    └─────────────┴──────────┴──► lost: so, or the client cancelled the call
type delivery struct {
	of   string // the conversation and the id of the call, "" if it is not known
	from *agent.Party
	stop context.CancelFunc

	// Guarded by deliveries.mu.
	grants   []*grant
	untold   func()    // has the next answer tell the news of this one; nil for none
	answered time.Time // zero while the call is under way
	sent     bool
	followed bool // another call of the conversation came later
	lost     bool
}

// grant is a lease or a ticket that answers grant: several, if the agent asked again. If all of them are lost, undo
// returns it.
type grant struct {
	in    map[*delivery]bool
	id    string // the digits of ticket and lease
	undo  func(context.Context)
	known func() // tells the agent that it was given back, since it may have read of it
}

// deliveries are the answers that are not confirmed yet.
type deliveries struct {
	busy sync.WaitGroup

	mu        sync.Mutex
	list      map[*delivery]bool
	swept     time.Time
	agents    map[*agent.Party]map[*delivery]bool
	calls     map[string]*delivery     // by delivery.of
	grants    map[string]*grant        // by grant.id
	returning map[string]chan struct{} // by grant.id: closed when it is given back
}

// newDeliveries returns a list without any.
func newDeliveries() *deliveries {
	return &deliveries{
		list: map[*delivery]bool{}, agents: map[*agent.Party]map[*delivery]bool{}, calls: map[string]*delivery{},
		grants: map[string]*grant{}, returning: map[string]chan struct{}{}, swept: time.Now(),
	}
}

// begin begins a call, which follows the answers that its conversation has been sent.
func (l *deliveries) begin(of string, from *agent.Party, stop context.CancelFunc) *delivery {
	d := &delivery{of: of, from: from, stop: stop}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for old := range l.agents[from] {
		old.followed = old.followed || old.sent
	}
	if now.Sub(l.swept) > sessionTTL/2 {
		l.swept = now
		for old := range l.list {
			if old.sent && now.Sub(old.answered) > sessionTTL {
				for _, g := range slices.Clone(old.grants) {
					l.withdraw(g.id)
				}
				l.forget(old)
			}
		}
	}
	l.list[d] = true
	if l.agents[from] == nil {
		l.agents[from] = map[*delivery]bool{}
	}
	l.agents[from][d] = true
	if of != "" {
		l.calls[of] = d
	}
	return d
}

// forget drops a delivery. The caller holds mu.
func (l *deliveries) forget(d *delivery) {
	delete(l.list, d)
	if delete(l.agents[d.from], d); len(l.agents[d.from]) == 0 {
		delete(l.agents, d.from)
	}
	if l.calls[d.of] == d {
		delete(l.calls, d.of)
	}
}

// grant notes what the answer of a call grants; without undo, if an earlier answer that may be lost granted it. again
// means that it is being given back: the call asks once more.
func (l *deliveries) grant(
	ctx context.Context, d *delivery, id string, undo func(context.Context), known func(),
) (again bool) {
	id = api.Digits(id)
	l.mu.Lock()
	if done := l.returning[id]; done != nil {
		l.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		return true
	}
	defer l.mu.Unlock()
	if undo != nil {
		l.withdraw(id) // what earlier answers said of a ticket is known
	}
	g := l.grants[id]
	switch {
	case g == nil && undo == nil: // the agent knows it
		return false
	case g == nil:
		g = &grant{map[*delivery]bool{}, id, undo, known}
		l.grants[id] = g
	}
	if !g.in[d] {
		g.in[d] = true
		d.grants = append(d.grants, g)
	}
	return false
}

// confirm notes that the agent has named a lease or a ticket.
func (l *deliveries) confirm(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withdraw(api.Digits(id))
}

// withdraw notes that the agent knows what answers grant. The caller holds mu.
func (l *deliveries) withdraw(id string) {
	g := l.grants[id]
	if g == nil {
		return
	}
	delete(l.grants, id)
	for d := range g.in {
		d.grants = slices.DeleteFunc(d.grants, func(one *grant) bool { return one == g })
		if len(d.grants) == 0 && d.sent && d.untold == nil {
			l.forget(d)
		}
	}
}

// end notes that a call has its answer. If that is lost already, its grants are given back.
func (l *deliveries) end(d *delivery) {
	l.mu.Lock()
	d.answered = time.Now()
	lost := d.lost
	if lost {
		l.takeBack(d, false)
	}
	l.mu.Unlock()
}

// wasSent notes that something has left for the client: the answer, if there is one.
func (l *deliveries) wasSent(d *delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.answered.IsZero() {
		return
	}
	d.sent = true
	if len(d.grants) == 0 && d.untold == nil {
		l.forget(d)
	}
}

// carry notes that an answer has news, which untold has the next one tell if this one is lost.
func (l *deliveries) carry(d *delivery, untold func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.untold = untold
}

// settle notes that nothing more leaves for the client: an answer that has not left is lost.
func (l *deliveries) settle(d *delivery) {
	l.mu.Lock()
	sent := d.sent
	l.mu.Unlock()
	if !sent {
		l.lose(d)
	}
}

// sentTo notes that the answer to a call has left.
func (l *deliveries) sentTo(of string) {
	l.mu.Lock()
	d := l.calls[of]
	l.mu.Unlock()
	if d != nil {
		l.wasSent(d)
	}
}

// cancel is called for a client's cancellation of a call.
func (l *deliveries) cancel(of string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.calls[of]
	switch {
	case of == "" || d == nil:
	case d.answered.IsZero():
		d.lost = true
		d.stop()
	case !d.followed && time.Since(d.answered) <= crossing:
		l.takeBack(d, true)
	}
}

// lose is called for an answer that its client will never read.
func (l *deliveries) lose(d *delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.lost = true
	if !d.answered.IsZero() && l.list[d] {
		l.takeBack(d, false)
	}
}

// takeBack returns what an answer grants. read means that the client may have read it. The caller holds mu.
func (l *deliveries) takeBack(d *delivery, read bool) {
	l.forget(d)
	if d.untold != nil {
		d.untold()
	}
	for _, g := range d.grants {
		if delete(g.in, d); len(g.in) > 0 {
			continue
		}
		delete(l.grants, g.id)
		done := make(chan struct{})
		l.returning[g.id] = done
		l.busy.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
			defer cancel()
			g.undo(ctx)
			if read && g.known != nil {
				g.known()
			}
			l.mu.Lock()
			delete(l.returning, g.id)
			l.mu.Unlock()
			close(done)
		})
	}
	d.grants = nil
}
