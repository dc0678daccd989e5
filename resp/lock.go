package resp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/invisible"
)

// permanentTTL is the ttl of a key that was set without one.
const permanentTTL = interlock.MaxTTL

// state is what a key is.
type state uint8

const (
	free    state = iota
	ours          // a lease of this door, under the client's credential
	foreign       // whatever else keeps SET NX from it
)

// held is a key with its lease.
type held struct {
	state     state
	lease     interlock.LeaseID
	fence     interlock.Fence
	value     string
	permanent bool // set without a ttl
	keys      int  // of the lease
	left      time.Duration
	agent     string // the holder's name
	claim     claim
	// SET may replace it without a condition, or renew it with its value.
	replaceable, renewable bool
}

// claim is what a key that is not free is to a client without its value.
type claim uint8

const (
	others  claim = iota // it never had the key, as far as the door knows
	mine                 // it has the key
	unclear              // it, or a client that looks the same, has the key and had it before
	lost                 // it had the key before
)

// shows returns what GET answers for a key that is not free.
func (h *held) shows() string {
	if h.state == ours {
		return h.value
	}
	return "interlock:" + invisible.Line(h.agent)
}

// look reads what a key is from the shard.
func (c *client) look(key string) (h held, err error) {
	if err := c.endEarly(key); err != nil {
		return h, err
	}
	var lease interlock.Lease
	var principal string
	var exists bool
	var view engine.KeyView
	err = c.caller.Read(c.ctx, func(e *engine.Engine, namespace interlock.Namespace) (err error) {
		if lease, principal, exists, err = e.LeaseAt(namespace, interlock.Key(key)); err == nil && !exists {
			view, err = e.Key(namespace, interlock.Key(key))
		}
		return err
	})
	name, me := c.nameOf(key), c.owner()
	late := me != anyOwner && c.door.grants.isLate(name, me, time.Now())
	switch {
	case err != nil:
		return h, err
	case exists:
		h = held{
			state: foreign, lease: lease.ID, fence: lease.Fence, keys: len(lease.Claims), left: lease.ExpiresIn,
			agent: lease.Agent,
		}
		value, permanent, marked := valueOf(lease.Purpose)
		if late {
			h.claim = lost
		}
		if lease.Session != "" || !marked || principal != c.caller.Name() {
			return h, nil
		}
		h.state, h.value = ours, value
		h.permanent = permanent && lease.TTL == permanentTTL // else EXPIRE has given it a ttl
		x := c.door.grants.byLease(name, lease.ID)
		switch isMine := me == anyOwner || x == nil && lease.Agent == c.agent() || x != nil && x.owner == me; {
		case isMine && late:
			h.claim = unclear
		case isMine:
			h.claim = mine
		}
		if x != nil {
			h.replaceable = h.claim == mine && (x.conn == c.id || me == anyOwner)
			h.renewable = h.claim == mine && x.nx
			if early := c.door.grants.endsEarly(x); !early.IsZero() {
				h.left = max(time.Millisecond, time.Until(early))
			}
		}
	case len(view.Holders) > 0:
		h = held{state: foreign, agent: view.Holders[0].Agent, left: view.Holders[0].ExpiresIn}
		if late {
			h.claim = lost
		}
	}
	return h, nil
}

// withValue calls do with the key's lease if that has the value. do reports whether it found the lease
// alive. The answer is the state of the key and, for ours, whether it had the value and do was done.
func (c *client) withValue(key, value string, do func(h *held) (alive bool, err error)) (state, bool, error) {
	if x := c.door.grants.live(c.nameOf(key)); x != nil && x.value == value && x.principal == c.caller.Name() {
		if early := c.door.grants.endsEarly(x); early.IsZero() || time.Now().Before(early) {
			alive, err := do(&held{state: ours, lease: x.lease, value: value, keys: c.door.grants.count(x)})
			if err != nil || alive {
				return ours, alive, err
			}
			c.door.grants.end(x)
		}
	}
	h, err := c.look(key)
	if err != nil || h.state != ours || h.value != value {
		return h.state, false, err
	}
	alive, err := do(&h)
	if err != nil || alive {
		return ours, alive, err
	}
	return free, false, nil
}

