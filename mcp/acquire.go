package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

const (
	defaultAcquireWait = 20 * time.Second
	defaultWait        = maxCall
)

type acquireArguments struct {
	Keys     []string `json:"keys"`
	Mode     string   `json:"mode"`
	Permits  uint32   `json:"permits"`
	Any      bool     `json:"any"`
	Purpose  string   `json:"purpose"`
	WaitS    *int     `json:"wait_s"`
	IfHeld   string   `json:"if_held"`
	Lease    string   `json:"lease"`
	Progress string   `json:"progress"`
}

// acquire is the tool that requests a lease, or keeps one alive.
func acquire(v *visit) (*answer, error) {
	var in acquireArguments
	if err := v.read(&in); err != nil {
		return nil, err
	}
	wait, err := v.waitFor(in.WaitS, defaultAcquireWait)
	if err != nil {
		return nil, err
	}
	if in.IfHeld == "" {
		in.IfHeld = "wait"
	}
	if err := v.oneOf("if_held", in.IfHeld, "wait", "fail", "ask_to_yield"); err != nil {
		return nil, err
	}
	switch {
	case in.Lease != "" && len(in.Keys) > 0:
		return nil, misuse("acquire takes keys, to take a lease, or lease, to keep one alive, but not both.")
	case in.Lease != "":
		return v.keep(&in)
	case len(in.Keys) == 0:
		return nil, v.required("keys", `an array such as ["account:12345"]`)
	case in.Permits > 0 && in.Mode != "":
		return nil, misuse("acquire takes mode or permits, but not both.")
	}
	if j := &v.door.join; j.Flow != "" && j.covers(in.Keys) {
		v.flow = j.Flow // also in a thread, which would wait for the lease around all of them
	}
	conflict := map[string]string{"wait": "wait", "fail": "fail", "ask_to_yield": "preempt"}[in.IfHeld]
	request := api.AcquireRequest{
		Claims: claimsOf(in.Keys, in.Mode, in.Permits), Any: in.Any, Purpose: in.Purpose, Flow: v.flow,
		OnConflict: conflict, TTL: v.door.ttl.Milliseconds(),
	}
	reply, ticket, err := v.ask(request)
	for err == nil && v.grants(reply, ticket, in.Keys) && v.ctx.Err() == nil {
		if ticket != "" {
			v.door.places.exit(ticket, false)
		}
		reply, ticket, err = v.ask(request)
	}
	switch {
	case err != nil:
		return nil, err
	case ticket == "" && v.ctx.Err() != nil:
		return nil, v.ctx.Err()
	case ticket == "":
		return v.told(reply, in.Keys)
	}
	if reply.Queued != nil {
		if own := v.door.join.blocks(reply.Queued, in.Any, in.Keys); own != nil {
			v.door.deliveries.confirm(ticket)
			v.door.places.exit(ticket, false)
			v.leave(ticket)
			return &answer{Outcome: "held", Message: fmt.Sprintf(
				"%s is held by your own lease, under which this process runs (fence %s): work under it, and acquire nothing.",
				clip(string(own.Key), keyShare), own.Fence,
			)}, nil
		}
	}
	reply, err = v.stand(ticket, reply, wait)
	v.door.places.exit(ticket, v.ctx.Err() == nil)
	switch {
	case v.ctx.Err() != nil:
		return nil, v.ctx.Err()
	case err != nil:
		return nil, err
	}
	return v.told(reply, in.Keys, ticket)
}

// grants notes the lease or the ticket of a reply, which is given back if the answer does not reach the agent. again
// means that it is being given back already.
func (v *visit) grants(reply *agent.Reply, ticket string, keys []string) (again bool) {
	var undo func(context.Context)
	switch {
	case ticket != "" && v.door.places.isKnown(ticket):
		undo = v.following(ticket, keys)
	case ticket != "":
		undo = func(ctx context.Context) {
			v.door.places.over(ticket)
			_ = v.agent.Leave(ctx, ticket)
		}
	case reply.Granted == nil:
		return false
	case reply.TakenUp:
		ticket = api.TicketOf(reply.Granted.Lease.ID)
		undo = v.following(ticket, keys)
	case !reply.Granted.Reused:
		ticket = reply.Granted.Lease.ID
		undo = func(ctx context.Context) { _ = v.agent.Release(ctx, ticket, api.ReleaseRequest{Outcome: "cancelled"}) }
	default:
		ticket = reply.Granted.Lease.ID // the agent had it before
	}
	return v.door.deliveries.grant(v.ctx, v.delivery, ticket, undo, func() {
		v.tell(v.flow, fmt.Sprintf(
			"%s was given back, because the call that took it was cancelled: acquire it again before you change it.",
			clip(several(keys), keyShare),
		))
	})
}

