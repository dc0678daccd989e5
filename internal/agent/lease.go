package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// Reply is the answer to a request for a lease. One of the first four members is set.
type Reply struct {
	Granted *api.Granted
	Queued  *api.Queued
	Skipped *api.Skipped
	Refused *api.Problem
	// TakenUp means that the lease was kept for the agent, which was not there when its turn came.
	TakenUp bool
	// Document is the answer as it came.
	Document []byte
}

// Acquire requests a lease in the agent's session. It does not wait: with r.OnConflict wait or preempt
// a request that cannot be granted stands in line, and Reply.Queued has its ticket. A session that
// asks again for keys that it holds gets its lease; one that asks again for the keys of a ticket that
// is followed for the same flow gets that ticket. id is the Idempotency-Key; "" means none.
func (c *Caller) Acquire(ctx context.Context, r api.AcquireRequest, id string) (*Reply, error) {
	r.Agent, r.Wait = c.id.Agent, nil
	waits := r.OnConflict == "wait" || r.OnConflict == "preempt"
	if waits {
		r.Wait = new(api.Milliseconds)
		if _, err := c.Session(ctx); err != nil { // with it the tickets from before are known
			return refusedOr(nil, err)
		}
		if ticket := c.hub.ticketOf(c, r); ticket != "" {
			if reply, err := c.Wait(ctx, r.Flow, ticket, 0); err != nil || reply.Refused == nil {
				return reply, err
			}
			c.hub.drop(api.Digits(ticket)) // its wait is over
		}
	}
	for {
		session, err := c.Session(ctx)
		if err != nil {
			return refusedOr(nil, err)
		}
		if r.Session = session; session != "" {
			r.Agent = "" // a session has its own
		}
		now := r
		if waits && session != "" {
			now.OnConflict, now.Wait = "skip", nil
		}
		reply, err := replyOf(c.Do(ctx, api.Request{Method: http.MethodPost, Path: "/v1/leases", Body: now, ID: id}))
		if err == nil && reply.Skipped != nil && waits {
			reply, err = c.enqueue(ctx, canonical(r))
		}
		if err != nil {
			return nil, err
		}
		if session != "" && reply.Refused != nil && isOver(reply.Refused) {
			c.over(session)
			id = again(id)
			continue
		}
		if reply.Granted != nil && !c.took(ctx, reply, r.Flow) {
			id = again(id) // it was given back at this moment
			continue
		}
		return reply, nil
	}
}

// again returns the Idempotency-Key of a request that follows the one with id, since the earlier
// answer is out of date.
func again(id string) string {
	if id == "" {
		return ""
	}
	return digest(id, "again")
}

// Wait asks for the state of a ticket of a flow, for d at most. The ticket stays whatever becomes of
// the call.
func (c *Caller) Wait(ctx context.Context, flow string, ticket api.TicketID, d time.Duration) (*Reply, error) {
	reply, err := c.look(ctx, ticket, d)
	if err != nil || reply.Granted == nil {
		return reply, err
	}
	if !c.took(ctx, reply, flow) {
		return c.look(ctx, ticket, 0)
	}
	return reply, nil
}

func (c *Caller) look(ctx context.Context, ticket api.TicketID, d time.Duration) (*Reply, error) {
	return replyOf(c.Do(ctx, api.Request{
		Method: http.MethodGet, Path: "/v1/tickets/" + url.PathEscape(ticket), Wait: d,
		Query: url.Values{"wait_ms": {strconv.FormatInt(d.Milliseconds(), 10)}},
	}))
}

// Leave leaves the line. If the turn has come meanwhile, it releases the lease.
func (c *Caller) Leave(ctx context.Context, ticket api.TicketID) error {
	c.hub.drop(api.Digits(ticket))
	_, err := c.Do(ctx, api.Request{
		Method: http.MethodDelete, Path: "/v1/tickets/" + url.PathEscape(ticket), Again: true,
	})
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Code != interlock.CodeInvalidID {
		return c.Release(ctx, api.LeaseOf(ticket), api.ReleaseRequest{})
	}
	return err
}

// Release releases a lease. The error is that of the API, also for a lease that is over already.
func (c *Caller) Release(ctx context.Context, lease api.LeaseID, r api.ReleaseRequest) error {
	c.hub.drop(api.Digits(lease))
	c.mu.Lock()
	lent := c.lent[api.Digits(lease)]
	delete(c.lent, api.Digits(lease))
	c.mu.Unlock()
	if lent {
		return nil // it is another's in the same session, and stays
	}
	_, err := c.Do(ctx, api.Request{
		Method: http.MethodPost, Path: "/v1/leases/" + url.PathEscape(lease) + "/release", Body: r, Again: true,
	})
	if _, answered := errors.AsType[*api.Problem](err); err == nil || answered {
		c.mu.Lock()
		delete(c.held, api.Digits(lease))
		c.mu.Unlock()
	}
	return err
}

// took notes that the agent has a lease. It returns false if the lease was given back meanwhile, since
// the agent had not come for it.
func (c *Caller) took(ctx context.Context, reply *Reply, flow string) (ok bool) {
	g := reply.Granted
	if reply.TakenUp, ok = c.hub.take(ctx, api.Digits(g.Lease.ID)); !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	digits := api.Digits(g.Lease.ID)
	if _, known := c.held[digits]; !known && g.Reused && c.joined != "" {
		if c.lent == nil {
			c.lent = map[string]bool{}
		}
		c.lent[digits] = true
		return true
	}
	if c.held != nil {
		c.held[api.Digits(g.Lease.ID)] = Held{
			Lease: g.Lease.ID, Flow: cmp.Or(flow, mainFlow), Keys: KeysOf(g.Lease.Claims), Since: time.Now(),
		}
	}
	return true
}

// mainFlow is the flow of a request that names none.
const mainFlow = "main"

// KeysOf returns the keys of claims.
func KeysOf(claims []api.Claim) (keys []string) {
	for _, claim := range claims {
		keys = append(keys, string(claim.Key))
	}
	return keys
}

func sortHeld(list []Held) {
	slices.SortFunc(list, func(a, b Held) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Lease, b.Lease)) })
}

// replyOf reads an answer of the API. A refusal is a Reply; other errors are returned.
func replyOf(answer *api.Answer, err error) (*Reply, error) {
	if err != nil {
		return refusedOr(answer, err)
	}
	reply := &Reply{Document: answer.Body}
	var kind struct{ Outcome string }
	if err = json.Unmarshal(answer.Body, &kind); err == nil {
		switch kind.Outcome {
		case "granted":
			reply.Granted = new(api.Granted)
			err = json.Unmarshal(answer.Body, reply.Granted)
		case "queued":
			reply.Queued = new(api.Queued)
			err = json.Unmarshal(answer.Body, reply.Queued)
		case "skipped":
			reply.Skipped = new(api.Skipped)
			err = json.Unmarshal(answer.Body, reply.Skipped)
		default:
			err = fmt.Errorf("unknown outcome %q", kind.Outcome)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("agent: %w: %w", errUnexpected, err)
	}
	return reply, nil
}

func refusedOr(answer *api.Answer, err error) (*Reply, error) {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok {
		return nil, err
	}
	reply := &Reply{Refused: p}
	if answer != nil {
		reply.Document = answer.Body
	}
	return reply, nil
}
