package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/shard"
)

// Calls that cost what the journal has, and not what they answer: reports, timelines, pages of events backwards, and
// questions about earlier states. A namespace has historyPlaces of them at a time. The rest waits in line for
// historyWait, and ends with its caller. So does the work of each: it takes turns at a desk (see shard.Desk).
//
// Events up to the newest one, which clients compare before they write, wait in a line of their own, and only while
// all places of readers of events are taken (see enterPage): readers that stay must not keep those that end from
// their turns.
const (
	historyPlaces = 2
	pagePlaces    = 8
	historyWait   = 10 * time.Second
)

// histories are the places of each namespace.
type histories struct {
	places int
	mu     sync.Mutex
	desks  map[interlock.Namespace]*historyDesk
}

// historyDesk is the places of a namespace. It is forgotten with its last user.
type historyDesk struct {
	*shard.Desk
	users int
}

// enter takes a place; leave returns it, the first time.
func (h *histories) enter(ctx context.Context, ns interlock.Namespace) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	h.mu.Lock()
	d := h.desks[ns]
	if d == nil {
		d = &historyDesk{Desk: shard.NewDesk(h.places)}
		if h.desks == nil {
			h.desks = map[interlock.Namespace]*historyDesk{}
		}
		h.desks[ns] = d
	}
	d.users++
	h.mu.Unlock()
	left := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if d.users--; d.users == 0 {
			delete(h.desks, ns)
		}
	}
	if err := d.Enter(ctx, ns); err != nil {
		left()
		return nil, err
	}
	return sync.OnceFunc(func() {
		d.Leave()
		left()
	}), nil
}

// enterHistories waits for a place of the call's namespace. ok is false when the call was answered, else it calls
// leave.
func (c *call) enterHistories() (leave func(), ok bool) {
	return c.enterLine(&c.s.histories, fmt.Sprintf("its history with %d calls", historyPlaces))
}

// enterPage admits a reader of events that ends at the newest one: as one of the readers of events, or, while a
// namespace has as many as it may, in the line of pages. ok is false when the call was answered, else it calls leave.
func (c *call) enterPage() (leave func(), ok bool) {
	if left, ok := c.s.streams.enter(c.namespace); ok {
		return c.countStream(left), true
	}
	left, ok := c.enterLine(&c.s.pages, fmt.Sprintf("events with %d calls", c.s.streams.max+pagePlaces))
	if !ok {
		return nil, false
	}
	return c.countStream(left), true
}

// enterLine waits for a place of the call's namespace. read is what the calls of the line read. ok is false when the
// call was answered, else it calls leave.
func (c *call) enterLine(line *histories, read string) (leave func(), ok bool) {
	c.allow(historyWait + writeTimeout)
	leave, err := line.enter(c.r.Context(), c.namespace)
	switch {
	case err == nil:
		return leave, true
	case errors.Is(err, context.DeadlineExceeded) && !c.gone():
		c.retryAfter(time.Second)
		c.refuse(interlock.CodeOverloaded, fmt.Sprintf(
			"namespace %s reads %s already, and none ended within %s: repeat the call in a moment, and make one after "+
				"the other", c.namespace, read, historyWait,
		))
	default:
		c.failWith(err)
	}
	return nil, false
}

// compute does the work of a call on what it has read, in its turn. ok is false when the caller has gone meanwhile.
func (c *call) compute(work func()) (ok bool) {
	if err := c.s.reading.Enter(c.r.Context(), c.namespace); err != nil {
		c.failWith(err)
		return false
	}
	defer c.s.reading.Leave()
	work()
	return true
}