// following is what becomes of a ticket that the agent knows if an answer about it does not arrive: it stays, and a
// lease that has come of it is kept for a while.
func (v *visit) following(ticket string, keys []string) func(context.Context) {
	return func(context.Context) { v.agent.Follow(agent.Place{Ticket: ticket, Flow: v.flow, Keys: keys}) }
}

// ask sends a request for a lease, unless the agent has a ticket for the same one. With a ticket, a
// place of the call is entered for it.
func (v *visit) ask(r api.AcquireRequest) (reply *agent.Reply, ticket string, err error) {
	open, asked := v.door.places.ask(v.agent, r)
	defer func() { asked(ticket) }()
	// What came of it must be known, so that it can be undone, although the client may go meanwhile.
	ctx, cancel := v.lasting()
	defer cancel()
	if open != "" {
		reply, err := v.agent.Wait(ctx, v.flow, open, 0)
		if err != nil || reply.Refused == nil {
			return reply, open, err
		}
	}
	reply, err = v.agent.Acquire(ctx, r, "")
	if err == nil && reply.Queued != nil {
		ticket = reply.Queued.Ticket.ID
	}
	return reply, ticket, err
}

// leave leaves the queue, or releases the lease if its turn has come.
func (v *visit) leave(ticket string) {
	ctx, cancel := v.lasting()
	defer cancel()
	_ = v.agent.Leave(ctx, ticket)
}

// stand waits for the turn of a ticket, and reports the queue position: at once, with each change and
// every 10 s.
func (v *visit) stand(ticket string, reply *agent.Reply, wait time.Duration) (*agent.Reply, error) {
	until := v.began.Add(wait)
	position := -1
	var last time.Time
	for {
		q := reply.Queued
		if q == nil {
			return reply, nil
		}
		if q.Ticket.Position != position || time.Since(last) >= reportEvery {
			v.report(inQueue(q))
			position, last = q.Ticket.Position, time.Now()
		}
		left := time.Until(until)
		if left <= 0 {
			return reply, nil
		}
		if v.notify != nil {
			left = min(left, lookEvery)
		}
		next, err := v.agent.Wait(v.ctx, v.flow, ticket, left)
		if err != nil {
			return reply, err
		}
		reply = next
	}
}

// told is the answer to a request for a lease. A ticket that stays is followed from now on.
func (v *visit) told(reply *agent.Reply, keys []string, ticket ...string) (*answer, error) {
	switch {
	case reply.Granted != nil:
		v.door.places.over(reply.Granted.Lease.ID)
		return v.granted(reply.Granted), nil
	case reply.Queued != nil:
		v.door.places.given(reply.Queued.Ticket.ID)
		if len(keys) == 0 && reply.Queued.Key != "" {
			keys = []string{string(reply.Queued.Key)}
		}
		v.agent.Follow(agent.Place{Ticket: reply.Queued.Ticket.ID, Flow: v.flow, Keys: keys})
		return v.queued(reply.Queued), nil
	case reply.Refused != nil && reply.Refused.Code == interlock.CodeHeld:
		return v.held(reply)
	case reply.Refused != nil:
		a, err := v.refused(reply.Refused)
		if len(ticket) > 0 && !reply.Refused.Code.Transient() {
			v.door.places.over(ticket[0])
		}
		if a != nil && reply.Refused.Code.Transient() && len(ticket) > 0 {
			a.Ticket = ticket[0]
			v.agent.Follow(agent.Place{Ticket: ticket[0], Flow: v.flow, Keys: keys})
		}
		return a, err
	}
	return nil, errors.New("the API skipped a request that was to wait")
}

