package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/endpoint"
)

// Place is a ticket of an agent that does other work.
type Place struct {
	Ticket api.TicketID
	Flow   string
	Keys   []string
	// Reply is the grant, once the turn has come: at Came, and it is kept until Until.
	Reply       *Reply
	Came, Until time.Time
}

// place is a ticket that the hub follows.
//
//	       turn comes              not there for Reserve
//	waiting ─────────► reserved ──────────────────────────► returning ──► returned ──► gone
//	   │                  │
//	   └──────────────────┴── the agent takes it, leaves or ends ──► gone
//
// A returned one is remembered for a while: an answer that was on its way to the agent when the lease
// was given back is then known to be out of date.
type place struct {
	Place
	caller *Caller
	began  time.Time
	cancel context.CancelFunc

	returning chan struct{} // set when the lease is given back, closed when that is done; guarded by hub.mu
}

// Follow follows a ticket while its agent does other work: it takes the lease up when the turn comes
// and keeps it for Config.Reserve. The agent has it by asking again for the same keys, or for the
// ticket. An agent that nothing was heard from for Config.TTL has left: its ticket is given up, so that
// following does not keep the session of a dead agent alive.
func (c *Caller) Follow(f Place) {
	h := c.hub
	f.Flow, f.Reply = cmp.Or(f.Flow, mainFlow), nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil || h.followed[api.Digits(f.Ticket)] != nil {
		return
	}
	ctx, cancel := context.WithCancel(h.ctx)
	one := &place{Place: f, caller: c, began: time.Now(), cancel: cancel}
	h.followed[api.Digits(f.Ticket)] = one
	h.busy.Go(func() {
		defer cancel()
		h.follow(ctx, one)
	})
}

// News returns the turns of a flow that have come, and that the agent has not taken up.
func (c *Caller) News(flow string) (list []Place) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	for _, f := range c.hub.followed {
		if f.caller.Party == c.Party && f.Flow == cmp.Or(flow, mainFlow) && f.Reply != nil && f.returning == nil {
			list = append(list, f.Place)
		}
	}
	slices.SortFunc(list, func(a, b Place) int { return cmp.Compare(a.Ticket, b.Ticket) })
	return list
}

// Waits returns the tickets of a flow that are followed, also those that an earlier process has taken.
func (c *Caller) Waits(flow string) (list []api.TicketID) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	for _, f := range c.hub.followed {
		if f.caller.Party == c.Party && f.Flow == cmp.Or(flow, mainFlow) && f.returning == nil {
			list = append(list, f.Ticket)
		}
	}
	slices.Sort(list)
	return list
}

// Follows reports whether a lease is one of a ticket that is followed: the agent has not taken it up.
func (c *Caller) Follows(lease api.LeaseID) bool {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return c.hub.followed[api.Digits(lease)] != nil
}

// follow waits for the turn of a ticket, and returns the lease if the agent does not come for it.
func (h *Hub) follow(ctx context.Context, f *place) {
	id := api.Digits(f.Ticket)
	defer h.remove(id, f)
	reply := h.awaitTurn(ctx, f)
	if reply == nil {
		return
	}
	h.mu.Lock()
	f.Reply, f.Came = reply, time.Now()
	f.Until = f.Came.Add(h.cfg.Reserve)
	h.mu.Unlock()
	if h.keep(ctx, f, reply, f.Until) != nil {
		return
	}
	h.mu.Lock()
	if h.followed[id] != f {
		h.mu.Unlock()
		return
	}
	f.returning = make(chan struct{})
	h.mu.Unlock()
	h.giveBack(ctx, f)
	close(f.returning)
	select {
	case <-ctx.Done():
	case <-time.After(h.cfg.Reserve):
	}
}

// keep renews a lease until the end of its reservation. The error is that ctx is over.
func (h *Hub) keep(ctx context.Context, f *place, reply *Reply, end time.Time) error {
	// A pattern may bound the ttl to less than the reservation takes.
	pause := max(time.Second, time.Duration(reply.Granted.Lease.ExpiresIn)*time.Millisecond/3)
	for left := time.Until(end); left > 0; left = time.Until(end) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, left)):
		}
		if time.Now().Before(end) {
			_, err := f.caller.Do(ctx, api.Request{
				Method: "POST", Path: "/v1/leases/" + api.LeaseOf(f.Ticket) + "/renew", Body: api.RenewRequest{}, Again: true,
			})
			if err != nil && ctx.Err() == nil {
				h.cfg.Log.Warn("a reserved lease was not renewed", "keys", f.Keys, "error", err)
			}
		}
	}
	return nil
}

