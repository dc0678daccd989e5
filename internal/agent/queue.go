package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/api"
)

// The queue positions of a session are known by their tickets, and a listing shows no ticket. So a request
// that has to wait carries an Idempotency-Key made of its body: a later process finds the ticket by making the same
// request again; the listing has all its parts.

// maxPlaces bounds how many tickets with the same request are tried: those before the last one are over.
const maxPlaces = 1000

// enqueue requests a lease that is not to be had now. The ticket of the same request is found again.
func (c *Caller) enqueue(ctx context.Context, r api.AcquireRequest) (reply *Reply, found bool, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, false, err
	}
	for n := range maxPlaces {
		answer, err := c.Do(ctx, api.Request{
			Method: http.MethodPost, Path: "/v1/leases", Body: r, ID: digest("place", string(body), strconv.Itoa(n)),
		})
		found = answer != nil && answer.Header.Get("Idempotency-Replayed") != ""
		reply, err = replyOf(answer, err)
		if err != nil || reply.Refused == nil || !found {
			return reply, found, err
		}
	}
	return reply, found, nil
}

// canonical brings a request into the form that takeUp makes of a listing.
func canonical(r api.AcquireRequest) api.AcquireRequest {
	r.Flow = cmp.Or(r.Flow, mainFlow)
	r.Claims = slices.Clone(r.Claims)
	for i := range r.Claims {
		if r.Claims[i].Count == (api.Count{}) {
			r.Claims[i].Mode = cmp.Or(r.Claims[i].Mode, "exclusive")
		}
	}
	slices.SortFunc(r.Claims, func(a, b api.ClaimRequest) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return r
}

// takeUp follows the tickets of a session that an earlier process has opened. What it cannot find is left to the end of
// its wait.
func (c *Caller) takeUp(ctx context.Context, session *api.Session) {
	answer, err := c.Do(ctx, api.Request{
		Method: http.MethodGet, Path: "/v1/tickets", Query: url.Values{"session": {session.Name}, "limit": {"100"}},
	})
	var list api.TicketList
	if err != nil || json.Unmarshal(answer.Body, &list) != nil {
		return
	}
	for _, t := range list.Tickets {
		if t.On != nil {
			continue
		}
		r := api.AcquireRequest{
			Session: session.ID, Flow: t.Flow, Purpose: t.Purpose, Any: t.Any, OnConflict: "wait",
			Wait: new(api.Milliseconds), TTL: c.hub.cfg.TTL.Milliseconds(),
		}
		var keys []string
		for _, claim := range t.Claims {
			keys = append(keys, string(claim.Key))
			r.Claims = append(r.Claims, api.ClaimRequest(claim))
		}
		reply, found, err := c.enqueue(ctx, canonical(r))
		if err != nil {
			return
		}
		ticket := ""
		switch {
		case reply.Queued != nil:
			ticket = reply.Queued.Ticket.ID
		case reply.Granted != nil:
			ticket = api.TicketOf(reply.Granted.Lease.ID)
		default:
			continue
		}
		if !found { // the listed one had another form
			_ = c.Leave(ctx, ticket)
			continue
		}
		c.Follow(Place{Ticket: ticket, Flow: t.Flow, Keys: keys})
	}
}
