package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Lease is a handle on a granted lease. Several handles of one flow may stand
// for the same lease.
type Lease struct {
	g   *grant
	ctx context.Context // that of Acquire

	// Client.mu guards the rest.
	own      context.Context // what Context gave out
	cancel   context.CancelCauseFunc
	released bool

	once sync.Once
	err  error // of Release
}

// grant is a lease that the server gave, with all its handles. Client.mu guards
// what changes.
type grant struct {
	c    *Client
	s    *session
	info interlock.Lease
	at   interlock.At

	capAt   time.Time // when max_hold ends it; zero for never
	refs    int       // handles that were not released
	handles []*Lease  // those whose Context was asked for
	why     *interlock.Error
	ended   bool // the server said that nothing is left of it
	warned  chan struct{}
	warning bool
}

func (g *grant) key() interlock.Key {
	if len(g.info.Claims) == 0 {
		return ""
	}
	return g.info.Claims[0].Key
}

// lose tells the holder, once.
func (g *grant) lose(why *interlock.Error) {
	if g.why != nil {
		return
	}
	g.why = why
	for _, l := range g.handles {
		l.cancel(why)
	}
	g.handles = nil
}

func (g *grant) warn() {
	g.warning = true
	if g.warned != nil {
		close(g.warned)
		g.warned = nil
	}
}

// Context is cancelled when the lease is lost or released; context.Cause then
// gives an *interlock.Error with the reason. It has the values of the context
// given to Acquire, and carries the lease's flow, but does not end with it.
func (l *Lease) Context() context.Context {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	if l.own == nil {
		l.own, l.cancel = context.WithCancelCause(WithFlow(context.WithoutCancel(l.ctx), l.g.info.Flow))
		switch {
		case l.g.why != nil:
			l.cancel(l.g.why)
		case l.released:
			l.cancel(releasedHere(l.g))
		default:
			l.g.handles = append(l.g.handles, l)
		}
	}
	return l.own
}

// Fence is the number to pass along wherever the agent writes.
func (l *Lease) Fence() interlock.Fence { return l.g.info.Fence }

// ID is the lease's id: a secret of its holder.
func (l *Lease) ID() interlock.LeaseID { return l.g.info.ID }

// Claims are what the lease covers.
func (l *Lease) Claims() []interlock.Claim { return slices.Clone(l.g.info.Claims) }

// Flow is the flow that holds the lease.
func (l *Lease) Flow() string { return l.g.info.Flow }

// Notes are what earlier holders left, oldest first: other agents' text.
func (l *Lease) Notes() []interlock.Note { return slices.Clone(l.g.info.Notes) }

// Changed says that somebody who could write held a claimed key while this
// request waited: read again before thinking.
func (l *Lease) Changed() bool { return l.g.info.Changed }

// Info is the lease as the server granted it, times included.
func (l *Lease) Info() interlock.Lease {
	info := l.g.info
	info.Claims, info.Notes = slices.Clone(info.Claims), slices.Clone(info.Notes)
	return info
}

// At says at which index of the journal the lease was granted or found.
func (l *Lease) At() interlock.At { return l.g.at }

// Warned is closed when the server says that the lease is in its soft tier: a
// third of its time is left and heartbeats did not arrive, or max_hold comes near.
func (l *Lease) Warned() <-chan struct{} {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	if l.g.warning {
		return closedChannel
	}
	if l.g.warned == nil {
		l.g.warned = make(chan struct{})
	}
	return l.g.warned
}

var closedChannel = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// Err is nil while the lease is held, as far as this client can tell, and then
// the *interlock.Error that says why it is not.
func (l *Lease) Err() error {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	switch {
	case l.g.why != nil:
		return l.g.why
	case l.released:
		return releasedHere(l.g)
	}
	return nil
}

func releasedHere(g *grant) *interlock.Error {
	return &interlock.Error{Code: interlock.CodeReleased, Key: g.key(), At: g.at, Message: "the lease on " + string(g.key()) + " was released"}
}

// Release gives the handle back; the last handle of a lease frees it. Calling it
// again returns what the first call returned. An *interlock.Error says that the
// lease was already gone, and why (expired, taken, revoked); with CodeOutcomeUnknown
// ctx ended before the answer came, and the release goes on in the background.
func (l *Lease) Release(ctx context.Context, out Outcome) error {
	l.once.Do(func() { l.err = l.release(ctx, out) })
	return l.err
}

func (l *Lease) release(ctx context.Context, out Outcome) error {
	c, g := l.g.c, l.g
	k := c.newCall(proto.OpRelease)
	k.op.ID, k.op.Outcome, k.op.Note = g.info.ID, out.Outcome, out.Note
	invalid := k.check()
	if invalid != nil {
		k.op.Outcome, k.op.Note = "", "" // the lease is freed nevertheless
	}
	c.mu.Lock()
	l.released = true
	g.refs--
	if l.cancel != nil && g.why == nil {
		l.cancel(releasedHere(g))
		g.handles = slices.DeleteFunc(g.handles, func(other *Lease) bool { return other == l })
	}
	var over error
	switch {
	case g.refs > 0:
		over = errStillHeld
	case g.why != nil && (g.ended || g.s != c.sess):
		over = g.why
	case c.closed != nil:
		over = ErrClosed
	}
	if over != nil {
		c.mu.Unlock()
		c.free(k)
		if over == errStillHeld {
			return invalid
		}
		return over
	}
	delete(g.s.leases, g.info.ID)
	g.s.leaving[g.info.ID] = struct{}{}
	c.submit(k)
	c.mu.Unlock()
	select {
	case <-k.news:
	case <-ctx.Done():
		if c.forget(k) != done {
			return unknown(ctx, "the release of "+string(g.key()))
		}
	}
	err := k.err
	c.free(k)
	if err == nil {
		err = invalid
	}
	return err
}

var errStillHeld = errors.New("another handle holds the lease")