// giveBack releases a lease that no agent took up.
func (h *Hub) giveBack(ctx context.Context, f *place) {
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := f.caller.Do(bounded, api.Request{
		Method: "POST", Path: "/v1/leases/" + api.LeaseOf(f.Ticket) + "/release", Again: true,
		Body: api.ReleaseRequest{Outcome: "not taken up", Note: "not taken up"},
	})
	f.caller.mu.Lock()
	delete(f.caller.held, api.Digits(f.Ticket))
	f.caller.mu.Unlock()
	if err != nil {
		h.cfg.Log.Warn("a lease that no agent took up ends by itself", "keys", f.Keys, "error", err)
	}
}

// awaitTurn returns the grant, or nil when there is none to come.
func (h *Hub) awaitTurn(ctx context.Context, f *place) *Reply {
	for failures := 0; ; {
		left := time.Until(h.heard(f).Add(h.cfg.TTL))
		if left <= 0 {
			_ = f.caller.Leave(ctx, f.Ticket) // an error leaves it to the end of the session
			return nil
		}
		reply, err := f.caller.look(ctx, f.Ticket, min(left, interlock.MaxLongPoll))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil || reply.Refused != nil && api.Passing(reply.Refused):
			if endpoint.Pause(ctx, failures) != nil {
				return nil
			}
			failures++
		case reply.Queued != nil:
			failures = 0
		default:
			if reply.Granted == nil {
				return nil // its wait is over, or its session
			}
			return reply
		}
	}
}

// heard returns when the agent of a place was heard from last.
func (h *Hub) heard(f *place) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.caller.seen.After(f.began) {
		return f.caller.seen
	}
	return f.began
}

// ticketOf returns the ticket that is followed for a request of the same flow for the same keys; "" if
// there is none.
func (h *Hub) ticketOf(c *Caller, r api.AcquireRequest) api.TicketID {
	var keys []string
	for _, claim := range r.Claims {
		keys = append(keys, string(claim.Key))
	}
	slices.Sort(keys)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followed {
		if f.caller.Party == c.Party && c.id.Key != "" && f.Flow == cmp.Or(r.Flow, mainFlow) && f.returning == nil &&
			slices.Equal(keys, slices.Sorted(slices.Values(f.Keys))) {
			return f.Ticket
		}
	}
	return ""
}

// take ends the following of a lease, since its agent has it now. ok is false if the lease was given back, when that is
// done.
func (h *Hub) take(ctx context.Context, id string) (followed, ok bool) {
	h.mu.Lock()
	f := h.followed[id]
	if f == nil {
		h.mu.Unlock()
		return false, true
	}
	returning := f.returning
	if returning == nil {
		delete(h.followed, id)
		f.cancel()
	}
	h.mu.Unlock()
	if returning == nil {
		return true, true
	}
	select {
	case <-returning:
	case <-ctx.Done():
	}
	return true, false
}

// drop ends the following of a ticket that is given up, or of a lease that is given back.
func (h *Hub) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.followed[id]; f != nil && f.returning == nil {
		delete(h.followed, id)
		f.cancel()
	}
}

// reserved are the leases that are kept for a caller.
func (h *Hub) reserved(c *Caller) []api.LeaseID {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []api.LeaseID{}
	for _, f := range h.followed {
		if f.caller.Party == c.Party && f.Reply != nil && f.returning == nil {
			list = append(list, f.Reply.Granted.Lease.ID)
		}
	}
	return list
}

// forget ends the following of all tickets of a caller.
func (h *Hub) forget(c *Caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, f := range h.followed {
		if f.caller.Party == c.Party && f.returning == nil {
			delete(h.followed, id)
			f.cancel()
		}
	}
}

func (h *Hub) remove(id string, f *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followed[id] == f {
		delete(h.followed, id)
	}
}