// held is the answer to a request that did not want to wait.
func (v *visit) held(reply *agent.Reply) (*answer, error) {
	var p api.ProblemDocument
	if err := json.Unmarshal(reply.Document, &p); err != nil {
		return v.refused(reply.Refused)
	}
	a := &answer{Outcome: "held", Holders: holdersOf(p.Holders), quotes: true}
	a.Message = isHeld(api.Key(p.Key), p.Holders) +
		" Do other work, or call acquire with if_held wait to stand in the queue."
	if p.Line != nil {
		eta := seconds(p.Line.ETA)
		a.ExpectedWait = &eta
	}
	return a, nil
}

// keep keeps a lease alive.
func (v *visit) keep(in *acquireArguments) (*answer, error) {
	var request api.RenewRequest
	if in.Progress != "" {
		request.Progress, _ = json.Marshal(in.Progress)
	}
	v.door.deliveries.confirm(in.Lease)
	var g api.Granted
	_, err := v.do(api.Request{
		Method: http.MethodPost, Path: "/v1/leases/" + url.PathEscape(in.Lease) + "/renew", Body: request, Again: true,
	}, &g)
	if err != nil {
		return nil, err
	}
	g.Changed, g.Notes = false, nil // the grant had them
	a := v.granted(&g)
	a.Outcome = "kept"
	return a, nil
}

type waitArguments struct {
	Ticket string `json:"ticket"`
	WaitS  *int   `json:"wait_s"`
	Leave  bool   `json:"leave"`
}

// wait is the tool that follows a ticket.
func wait(v *visit) (*answer, error) {
	var in waitArguments
	if err := v.read(&in); err != nil {
		return nil, err
	}
	d, err := v.waitFor(in.WaitS, defaultWait)
	switch {
	case err != nil:
		return nil, err
	case in.Ticket == "":
		return nil, v.required("ticket", "the id that acquire or send returned")
	case isTask(in.Ticket) && in.Leave:
		return v.cancelTask(in.Ticket)
	case isTask(in.Ticket):
		return v.followTask(in.Ticket, d)
	case !isTicket(in.Ticket):
		return nil, misusef("%q is no ticket: use the id exactly as acquire or send returned it.", clip(in.Ticket, 16))
	case in.Leave:
		v.door.deliveries.confirm(in.Ticket)
		if err := v.agent.Leave(v.ctx, in.Ticket); err != nil {
			return nil, err
		}
		v.door.places.over(in.Ticket)
		return &answer{
			Outcome: "left",
			Message: "You left the queue, and hold nothing by this ticket.",
			about:   in.Ticket,
		}, nil
	}
	v.door.places.wait(in.Ticket)
	defer v.door.places.exit(in.Ticket, true)
	v.door.deliveries.confirm(in.Ticket)
	v.door.deliveries.grant(v.ctx, v.delivery, in.Ticket, v.following(in.Ticket, nil), nil)
	reply, err := v.agent.Wait(v.ctx, v.flow, in.Ticket, 0)
	if err == nil {
		reply, err = v.stand(in.Ticket, reply, d)
	}
	if v.ctx.Err() != nil {
		return nil, v.ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if p := reply.Refused; p != nil && p.Code == interlock.CodeReleased {
		v.door.places.over(in.Ticket)
		return &answer{
			Outcome: "released", about: in.Ticket,
			Message: "The lease of this ticket was released: by you, or since its turn came and was not taken up in time. " +
				"Acquire the keys again if you still need them.",
		}, nil
	}
	return v.told(reply, nil, in.Ticket)
}

type releaseArguments struct {
	Lease   string `json:"lease"`
	Note    string `json:"note"`
	Outcome string `json:"outcome"`
}

// release is the tool that releases a lease.
func release(v *visit) (*answer, error) {
	var in releaseArguments
	if err := v.read(&in); err != nil {
		return nil, err
	}
	if in.Lease == "" {
		return nil, v.required("lease", "the id that acquire returned")
	}
	v.door.deliveries.confirm(in.Lease)
	if in.Outcome == "" {
		in.Outcome = "done"
	}
	ctx, cancel := context.WithDeadline(v.ctx, v.began.Add(maxCall))
	defer cancel()
	if err := v.agent.Release(ctx, in.Lease, api.ReleaseRequest{Outcome: in.Outcome, Note: in.Note}); err != nil {
		return nil, err
	}
	message := "The lease is released."
	if in.Note != "" {
		message += " The next holder gets your note."
	}
	return &answer{Outcome: "released", Message: message, about: in.Lease}, nil
}
