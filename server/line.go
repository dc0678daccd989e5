package server

import (
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The line over HTTP: tickets, declared waits, and waiting within a call.

// getTicket is GET /v1/tickets/{id}. Asking after a ticket keeps it alive and
// takes up an offer, which no other GET of this API does. The reasons why it may:
// the caller names a secret that only the waiter has; what it changes is what the
// caller stood in line for; and an agent that must ask, see "offered", and then
// send a second call to accept would lose offers between the two. A page of
// another site cannot make a browser do it, because host.go refuses it first.
func (c *call) getTicket() {
	id, ok := c.ticketID()
	if !ok {
		return
	}
	wait, ok := c.intParam("wait_ms", 0, 0, 1<<40)
	if !ok {
		return
	}
	cmd := &engine.Poll{Head: c.head(), Ticket: id}
	c.inLine(cmd, &cmd.Head, &cmd.Attach, min(time.Duration(wait)*time.Millisecond, interlock.MaxLongPoll), true)
}

// deleteTicket is DELETE /v1/tickets/{id}.
func (c *call) deleteTicket() {
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

// declareWait is POST /v1/waits: a wait for another agent, which only the waiter knows of. It has a
// ticket like any other.
func (c *call) declareWait() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Declare{Head: h, ID: freshID()}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeDeclare(d, cmd) }) {
		return
	}
	c.inLine(cmd, &cmd.Head, &cmd.Attach, wait, h.RequestID != "")
}

// listWaits is GET /v1/waits.
func (c *call) listWaits() {
	graph := engine.WaitGraph{Namespace: c.namespace}
	at, ok := c.survey(&graph)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("edges")
	for i := range graph.Edges {
		writeWaitEdge(j, "", &graph.Edges[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

// inLine carries out a command that may be queued, and answers it: at once, or
// after it waited within the call. h and attach are fields of cmd. stays reports whether a caller that
// hung up can find its place in line again: by the ticket or the lease that it named, or by repeating
// its request under the same id.
func (c *call) inLine(cmd engine.Command, h *engine.Head, attach *bool, wait time.Duration, stays bool) {
	if wait > 0 {
		*attach = true
		c.await(cmd, h, wait, stays)
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.tell(&eff, at)
	}
}

// await carries out a command that may be queued, and waits within the call for the end of the
// wait. When the time is up the place lives on under its ticket. When the caller leaves it lives on
// if the caller can find it again; else it is given up. When the server drains, a caller that asked
// after a ticket is asked to come again in a moment.
func (c *call) await(cmd engine.Command, h *engine.Head, wait time.Duration, stays bool) {
	_, follows := cmd.(*engine.Poll)
	last, ok := c.listen(cmd, h, wait, func(first *engine.Effect) *longPoll { return inLineFor(first.Ticket.ID, stays) })
	switch {
	case !ok:
	case last.eff.Outcome == engine.Queued && follows && c.s.isDraining():
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down: the ticket keeps its position, try again in "+
			"a moment")
	default:
		c.tell(&last.eff, last.at)
	}
}

// inLineFor waits for the end of a place in line, which stays if its caller can find it
// again.
func inLineFor(ticket interlock.TicketID, stays bool) *longPoll {
	return &longPoll{
		open:  func(eff *engine.Effect) bool { return eff.Outcome == engine.Queued },
		again: func(h engine.Head) engine.Command { return &engine.Poll{Head: h, Ticket: ticket, Attach: true} },
		last:  func(h engine.Head) engine.Command { return &engine.Poll{Head: h, Ticket: ticket} },
		leave: func(h engine.Head) engine.Command {
			if stays {
				return &engine.Detach{Head: h, Ticket: ticket}
			}
			return &engine.Leave{Head: h, Ticket: ticket}
		},
	}
}
