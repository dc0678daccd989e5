package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// refuseFor answers the command's caller with it.
func (e *Engine) refuseFor(no *store.Refusal) {
	eff := e.refuse(no.Code, no.Message)
	if eff.Conflict = no.Conflict; eff.Conflict == nil {
		eff.Conflict = &store.Conflict{Conflict: interlock.Conflict{Key: no.Key, Nearest: no.Nearest}}
	}
}

// checkClaims rewrites the claims' keys in their canonical spelling and returns a refusal if a
// pattern does not admit one of them, or nil. Claims of the lease had, nil for none, were
// admitted once and may be kept.
func (e *Engine) checkClaims(claims []interlock.Claim, group string, had *store.Request) *store.Refusal {
	if no := store.OutsideGroup(e.head.Principal, group); no != nil && had == nil {
		return no
	}
	s := e.PendingWork.NS
	for i := range claims {
		c := &claims[i]
		p, key := s.Fit(c.Key)
		c.Key = key
		p.Complete(c)
		if no := store.ReservedKey(key, e.head.Principal); no != nil {
			return no
		}
		if had != nil && had.Has(*c) {
			continue
		}
		if p == nil && s.Closed() {
			return s.UnknownKey(c.Key)
		}
		if no := p.Forbids(*c, e.head.Principal, group); no != nil {
			no.Key = key
			return no
		}
		if no := s.ForbidsAround(*c, e.head.Principal); no != nil {
			return no
		}
	}
	if key, twice := duplicate(claims); twice {
		return &store.Refusal{
			Code: interlock.CodeDuplicateClaim, Key: key,
			Message: message.New(message.ClaimedTwiceRespelled, message.Str(key)),
		}
	}
	return nil
}

// bound sets the times of a request in s that was admitted for sess, or for no session, by its keys' patterns: their
// defaults where it names none, and their limits.
func (c *Acquire) bound(s *store.Namespace, sess *store.Session) {
	if s == nil || len(s.Patterns) == 0 {
		return
	}
	found := make([]*store.Policy, 0, 4)
	for _, claim := range c.Claims {
		if p := s.PolicyAt(string(claim.Key)); p != nil && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	leftOut := c.TTL == 0
	for _, p := range found {
		if leftOut {
			c.TTL = tighter(c.TTL, p.TTL)
		}
		if c.Grace == 0 {
			c.Grace = p.Grace
		}
	}
	for _, p := range found {
		if p.MaxTTL > 0 && cmp.Or(c.TTL, sess.LeaseTTL()) > p.MaxTTL {
			c.TTL = p.MaxTTL
		}
		if p.MaxGrace > 0 && c.Grace != NoGrace && cmp.Or(c.Grace, interlock.DefaultGrace) > p.MaxGrace {
			c.Grace = p.MaxGrace
		}
		c.MaxHold = tighter(c.MaxHold, p.MaxHold)
		c.Stall = tighter(c.Stall, p.Stall)
		c.MaxWait = tighter(c.MaxWait, p.MaxWait)
		c.LockDelay = max(c.LockDelay, p.LockDelay)
	}
}

// ttlFor returns the ttl that lease r has when its holder asks for one: that of a new request for its
// keys.
func ttlFor(r *store.Request, ttl time.Duration) time.Duration {
	c := Acquire{LeaseRequest: interlock.LeaseRequest{Claims: r.Claims(), Terms: interlock.Terms{TTL: ttl}}}
	c.bound(r.NS, r.Session())
	return withDefaults(c.Terms, r.Session()).TTL
}

// tighter returns the smaller of two bounds, where 0 is no bound.
func tighter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
