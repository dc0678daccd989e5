package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/guard/signed"
)

// Signed fences, for resources that check a fence without asking this server: see
// guard/signed.

// signLease is POST /v1/leases/{id}/statement. A statement never holds for longer than the
// lease would without another sign of life.
func (c *call) signLease() {
	id, ok := c.leaseID()
	if !ok {
		return
	}
	ttl := signed.DefaultTTL
	if !c.body(func(d *jsonIn) {
		d.statementRequest(&ttl)
		if d.err == nil && (ttl <= 0 || ttl > signed.MaxTTL) {
			d.err = &interlock.Error{
				Code: interlock.CodeInvalidTTL, Message: fmt.Sprintf("field ttl_ms: want 1 to %d", signed.MaxTTL.Milliseconds()),
			}
		}
	}) {
		return
	}
	now := time.Now() // before the lease is looked at, so that what is left of it is not overstated
	eff, at, ok := c.do(&engine.GetLease{Head: c.head(), Lease: id, Sign: true})
	if !ok {
		return
	}
	l := &eff.Lease
	switch l.State {
	case interlock.Held, interlock.Soft, interlock.Grace:
	default:
		c.refuse(interlock.CodeParked, fmt.Sprintf("the lease is %s, so its holder may not write: resume it first", l.State))
		return
	}
	s := signed.Statement{
		Namespace: c.namespace, Claims: l.Claims, Fence: l.Fence,
		Holder: signed.Holder{Agent: cleanText(l.Agent), Session: l.Session, Flow: cleanText(l.Flow)},
	}
	text, key, err := c.s.fences.Sign(&s, now, min(ttl, l.ExpiresIn))
	if err != nil {
		c.failWith(err)
		return
	}
	j := c.reply()
	j.str("statement", text)
	j.str("key_id", key)
	j.ms("expires_in_ms", s.Expires.Sub(s.Issued))
	c.send(http.StatusOK, j, at)
}

// keysTimeout is how long GET /v1/fences/keys waits for the journal.
const keysTimeout = 10 * time.Second

// listFenceKeys is GET /v1/fences/keys. A verifier with an older set notices a new key by its id and
// asks again, so the set may be kept for a while. A former owner of the shard does not have the
// keys that its successor made, so it must not answer.
func (c *call) listFenceKeys() {
	keys := c.s.fences.KeySet(time.Now())
	if c.s.directory != nil {
		var ok bool
		if keys, ok = c.allKeys(); !ok {
			return
		}
	} else if _, ok := c.confirmShared(c.s, keysTimeout); !ok {
		return
	}
	set, err := json.Marshal(keys)
	if err != nil {
		c.failWith(err)
		return
	}
	c.w.Header().Set("Cache-Control", "public, max-age=60")
	c.plain("application/jwk-set+json", set)
}

// allKeys collects the keys of all shards, each from its owner. When one is missing, the call was refused: a
// verifier must not take a set for whole that lacks keys.
func (c *call) allKeys() (keys signed.KeySet, ok bool) {
	ctx, cancel := context.WithTimeout(c.r.Context(), keysTimeout)
	defer cancel()
	keys = signed.KeySet{}
	asked := map[string]bool{}
	for _, at := range c.s.directory.Locations() {
		switch {
		case at.Server != nil:
			if _, ok := c.confirmShared(at.Server, keysTimeout); !ok {
				return nil, false
			}
			maps.Copy(keys, at.Server.fences.KeySet(time.Now()))
			continue
		case c.r.Header.Get(hopsHeader) != "", asked[at.Active.HTTP]:
			continue // another server collects, or has them already
		}
		asked[at.Active.HTTP] = true
		theirs, err := signed.KeySet(nil), error(notOwner(at.Active))
		if c.s.forward != nil && at.Active.HTTP != "" {
			theirs, err = c.s.forward.keys(ctx, at.Active)
		}
		if err != nil {
			c.active = at.Active
			c.fail(notOwner(at.Active))
			return nil, false
		}
		maps.Copy(keys, theirs)
	}
	if len(keys) == 0 {
		c.fail(notOwner(Active{}))
		return nil, false
	}
	return keys, true
}

// rotateFenceKeys is POST /v1/fences/keys/rotate.
func (c *call) rotateFenceKeys() {
	// A page of another site could send a call without a body or a type.
	if !c.isJSON() || !c.body(func(d *jsonIn) { d.object(nil, nil) }) {
		return
	}
	at, ok := c.confirm()
	if !ok {
		return
	}
	key, err := c.s.fences.Rotate(time.Now())
	if err != nil {
		c.failWith(err)
		return
	}
	c.s.log.Info("the signing key of fences was rotated", "key_id", key, "by", c.identity.name())
	j := c.reply()
	j.str("outcome", "rotated")
	j.str("key_id", key)
	c.send(http.StatusOK, j, at)
}

// fenceOf returns the fence of a statement about key, of this call's namespace and signed by this
// server. ok as for do.
func (c *call) fenceOf(statement string, key interlock.Key) (fence interlock.Fence, ok bool) {
	// A statement has keys in the spelling of their patterns.
	var view engine.KeyView
	var err error
	if _, ok := c.read(func(e *engine.Engine, _ engine.Time) { view, err = e.Key(c.namespace, key) }); !ok {
		return 0, false
	}
	var s *signed.Statement
	if err == nil {
		now := time.Now()
		s, err = c.s.fences.KeySet(now).Verify(statement, now, signed.Want{Namespace: c.namespace, Key: view.Key})
	}
	if err != nil {
		c.failWith(err)
		return 0, false
	}
	return s.Fence, true
}
