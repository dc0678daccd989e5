package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// errLeaving says that the server gave a lease again which this client was just
// giving back.
var errLeaving = errors.New("the lease is being released")

// Acquire asks for a lease and returns it, or why not:
//
//   - *interlock.Error with CodeHeld, CodeDeadlock and the rest of the server's
//     refusals. With CodeOutcomeUnknown ctx ended before the answer came; the
//     request is then given up in the background.
//   - an error that is ErrSkipped, when Request.OnConflict is interlock.Skip and
//     somebody else already does it.
//   - the context's cause, wrapped, when it ended while the request stood in line.
//     The place in line is left, so nothing is granted later to nobody.
//   - ErrUnreachable, wrapped, when it was never sent; ErrClosed after Close.
//
// When it is granted in the very moment in which ctx ends, the lease is returned.
// A server that is shutting down or has too much to do is asked again, with
// growing, jittered pauses, until ctx ends or Config.RetryFor has passed.
func (c *Client) Acquire(ctx context.Context, req Request) (*Lease, error) {
	flow := c.flow(ctx, &req)
	var began time.Time
	for attempt := 0; ; attempt++ {
		g, err := c.tryAcquire(ctx, &req, flow)
		if err == nil {
			return &Lease{g: g, ctx: ctx}, nil
		}
		if !askAgain(err) {
			return nil, err
		}
		if began.IsZero() {
			began = time.Now()
		}
		if c.cfg.RetryFor > 0 && time.Since(began) >= c.cfg.RetryFor {
			return nil, err
		}
		if err == errLeaving {
			continue
		}
		if cause := pause(ctx, backoff(attempt)); cause != nil {
			return nil, fmt.Errorf("%w (%w)", err, cause)
		}
	}
}

// askAgain says whether an acquire that failed so is asked again here: nothing
// came of it, and nobody but the server was in the way.
func askAgain(err error) bool {
	if err == errLeaving {
		return true
	}
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return false
	}
	switch refusal.Code {
	case interlock.CodeShuttingDown, interlock.CodeOverloaded, interlock.CodeNotOwner:
		return true
	case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeOfferLapsed, interlock.CodeUnknownTicket, interlock.CodeUnknownLease:
		// It was granted while the connection was broken, and has ended since.
		return true
	}
	return false
}

func (c *Client) tryAcquire(ctx context.Context, req *Request, flow string) (*grant, error) {
	k := c.newCall(proto.OpAcquire)
	o := &k.op
	o.Claims = claimsOf(req)
	o.Flow, o.Purpose, o.Trace = flow, req.Purpose, req.Trace
	o.TTL, o.Grace, o.MaxHold = req.TTL, req.Grace, req.MaxHold
	o.OnConflict = req.OnConflict
	o.Priority = int32(max(min(req.Priority, 1<<20), -1<<20)) // the server refuses what is out of range
	if err := k.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquiring %s: %w", keyOf(o), context.Cause(ctx))
	}
	c.mu.Lock()
	if err := c.usable(); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	c.submit(k)
	c.mu.Unlock()
	return c.await(ctx, k, req)
}

// await waits for the end of an acquire.
func (c *Client) await(ctx context.Context, k *call, req *Request) (*grant, error) {
	end := ctx.Done()
	for {
		select {
		case <-k.news:
		case <-end:
			key := keyOf(&k.op)
			switch c.forget(k) {
			case standing:
				return nil, fmt.Errorf("waiting for %s: %w", key, context.Cause(ctx))
			case ready:
				return nil, fmt.Errorf("%w: %w", c.unreachable(nil), context.Cause(ctx))
			case sent:
				return nil, unknown(ctx, "the request for "+string(key))
			}
			end = nil // it was decided just now
		}
		c.mu.Lock()
		phase, ticket, holders := k.phase, k.ticket, k.holders
		c.mu.Unlock()
		switch phase {
		case done:
			g, err := k.grant, k.err
			c.free(k)
			return g, err
		case standing:
			if req.OnQueued != nil {
				req.OnQueued(ticket, holders)
			}
		}
	}
}

// forget gives up a call whose waiter goes away, and says how far it had come. If
// it was done it is still the waiter's, else it is not.
func (c *Client) forget(k *call) phase {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := k.phase
	switch was {
	case ready:
		if k.op.Kind == proto.OpRelease {
			k.forgotten = true // it is sent when there is a server again
			break
		}
		c.unqueue(k)
		c.free(k)
	case sent:
		k.forgotten = true
	case standing:
		k.untie()
		delete(c.sess.tickets, k.ticket.ID)
		if c.sess.waits[k.second] == k {
			delete(c.sess.waits, k.second)
		}
		c.leave(k.ticket.ID)
		c.free(k)
	}
	return was
}

func claimsOf(req *Request) []interlock.Claim {
	claims := make([]interlock.Claim, 0, len(req.Keys)+len(req.Claims))
	for _, key := range req.Keys {
		claims = append(claims, interlock.Claim{Key: key, Mode: req.Mode})
	}
	claims = append(claims, req.Claims...)
	for i := range claims {
		if claims[i].Mode == 0 {
			claims[i].Mode = interlock.Exclusive
		}
	}
	return claims
}

func keyOf(o *proto.Op) interlock.Key {
	if len(o.Claims) == 0 {
		return "nothing"
	}
	return o.Claims[0].Key
}
