package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
)

// bearer is the agent that may write a key, and its fence.
type bearer struct {
	agent, session string
	fence          interlock.Fence
}

// A proof checks whether the lease or statement of a caller is valid at this moment.
type proof func(ctx context.Context) (bearer, error)

// pass lets a call through if its caller may write the key: when it returns nil, the turn is
// taken, and what was shown was good a moment before that, or after it where the turn had to be
// waited for.
func (p *Proxy) pass(ctx context.Context, c *call, r *http.Request, turn *fenceTurn) *refusal {
	proof, no := p.proof(c, r.Header)
	if no != nil {
		return no
	}
	who, err := proof(ctx)
	if err != nil {
		return refusalOf(err, c.record.Key)
	}
	c.record.Agent, c.record.Session, c.record.Fence = who.agent, who.session, who.fence
	waited, err := turn.take(ctx, who.fence)
	if err == nil && waited {
		var now bearer
		if now, err = proof(ctx); err == nil && now.fence != who.fence {
			err = another(c.record.Key, who.fence, now.fence)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return unreachable("an earlier call under another fence did not end in time")
	}
	if err != nil {
		return refusalOf(err, c.record.Key)
	}
	return nil
}

// proof reads the lease or statement of a caller.
func (p *Proxy) proof(c *call, header http.Header) (proof, *refusal) {
	key := c.record.Key
	name := headerLease
	if c.rule.Demand == DemandStatement {
		name = headerStatement
	}
	shown, fences := header.Values(name), header.Values(headerFence)
	if len(shown) == 0 {
		return nil, required(key, name)
	}
	if len(shown) > 1 || len(fences) > 1 {
		return nil, malformed("the headers " + name + " and " + headerFence + " may occur once")
	}
	var read interlock.Fence // that the caller claims to have read under
	if len(fences) == 1 {
		n, err := strconv.ParseUint(fences[0], 10, 64)
		if err != nil || n == 0 {
			return nil, malformed("the header " + headerFence + " is not a decimal number above zero")
		}
		read = interlock.Fence(n)
	}
	var good proof
	if c.rule.Demand == DemandStatement {
		good = p.byStatement(shown[0], key)
	} else {
		id, err := interlock.ParseLeaseID(shown[0])
		if err != nil {
			return nil, &refusal{
				status: http.StatusBadRequest, code: interlock.CodeInvalidID, key: key,
				detail: "the header " + headerLease + " is not the id of a lease: want l_ and 32 " +
					"hexadecimal digits", action: interlock.ActFixRequest,
				next: "use the id exactly as Interlock returned it",
			}
		}
		good = p.byLease(id, key)
	}
	return func(ctx context.Context) (bearer, error) {
		who, err := good(ctx)
		if err == nil && read != 0 && read != who.fence {
			err = another(key, read, who.fence)
		}
		return who, err
	}, nil
}

// byLease asks Interlock for the lease, which proves that it is the caller's, and
// whether its fence may write the key, which is Interlock's to decide: keys may
// have other spellings there.
func (p *Proxy) byLease(id interlock.LeaseID, key interlock.Key) proof {
	return func(ctx context.Context) (bearer, error) {
		lease, err := p.api.Lease(ctx, id)
		if err == nil {
			err = p.api.CheckFence(ctx, key, lease.Fence)
		}
		return bearer{lease.Agent, lease.Session, lease.Fence}, err
	}
}

// byStatement verifies a signed fence, without a question to Interlock.
func (p *Proxy) byStatement(shown string, key interlock.Key) proof {
	return func(ctx context.Context) (bearer, error) {
		s, err := p.signed.verify(ctx, shown, key, time.Now())
		if err != nil {
			return bearer{}, err
		}
		return bearer{s.Holder.Agent, s.Holder.Session, s.Fence}, nil
	}
}

func required(key interlock.Key, header string) *refusal {
	what := "the lease's id in the header " + headerLease
	if header == headerStatement {
		what = "the lease's signed fence (POST /v1/leases/{id}/statement) in the header " + headerStatement
	}
	return &refusal{
		status: http.StatusPreconditionRequired, code: interlock.CodeLeaseRequired, key: key,
		detail: "this call needs an exclusive lease on " + string(key), action: interlock.ActFixRequest,
		next: "acquire " + string(key) + " at Interlock, read the state, and send the call again with " + what,
	}
}

// another is for a call that was decided under another fence than the lease has.
func another(key interlock.Key, read, now interlock.Fence) *refusal {
	return &refusal{
		status: http.StatusConflict, code: interlock.CodeFenced, key: key,
		detail: fmt.Sprintf("the call is under fence %d, and the lease has fence %d", read, now), action: interlock.ActReRead,
		next: "the lease was converted or resumed since: read again, then decide again under its current fence",
	}
}

func malformed(detail string) *refusal {
	return &refusal{
		status: http.StatusBadRequest, code: interlock.CodeInvalidRequest, detail: detail, action: interlock.ActFixRequest,
		next: "correct what the message names and send the request again",
	}
}
