package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// soonestAlternative returns the alternative, among r's first MaxClaims, with the earliest
// expected grant.
func (e *Engine) soonestAlternative(r *store.Request) (best *store.Request) {
	if !r.Any {
		return r
	}
	var least time.Duration
	for _, b := range r.Alternatives[:min(len(r.Alternatives), interlock.MaxClaims)] {
		if eta := e.ticket(b).ETA; best == nil || eta < least {
			best, least = b, eta
		}
	}
	return best
}

// inTheWay describes what blocks r where it will probably be free first; nil when
// nothing does.
func (e *Engine) inTheWay(r *store.Request) *store.Conflict {
	way := e.soonestAlternative(r)
	if i := way.Blocker(); i >= 0 {
		return e.conflict(way, i)
	}
	return nil
}

// expand puts the keys that a prefix stands for in its place.
func (e *Engine) expand(c *Acquire) (interlock.Code, *message.Text) {
	if c.Prefix == "" {
		return "", nil
	}
	if len(c.Claims) > 0 {
		return interlock.CodeInvalidRequest, message.New(message.ClaimsAndPrefix)
	}
	if code, problem := store.CheckTexts(store.Text{
		Name: "prefix", Value: c.Prefix, Limit: interlock.MaxKeyBytes,
	}); code != "" {
		return code, problem
	}
	for _, key := range e.PendingWork.NS.MembersWith(c.Prefix) {
		c.Claims = append(c.Claims, interlock.Claim{Key: key, Mode: interlock.Exclusive})
	}
	if len(c.Claims) == 0 {
		return interlock.CodeUnknownPattern, message.New(
			message.NoMemberWithPrefix, message.Str(c.Namespace), message.Str(c.Prefix),
		)
	}
	c.Any = true
	return "", nil
}
