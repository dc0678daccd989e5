package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// No answer about a shard leaves before the journal has confirmed, after the request arrived,
// that this server still owns the shard. Whatever passes through the shard (call.do, read,
// look, listen, and every operation of a stream) has that confirmation by itself. An answer
// from another source, such as the keys that sign fences, a file, or the entries of the
// journal, asks for it: call.confirm for a caller with a namespace, confirmer for all others.

// confirm returns when the journal has confirmed that this server owns the shard. It
// takes its turn among the commands of the caller's namespace. ok as for do.
func (c *call) confirm() (at interlock.At, ok bool) {
	return c.read(func(*engine.Engine, engine.Time) {})
}

// confirmShared is confirm for a call that is about no tenant: it needs no credential,
// so however many of them come, the journal is asked once for all. A journal that does
// not answer within limit refuses the call.
func (c *call) confirmShared(s *Server, limit time.Duration) (at interlock.At, ok bool) {
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	at, err := s.confirmer.confirm(ctx)
	switch {
	case err == nil:
		return at, true
	case errors.Is(err, context.DeadlineExceeded) && !c.gone():
		c.refuse(
			interlock.CodeNotOwner,
			fmt.Sprintf("the journal has not confirmed within %v that this server still owns the shard", limit),
		)
	default:
		c.failWith(err)
	}
	return at, false
}

// confirmer asks the journal whether this server still owns the shard. Callers that come
// while it asks share the next question, because an answer counts only for those that
// came before the question.
//
//	callers   a ──┐      b ──┬ c ──┐        d ──┐
//	journal       └─► 1 ─────┘     └─► 2 ───────┴─► 3
type confirmer struct {
	server *Server

	mu    sync.Mutex
	next  *confirmation // for those that come now; nil without any
	busy  bool          // ask runs
	asked time.Time     // when the last question began
}

// confirmation is one question and its answer.
type confirmation struct {
	done chan struct{} // closed when at and err are set
	at   interlock.At
	err  error
}

// confirmPause is the least time between two questions, so that calls without a
// credential cannot keep the journal from its work.
const confirmPause = 5 * time.Millisecond

// confirm returns the newest durable state, as of a moment after the call when this server owned
// the shard; or ctx's error, or the shard's.
func (c *confirmer) confirm(ctx context.Context) (interlock.At, error) {
	c.mu.Lock()
	n := c.next
	if n == nil {
		n = &confirmation{done: make(chan struct{})}
		c.next = n
		if !c.busy {
			c.busy = true
			go c.ask()
		}
	}
	c.mu.Unlock()
	select {
	case <-n.done:
		return n.at, n.err
	case <-ctx.Done():
		return interlock.At{}, ctx.Err()
	}
}

// ask asks for as long as there are callers.
func (c *confirmer) ask() {
	for {
		c.mu.Lock()
		if c.next == nil {
			c.busy = false
			c.mu.Unlock()
			return
		}
		pause := confirmPause - time.Since(c.asked)
		c.mu.Unlock()
		if pause > 0 {
			<-time.After(pause)
		}
		c.mu.Lock()
		n := c.next
		c.next, c.asked = nil, time.Now()
		c.mu.Unlock()
		n.at, n.err = c.server.shard.Read(context.Background(), "", func(*engine.Engine, engine.Time) {})
		close(n.done)
	}
}

// readyTimeout is how long /readyz waits for the journal.
const readyTimeout = 2 * time.Second

// getReadiness is GET /readyz: whether the server is ready for a role and does not drain. It is
// ready to be active if its journal has just confirmed that it owns a shard, and ready to stand by if it owns
// none. Without a role it is ready if it answers for every namespace: as the owner of the shard, or by way of the
// owner.
func (c *call) getReadiness() {
	role := c.query.Get("role")
	switch role {
	case "", "active", "standby", "any":
	default:
		c.refuse(
			interlock.CodeInvalidRequest, fmt.Sprintf("parameter role: want active, standby or any, found %q", clipped(role)),
		)
		return
	}
	select {
	case <-c.s.shard.Failed():
		c.failed()
		return
	case <-c.s.Draining():
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down")
		return
	default:
	}
	owned := []*Server{c.s}
	if c.s.directory != nil {
		owned = here(c.s.directory)
	}
	switch {
	case role == "any", role == "standby" && len(owned) == 0:
		c.ok(c.s.shard.At())
		return
	case role == "standby":
		c.refuse(interlock.CodeNotOwner, "this server is active and does not stand by")
		return
	case c.s.directory != nil && !c.reaches(role):
		return
	}
	at, ok := interlock.At{}, true
	for _, s := range owned {
		if at, ok = c.confirmShared(s, readyTimeout); !ok {
			return
		}
	}
	c.ok(at)
}

// reaches reports whether a router owns a shard, or, without a role, knows the owner of each. When not, the call
// was answered.
func (c *call) reaches(role string) bool {
	owned := 0
	for _, at := range c.s.directory.Locations() {
		if at.Server != nil {
			owned++
		} else if role == "" && !at.Unreached.IsZero() {
			c.fail(ownerSilent(at.Active))
			return false
		} else if role == "" && (c.s.forward == nil || at.Active.HTTP == "") {
			c.active = at.Active
			c.fail(notOwner(at.Active))
			return false
		}
	}
	if role == "active" && owned == 0 {
		c.active = c.s.directory.Locate(interlock.DefaultNamespace).Active
		c.fail(notOwner(c.active))
		return false
	}
	return true
}

// getHealth reports whether the process can still answer. If not, it must be restarted. It
// is about the process alone, and asks no journal.
func (c *call) getHealth() {
	if f := c.s.forward; f != nil && f.Woken != nil && c.r.Header.Get(lookHeader) != "" {
		f.Woken()
	}
	select {
	case <-c.s.shard.Failed():
		c.failed()
	default:
		c.ok(c.s.shard.At())
	}
}

// failed answers with the reason why the shard is finished. Its errors are the journal's
// and name no tenant.
func (c *call) failed() {
	err := c.s.shard.Err()
	c.s.log.Debug("health check of a failed shard", "error", err)
	if e, ok := errors.AsType[*interlock.Error](err); ok {
		c.refuse(e.Code, e.Message)
		return
	}
	c.refuse(
		interlock.CodeNotOwner, "this server has lost its journal: restart it, or use the server that took over",
	)
}

func (c *call) ok(at interlock.At) {
	j := c.reply()
	j.str("status", "ok")
	if c.s.directory != nil && len(here(c.s.directory)) == 0 {
		j.str("role", "standby")
	} else {
		j.str("role", "active")
	}
	c.send(http.StatusOK, j, at)
}
