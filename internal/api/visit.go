package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/endpoint"
)

// visit tries a request at one server after the other, each at most once a round, as long as it is
// certain that none has carried it out, or harmless if two do. It begins with the server that
// answered last. After a round in which no server was able to carry it out, a list of several begins
// another one, until ctx ends: a standby takes over within seconds. A list of one is tried once.
//
//	refused, no TLS ────────────────────────► the next server
//	silent, broken  ── may be repeated ─────► the next server
//	                └─ else ────────────────► *Unanswered; later requests: the next server
//	not_owner       ── active is listed ────► that server
//	                └─ else ────────────────► the next server
//	shutting_down ──────────────────────────► the next server
//	any other answer ───────────────────────► the caller
//
// A standby's address of the active server that is not on the list is not followed: the credential,
// and the ids of leases, would go to an address of the answering server's choice.
func (c *Client) visit(ctx context.Context, r Request, try func(context.Context, *url.URL) error) error {
	var unknown error // of an attempt that may have been carried out
	for round := 0; ; round++ {
		var err error
		seen := map[string]bool{} // in this round
		for tried := 1; ; tried++ {
			at := c.servers.Current()
			seen[c.servers.Addr(at)] = true
			err = try(ctx, c.cfg.Bases[at])
			failed, unanswered := errors.AsType[*Unanswered](err)
			if !unanswered && !isElsewhere(err) {
				return err
			}
			if ctx.Err() == context.Canceled {
				return err // the caller gave it up, so it shows nothing about the server
			}
			c.moveOn(at, err, seen)
			if unanswered && failed.Sent() {
				unknown = err
				if !r.movable() {
					return err
				}
			}
			if ctx.Err() != nil || tried >= c.servers.Places() {
				break
			}
		}
		if ctx.Err() != nil || !c.awaitsAnother(err) || endpoint.Pause(ctx, round) != nil {
			if unknown != nil && isUnanswered(err) {
				return unknown
			}
			return err
		}
	}
}

// moveOn has the next attempt go to another server than at: to the one that a standby named, unless
// that was tried already.
func (c *Client) moveOn(at int, err error, seen map[string]bool) {
	defer c.http.CloseIdleConnections() // those to one name may all lead to the same server
	if p, ok := errors.AsType[*Problem](err); ok && p.Active != nil {
		active, failed := url.Parse(p.Active.HTTP)
		if failed == nil && active.Scheme == c.cfg.Bases[at].Scheme {
			addr := HostPort(active)
			if !seen[addr] && c.servers.Follow(addr) {
				seen[addr] = true
				return
			}
		}
	}
	if isUnanswered(err) {
		c.servers.Silent(at)
	} else {
		c.servers.Failed(at)
	}
}

// prefer has the next call go to the owner of the shard, after the server at base has forwarded one to it.
func (c *Client) prefer(base *url.URL, owner string) {
	if owner == "" {
		return
	}
	if u, err := url.Parse(owner); err == nil && u.Scheme == base.Scheme {
		c.servers.Follow(HostPort(u))
	}
}

// awaitsAnother reports whether a round that ended with err is followed by another one.
func (c *Client) awaitsAnother(err error) bool {
	return c.servers.Len() > 1 || c.several() && isElsewhere(err)
}

// several reports whether there is more than one server to try.
func (c *Client) several() bool { return c.servers.Places() > 1 }

// share bounds one attempt, beyond Request.Wait, so that a silent server leaves time for the others.
func (c *Client) share(ctx context.Context, r Request) time.Duration {
	left := c.cfg.Timeout
	if end, ok := ctx.Deadline(); ok {
		left = min(left, max(0, time.Until(end)-r.Wait))
	}
	return endpoint.Share(left)
}

// movable reports whether the request may be sent to another server when it is not known whether
// one has carried it out.
func (r *Request) movable() bool { return r.Again || r.ID != "" || r.Method == http.MethodGet }

// isElsewhere reports whether err is the answer of a server that carries nothing out, and lets
// another one do it.
func isElsewhere(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && (p.Code == interlock.CodeNotOwner || p.Code == interlock.CodeShuttingDown)
}
