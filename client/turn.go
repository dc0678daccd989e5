package client

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// A link has a reader and a writer, and what a caller asks passes through both. Each time
// the scheduler may have to wake a thread on another processor that sleeps, which takes
// longer than all that is to be done. So a caller that is alone sends its request itself,
// and reads until it is answered:
//
//	many   caller ─► writer ─► server ─► reader ─► caller     each a goroutine
//	alone  caller ───────────► server ───────────► the same caller
//
// One goroutine reads at a time: the one that has the turn. The reader has it while several
// calls are open, and while none is. When it has read the answer to the only one, it lays the
// turn down in Client.turn for the next caller, which lays it down there again:
//
//	          an answer to the only call            waits for its answer
//	┌────────┐ ─────────────────────────► ┌───────┐ ────────────────────► ┌────────┐
//	│ reader │                            │ turn  │                       │ caller │
//	└────────┘ ◄───────────────────────── └───────┘ ◄──────────────────── └────────┘
//	    ▲      no caller came, or one                answered
//	    │      came that does not read                                         │
//	    └──────────────────────────────────────────────────────────────────────┘
//	                     answered, and others wait; or the link broke
//
// While the turn lies there nothing is read, so it lies for some milliseconds at most: what the
// server sends unasked is at worst as late as that.

// turnLies is how long the turn waits for a caller, or up to twice as long.
const turnLies = 5 * time.Millisecond

// turn is a link's part in that. Client.mu guards it, but for back.
type turn struct {
	back  chan struct{} // the reader has the turn again
	crowd bool          // several calls were open since the reader had its last frame
	clock *time.Timer   // returns it to the reader
	set   bool          // clock is
	used  bool          // a caller has had it since
	broke bool          // a caller has found that the link is
}

// leaveTurn lays the turn down after a frame if one caller at a time is all there is. If so,
// the reader waits until it is back. mu is held.
func (c *Client) leaveTurn(n *conn) (left bool) {
	_, possible := n.link.(proto.Interruptible)
	left = possible && !n.turn.crowd && len(n.in.Replies) == 1 && !c.busy(0)
	n.turn.crowd = false
	if left {
		c.lay(n)
	}
	return left
}

// lay lays the turn down, which the caller has. mu is held.
func (c *Client) lay(n *conn) {
	c.turn.Store(n)
	c.setClock(n)
}

// setClock sees to it that the turn does not lie there for long. mu is held.
func (c *Client) setClock(n *conn) {
	t := &n.turn
	if t.set {
		return
	}
	t.set, t.used = true, false
	if t.clock == nil {
		t.clock = time.AfterFunc(turnLies, func() { c.turnLay(n) })
	} else {
		t.clock.Reset(turnLies)
	}
}

// turnLay hands the turn to the reader if no caller has had it since the clock was set.
func (c *Client) turnLay(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.turn.set = false
	switch {
	case c.turn.Load() != n: // the caller that has it sets the clock again
	case n.turn.used:
		c.setClock(n)
	default:
		c.giveBack()
	}
}

// giveBack hands the turn to the reader if no caller has it.
func (c *Client) giveBack() {
	if n := c.turn.Swap(nil); n != nil {
		n.turn.back <- struct{}{}
	}
}

// cut ends the link that there is, and makes its reading goroutine find out. mu is held.
func (c *Client) cut(reason *interlock.Error) {
	c.conn.link.Close(reason)
	c.giveBack()
}

// busy reports whether anything is to be sent or has no answer, apart from so many waits.
// mu is held.
func (c *Client) busy(waits int) bool {
	s := c.sess
	return s == nil || len(c.front)+len(c.queue) > 0 || s.window.open() > 0 || len(s.waits) > waits
}

// launch submits a call for a caller that goes on with hear. mu is held, and is not any more
// when it returns.
func (c *Client) launch(k *call) {
	n := c.turn.Load()
	if n == nil || k.bulky || !n.sending.TryLock() {
		c.submit(k)
		c.mu.Unlock()
		return
	}
	defer n.sending.Unlock()
	c.queue = append(c.queue, k)
	n.out.Reset()
	c.fill(n, &n.out)
	c.mu.Unlock()
	n.send()
}

// hear waits until there is news of a call, or until ctx ends.
func (c *Client) hear(ctx context.Context, k *call) (p phase, ended bool) {
	if c.turn.Load() != nil {
		if n := c.turn.Swap(nil); n != nil {
			c.read(ctx, n, k)
		}
	}
	end := ctx.Done()
	if end == nil { // which is cheaper to wait for
		return <-k.news, false
	}
	select {
	case p = <-k.news:
		return p, false
	case <-end:
		return p, true
	}
}

// read takes the turn until there is news of k, or ctx ends, or the link has broken.
func (c *Client) read(ctx context.Context, n *conn, k *call) {
	if len(k.news) > 0 { // the former owner of the turn has read it
		c.mu.Lock()
		c.pass(n, k)
		c.mu.Unlock()
		return
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, n.interrupt)()
	}
	for more := true; more; {
		err := n.link.Recv(&n.in)
		c.mu.Lock()
		if err == nil {
			c.dispatch(n, &n.in)
		} else if !errors.Is(err, proto.ErrInterrupted) {
			n.turn.broke = true
		}
		if n.turn.broke || len(k.news) > 0 || ctx.Err() != nil {
			c.pass(n, k)
			more = false
		}
		c.mu.Unlock()
	}
}

// interrupt makes the caller that has the turn check whether its call has ended otherwise.
func (n *conn) interrupt() {
	if link, ok := n.link.(proto.Interruptible); ok {
		link.Interrupt()
	}
}

// pass ends the turn of k's caller. mu is held.
func (c *Client) pass(n *conn, k *call) {
	n.turn.used = true
	waits := 0
	if k.phase == standing {
		waits = 1 // its own
	}
	if n.turn.broke || c.busy(waits) {
		n.turn.back <- struct{}{}
		return
	}
	c.lay(n)
}