// deleteWith deletes a key that has a value. The answer is that of withValue.
func (c *client) deleteWith(key, value string) (state, bool, error) {
	state, done, err := c.withValue(key, value, c.delete([]string{key}))
	if err == nil && !done {
		c.door.grants.arrivedWith(c.nameOf(key), value)
	}
	return state, done, err
}

// acquire takes keys that are all free, as one lease. A ttl of 0 is none. ok is false if they are not free.
func (c *client) acquire(keys []string, value string, ttl time.Duration) (ok bool, err error) {
	return c.acquireFor(keys, value, ttl, true)
}

// acquireFor is acquire, with whether the client asked for it only if the keys are free.
func (c *client) acquireFor(keys []string, value string, ttl time.Duration, nx bool) (ok bool, err error) {
	permanent := ttl == 0
	if permanent {
		ttl = permanentTTL
	}
	purpose, err := purposeOf(value, permanent)
	if err != nil {
		return false, err
	}
	cmd := &engine.Acquire{Agent: c.agent(), LeaseRequest: interlock.LeaseRequest{
		Purpose: purpose, OnConflict: interlock.Fail,
		Terms: interlock.Terms{TTL: max(ttl, interlock.MinTTL), Grace: interlock.NoGrace},
	}}
	_, _ = rand.Read(cmd.ID[:])
	bytes, names := len(value), make([]string, len(keys))
	for i, key := range keys {
		if err := c.endEarly(key); err != nil {
			return false, err
		}
		cmd.Claims = append(cmd.Claims, interlock.Claim{Key: interlock.Key(key), Mode: interlock.Exclusive})
		names[i] = c.nameOf(key)
		bytes += len(key)
	}
	eff, err := c.caller.Do(c.ctx, cmd, bytes)
	if isHeld(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	lease := &eff.Lease
	x := &grant{
		lease: lease.ID, principal: c.caller.Name(), value: value, keys: names, owner: c.owner(), conn: c.id, nx: nx,
	}
	if lease.TTL < ttl {
		short := lease.TTL
		_, err := c.release(&held{lease: x.lease})
		return false, errors.Join(err, tooLong(ttl, short))
	}
	c.setTime(x, ttl, lease.LockDelay > 0)
	c.door.grants.put(x, time.Now())
	return true, nil
}

// tooLong refuses a ttl that the server would shorten: the client would believe that it holds the key
// longer than it does.
func tooLong(ttl, most time.Duration) error {
	return &usageError{fmt.Sprintf(
		"the pattern of the key allows a ttl of %v at most, and not %v: set a shorter one", most, ttl,
	)}
}

// setTime sets the time of a grant. A ttl below the server's minimum is kept here: the lease lives for
// the minimum, and the door releases it early. If the process ends before that, the lease lives longer,
// never shorter. Keys that stay closed when their holder dies are left to the server.
func (c *client) setTime(x *grant, ttl time.Duration, closed bool) {
	now := time.Now()
	ends, early := now.Add(ttl), time.Time{}
	if ttl < interlock.MinTTL && !closed {
		ends, early = now.Add(interlock.MinTTL), ends
	}
	door, bearer, namespace := c.door, c.bearer, c.namespace
	c.door.grants.time(x, ttl, ends, early, func() { door.endInTime(x, bearer, namespace) })
}

// release releases a lease. alive is false if it was over.
func (c *client) release(h *held) (alive bool, err error) {
	_, err = c.caller.Do(c.ctx, &engine.Release{Lease: h.lease}, 0)
	if isGone(err) {
		return false, nil
	}
	return err == nil, err
}

// delete releases the lease of keys. If it has others, too, it is converted to those, and has another
// fence from then on.
func (c *client) delete(keys []string) func(h *held) (alive bool, err error) {
	return func(h *held) (alive bool, err error) {
		if h.keys > len(keys) {
			return c.deleteSome(h.lease, keys)
		}
		return c.deleteAll(h.lease, keys[0])
	}
}

// deleteAll releases a lease with a key.
func (c *client) deleteAll(id interlock.LeaseID, key string) (alive bool, err error) {
	alive, err = c.release(&held{lease: id})
	if x := c.door.grants.byLease(c.nameOf(key), id); x != nil && err == nil {
		c.door.grants.drop(x)
	}
	return alive, err
}

// deleteSome takes keys out of the lease that they have with others. If no other is left by now, the lease
// ends.
func (c *client) deleteSome(id interlock.LeaseID, keys []string) (alive bool, err error) {
	c.door.cuts.Lock() // from the look at the keys of the lease until they are changed
	defer c.door.cuts.Unlock()
	var left []interlock.Claim
	err = c.caller.Read(c.ctx, func(e *engine.Engine, namespace interlock.Namespace) error {
		lease, _, exists, err := e.LeaseAt(namespace, interlock.Key(keys[0]))
		if err != nil || !exists || lease.ID != id {
			return err
		}
		alive, left = true, slices.Clone(lease.Claims)
		for _, key := range keys {
			view, err := e.Key(namespace, interlock.Key(key)) // as it is spelled
			if err != nil {
				return err
			}
			left = slices.DeleteFunc(left, func(claim interlock.Claim) bool { return claim.Key == view.Key })
		}
		return nil
	})
	if err != nil || !alive {
		return false, err
	}
	if len(left) == 0 {
		return c.deleteAll(id, keys[0])
	}
	cmd := &engine.Convert{Lease: id, OnConflict: interlock.Fail, Claims: left}
	_, _ = rand.Read(cmd.ID[:])
	_, err = c.caller.Do(c.ctx, cmd, 0)
	if isGone(err) {
		return false, nil
	}
	c.door.grants.cut(cmd.Lease, c.nameOf, keys)
	return err == nil, err
}

// expire sets the ttl of the lease of keys. One that is not above zero ends it.
func (c *client) expire(keys []string, ttl time.Duration) func(h *held) (bool, error) {
	return func(h *held) (alive bool, err error) {
		if ttl <= 0 {
			return c.delete(keys)(h)
		}
		x, left := c.door.grants.byLease(c.nameOf(keys[0]), h.lease), h.left
		if x != nil {
			left = c.door.grants.left(x)
		}
		if h.keys > len(keys) && ttl < left {
			return false, &usageError{fmt.Sprintf(
				"key %s is one of %d that were taken together, and have one ttl: to set a shorter one would end the locks of "+
					"the others early. Set it for all, or delete the key", keys[0], h.keys,
			)}
		}
		if x != nil {
			if !c.door.grants.beginRenewal(x) {
				return false, nil
			}
			defer c.door.grants.endRenewal(x)
		}
		eff, err := c.caller.Do(c.ctx, &engine.Renew{Lease: h.lease, TTL: max(ttl, interlock.MinTTL)}, 0)
		if isGone(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if eff.Lease.TTL < ttl {
			return false, tooLong(ttl, eff.Lease.TTL)
		}
		closed := eff.Lease.LockDelay > 0
		if x == nil { // of an earlier process: now it is known
			x = &grant{lease: h.lease, principal: c.caller.Name(), value: h.value, owner: c.owner()}
			for _, claim := range eff.Lease.Claims {
				x.keys = append(x.keys, c.nameOf(string(claim.Key)))
			}
			c.setTime(x, ttl, closed)
			c.door.grants.put(x, time.Now())
			return true, nil
		}
		c.setTime(x, ttl, closed)
		return true, nil
	}
}

// endEarly ends the lease of a key if its ttl below the server's minimum is over.
func (c *client) endEarly(key string) error {
	x := c.door.grants.get(c.nameOf(key))
	if x == nil {
		return nil
	}
	if !c.door.grants.beginEnd(x) {
		return nil
	}
	_, err := c.release(&held{lease: x.lease})
	if err == nil {
		c.door.grants.end(x)
	}
	return err
}

// endInTime ends a lease at the end of its ttl below the server's minimum, if that was not changed.
func (s *Server) endInTime(x *grant, bearer, namespace string) {
	if !s.grants.beginEnd(x) {
		return
	}
	caller, err := s.cfg.API().Caller(bearer, namespace)
	if err != nil {
		return // the server's minimum ends it
	}
	if _, err := caller.Do(s.ctx, &engine.Release{Lease: x.lease}, 0); err == nil || isGone(err) {
		s.grants.end(x)
	}
}
