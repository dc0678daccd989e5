package server

import (
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The line over HTTP: tickets, declared waits, and waiting within a call.

// followTicket is GET /v1/tickets/{id}. Asking after a ticket keeps it alive and
// takes up an offer, which no other GET of this door does. The reasons why it may:
// the caller names a secret that only the waiter has; what it changes is what the
// caller stood in line for; and an agent that must ask, see "offered", and then
// send a second call to accept would lose offers between the two. A page of
// another site cannot make a browser do it, because host.go refuses it first.
func (c *call) followTicket() {
	id, ok := c.ticketID()
	if !ok {
		return
	}
	wait, ok := c.intParam("wait_ms", 0, 0, 1<<40)
	if !ok {
		return
	}
	cmd := &engine.Poll{Head: c.head(), Ticket: id}
	c.inLine(cmd, &cmd.Head, &cmd.Attach, min(time.Duration(wait)*time.Millisecond, interlock.MaxLongPoll))
}

// leave is DELETE /v1/tickets/{id}.
func (c *call) leave() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	id, ok := c.ticketID()
	if !ok {
		return
	}
	if _, at, ok := c.do(&engine.Leave{Head: h, Ticket: id}); ok {
		c.done("left", at)
	}
}

// declare is POST /v1/waits: a wait for somebody, which only the one who waits
// knows of. It has a ticket like any other.
func (c *call) declare() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Declare{Head: h, ID: freshID()}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeDeclare(d, cmd) }) {
		return
	}
	c.inLine(cmd, &cmd.Head, &cmd.Attach, wait)
}

// waits is GET /v1/waits.
func (c *call) waits() {
	graph := engine.WaitGraph{Namespace: c.namespace}
	at, ok := c.survey(&graph)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("edges")
	for i := range graph.Edges {
		w := &graph.Edges[i]
		j.open("")
		j.open("waiter")
		writeParty(j, w.Waiter.Agent, w.Waiter.Session, w.Waiter.Flow)
		j.close()
		j.open("blocker")
		writeParty(j, w.Blocker.Agent, w.Blocker.Session, w.Blocker.Flow)
		j.close()
		j.str("key", string(w.Key))
		j.str("mode", w.Mode.String())
		j.bool("ahead", w.Ahead)
		j.ms("waited_ms", w.Waited)
		j.close()
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

// inLine carries out a command that may be queued, and answers it: at once, or
// after it waited within the call. h and attach are fields of cmd.
func (c *call) inLine(cmd engine.Command, h *engine.Head, attach *bool, wait time.Duration) {
	if wait > 0 {
		*attach = true
		c.await(cmd, h, wait)
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.tell(&eff, at)
	}
}

// findable says whether a caller that hung up can find its place in line again: by
// the ticket or the lease that it named, or by repeating its request under the
// same id.
func findable(cmd engine.Command, h *engine.Head) bool {
	switch cmd.(type) {
	case *engine.Acquire, *engine.Declare:
		return h.RequestID != ""
	}
	return true
}

// await carries out a command that may be queued, and waits within the call for
// the end of the wait. It ends in one of these ways:
//
//	answered            granted, or refused for good (200, 409, 410)
//	time is up          queued: the place lives on under its ticket (202)
//	the caller leaves   the place lives on if the caller can find it again; else it
//	                    is given up
//	the server drains   a new request is told its ticket (202); who asked after a
//	                    ticket is told to ask again in a moment (503)
func (c *call) await(cmd engine.Command, h *engine.Head, wait time.Duration) {
	in := make(inbox, inboxSize)
	reset := c.s.resets.next()
	h.From, h.Link = in, c.s.nextLink()
	base := engine.Head{Namespace: h.Namespace, Session: h.Session, Actor: h.Actor, From: in, Link: h.Link}
	_, follows := cmd.(*engine.Poll)
	stays := findable(cmd, h) // the engine owns the command once it is submitted
	if err := c.s.shard.Submit(cmd); err != nil {
		c.failWith(err)
		return
	}
	last, ok := c.next(in) // the first answer comes at once, whatever it is
	if !ok {
		return
	}
	c.s.obs.Answered(cmd, &last.eff)
	if last.eff.Outcome != engine.Queued {
		c.tell(&last.eff, last.at)
		return
	}
	ticket := last.eff.Ticket.ID
	poll := func(attach bool) bool {
		if err := c.s.shard.Submit(&engine.Poll{Head: base, Ticket: ticket, Attach: attach}); err != nil {
			c.failWith(err)
			return false
		}
		return true
	}

	c.allow(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case last = <-in:
			if last.eff.Outcome != engine.Queued {
				c.tell(&last.eff, last.at)
				return
			}
		case <-reset:
			// The engine was made anew and forgot that this call listens.
			reset = c.s.resets.next()
			if !poll(true) {
				return
			}
		case <-timer.C:
			waiting = false
		case <-c.s.shard.Failed():
			c.failed()
			return
		case <-c.s.draining:
			waiting = false
		case <-c.r.Context().Done():
			c.status = statusClientGone
			base.From = nil
			if stays {
				c.s.insist(&engine.Detach{Head: base, Ticket: ticket})
			} else {
				c.s.insist(&engine.Leave{Head: base, Ticket: ticket})
			}
			return
		}
	}
	// Nobody listens from here on. What was granted in the meantime comes first.
	if !poll(false) {
		return
	}
	if last, ok = c.next(in); !ok {
		return
	}
	if last.eff.Outcome == engine.Queued && follows && c.s.isDraining() {
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down: the ticket keeps its place, ask again in a moment")
		return
	}
	c.tell(&last.eff, last.at)
}

// inbox receives the answers of one call that waits.
type inbox chan answer

type answer struct {
	eff engine.Effect
	at  interlock.At
}

// inboxSize is more than a call can get: the first answer, the end of the wait,
// and one for each Poll, of which a call has one under way.
const inboxSize = 16

// Deliver implements shard.Receiver: it never blocks.
func (in inbox) Deliver(eff *engine.Effect, at interlock.At) {
	select {
	case in <- answer{*eff, at}:
	default:
	}
}

// next takes the answer that is under way. ok is false when the shard ended before
// it gave one; the call is answered then.
func (c *call) next(in inbox) (a answer, ok bool) {
	select {
	case a = <-in:
		return a, true
	case <-c.s.shard.Failed():
	}
	select {
	case a = <-in:
		return a, true
	default:
		c.refuse(interlock.CodeOutcomeUnknown, "the server lost its journal before it could answer: repeat the request with the same request id")
		return a, false
	}
}

// allow lifts the connection's deadlines for a call that takes its time.
func (c *call) allow(d time.Duration) {
	rc := http.NewResponseController(c.w)
	// A recorder in a test has no deadlines.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Now().Add(d + writeTimeout))
}
