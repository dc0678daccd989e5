package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// errLeaving reports that the server granted a lease again that this client was just returning.
var errLeaving = errors.New("the lease is being released")

// Acquire asks for a lease and returns it, or why not:
//
//   - *interlock.Error with CodeHeld, CodeDeadlock and the rest of the server's
//     refusals. With CodeOutcomeUnknown ctx ended before the answer came; the
//     request is then given up in the background.
//   - an error that is ErrSkipped, when Request.OnConflict is interlock.Skip and another holder
//     already does it.
//   - the context's cause, wrapped, when it ended while the request stood in line. The place in
//     line is left, so nothing is granted later without a receiver.
//   - ErrUnreachable, wrapped, when it was never sent; ErrClosed after Close.
//
// When it is granted in the very moment in which ctx ends, the lease is returned.
// A server that is shutting down or has too much to do is asked again, with
// growing, jittered pauses, until ctx ends or Config.RetryFor has passed.
func (c *Client) Acquire(ctx context.Context, req Request) (*Lease, error) {
	flow := c.flow(ctx, req.Flow)
	return c.obtain(ctx, askAnew, req.OnQueued, func() *call {
		k := c.newCall(proto.OpAcquire)
		k.op.LeaseRequest, k.op.Brief = req.body(flow), true
		k.op.TakeOver = c.predecessor()
		k.member = req.member
		return k
	})
}

// obtain gets a lease by an operation that brings one.
func (c *Client) obtain(
	ctx context.Context, retry func(error) bool, queued func(interlock.Ticket, []interlock.Holder), prepare func() *call,
) (*Lease, error) {
	g, err := c.insist(ctx, retry, queued, prepare)
	if err != nil {
		return nil, err
	}
	return g.handle(ctx), nil
}

// insist carries out an operation that may stand in line, and asks again after an error that
// retry accepts: askAgain, or askAnew for one that asks for a new lease.
func (c *Client) insist(
	ctx context.Context, retry func(error) bool, queued func(interlock.Ticket, []interlock.Holder), prepare func() *call,
) (g *grant, err error) {
	err = c.again(ctx, retry, func() (err error) {
		g, err = c.attempt(ctx, prepare(), queued)
		return err
	})
	return g, err
}

// again calls do until retry does not accept its error, with a pause between calls.
func (c *Client) again(ctx context.Context, retry func(error) bool, do func() error) error {
	var began time.Time
	pace := Backoff{Most: reconnectMost}
	for {
		err := do()
		if err == nil || !retry(err) {
			return err
		}
		isFirst := began.IsZero()
		if isFirst {
			began = time.Now()
		}
		if c.cfg.RetryFor > 0 && time.Since(began) >= c.cfg.RetryFor {
			return err
		}
		if isFirst && err == errLeaving { // its release is on its way already
			continue
		}
		var estimate time.Duration
		if refusal, ok := errors.AsType[*interlock.Error](err); ok {
			estimate = refusal.Advice.RetryAfter
		}
		if cause := pace.Wait(ctx, estimate); cause != nil {
			return fmt.Errorf("%w (%w)", err, cause)
		}
	}
}

// askAgain reports whether an operation that may stand in line and failed with err is repeated
// here: it had no effect, and only the server prevented it.
func askAgain(err error) bool {
	if err == errLeaving || serverBusy(err) {
		return true
	}
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return false
	}
	switch refusal.Code {
	case interlock.CodeOfferLapsed, interlock.CodeUnknownTicket: // its turn came while the connection was broken
		return true
	}
	return false
}

// askAnew reports the same of an operation that asks for a new lease. To one that names a lease
// these codes mean that there is none any more, however often it is asked.
func askAnew(err error) bool {
	if askAgain(err) {
		return true
	}
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return false
	}
	switch refusal.Code {
	case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeUnknownLease:
		// It was granted while the connection was broken, and has ended since.
		return true
	}
	return false
}

// serverBusy reports whether the server refused because it is shutting down or has too much to
// do.
func serverBusy(err error) bool {
	refusal, ok := errors.AsType[*interlock.Error](err)
	return ok && refusal.Code.Transient()
}

func (c *Client) attempt(
	ctx context.Context, k *call, queued func(interlock.Ticket, []interlock.Holder),
) (*grant, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	what := k.what() // from begin on the call is not ours alone
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking for %s: %w", what, context.Cause(ctx))
	}
	if err := c.begin(k); err != nil {
		return nil, err
	}
	return c.await(ctx, k, what, queued)
}

// await waits for the end of an operation that may stand in line. what is its name in errors.
func (c *Client) await(
	ctx context.Context, k *call, what string, queued func(interlock.Ticket, []interlock.Holder),
) (*grant, error) {
	until := ctx
	for {
		news, ended := k.next(until)
		switch {
		case ended:
			switch was, refusal := c.forget(k); was {
			case standing:
				return nil, fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
			case ready:
				return nil, c.notSent(ctx, refusal)
			case sent:
				return nil, unknown(ctx, "the request for "+what)
			}
			until = context.Background() // it was decided just now
		case news == done:
			g, err := k.grant, k.err
			c.free(k)
			return g, err
		case queued != nil:
			c.mu.Lock()
			stands, ticket, holders := k.phase == standing, k.ticket, k.holders
			c.mu.Unlock()
			if stands {
				queued(ticket, holders)
			}
		}
	}
}

// forget cancels a call that its waiter abandons, and returns how far it had come, and why not
// further if it was held back. If it was done it is still the waiter's, else it is not.
func (c *Client) forget(k *call) (was phase, refusal error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = k.phase
	switch was {
	case ready:
		if k.goesOn() {
			k.forgotten = true // it is sent when there is a server again
			return sent, nil
		}
		was, refusal = k.left(), k.err
		c.unqueue(k)
		c.free(k)
	case sent:
		k.forgotten = true
	case standing:
		if k.op.Kind == proto.OpPullTasks {
			k.forgotten = true // a lease that it may have been granted comes to it, and is returned
			break
		}
		if k.follows() {
			c.stopFollowing(k)
			c.free(k)
			break
		}
		k.untie()
		delete(c.sess.tickets, k.ticket.ID)
		if c.sess.waits[k.second] == k {
			delete(c.sess.waits, k.second)
		}
		c.leave(k)
		c.free(k)
	}
	return was, refusal
}

// clampPriority makes a priority one that can be sent. The server refuses values out of range.
func clampPriority(p int) int { return max(min(p, 1<<20), -1<<20) }

// body returns the operation that sends req for flow.
func (req *Request) body(flow string) interlock.LeaseRequest {
	return interlock.LeaseRequest{
		Claims: claimsOf(req), Any: req.Any, Prefix: req.Prefix, Flow: flow, Purpose: req.Purpose, Trace: req.Trace,
		Terms:    req.Terms,
		Priority: clampPriority(req.Priority), OnConflict: req.OnConflict, AsOf: req.AsOf, Documents: req.Documents,
	}
}

func claimsOf(req *Request) []interlock.Claim {
	claims := make([]interlock.Claim, 0, len(req.Keys)+len(req.Claims))
	for _, key := range req.Keys {
		claims = append(claims, interlock.Claim{Key: key, Mode: req.Mode})
	}
	return append(claims, req.Claims...)
}
