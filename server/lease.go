package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// acquire is POST /v1/leases.
func (c *call) acquire() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Acquire{Head: h, ID: freshID(), Trace: traceparent(c.r.Header.Get("Traceparent"))}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeAcquire(d, cmd) }) {
		return
	}
	if wait > 0 {
		cmd.Attach = true
		c.await(cmd, &cmd.Head, wait)
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.tell(&eff, at)
	}
}

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
	if wait > 0 {
		cmd.Attach = true
		c.await(cmd, &cmd.Head, min(time.Duration(wait)*time.Millisecond, interlock.MaxLongPoll))
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.tell(&eff, at)
	}
}

// await carries out a command that may be queued, and waits within the call for
// the end of the wait. It ends in one of these ways:
//
//	answered            granted, or refused for good (200, 409, 410)
//	time is up          queued: the place lives on under its ticket (202)
//	the caller leaves   the place lives on if the caller can find it again, by its
//	                    ticket or its request id; else it is given up
//	the server drains   a new request is told its ticket (202); who asked after a
//	                    ticket is told to ask again in a moment (503)
func (c *call) await(cmd engine.Command, h *engine.Head, wait time.Duration) {
	in := make(inbox, inboxSize)
	reset := c.s.resets.next()
	h.From, h.Link = in, c.s.nextLink()
	base := engine.Head{Namespace: h.Namespace, Session: h.Session, Actor: h.Actor, From: in, Link: h.Link}
	acquire, isAcquire := cmd.(*engine.Acquire)
	// The engine owns the command once it is submitted.
	findable := !isAcquire || acquire.RequestID != ""
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
			if findable {
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
	if last.eff.Outcome == engine.Queued && !isAcquire && c.s.isDraining() {
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

// tell answers with what became of a request for a lease.
func (c *call) tell(eff *engine.Effect, at interlock.At) {
	switch eff.Outcome {
	case engine.Granted:
		c.granted(eff, at)
	case engine.Queued, engine.Skipped:
		c.conflict(eff, at)
	default:
		c.refused(eff, at)
	}
}

func (c *call) granted(eff *engine.Effect, at interlock.At) {
	j := c.reply()
	j.str("outcome", "granted")
	writeLease(j, "lease", &eff.Lease)
	j.bool("changed", eff.Lease.Changed)
	j.bool("reused", eff.Lease.Reused)
	writeNotes(j, eff.Lease.Notes)
	writeAdvice(j, adviceFor(eff))
	c.send(http.StatusOK, j, at)
}

// conflict is for the two outcomes that are no refusal although somebody is in the
// way: queued and skipped.
func (c *call) conflict(eff *engine.Effect, at interlock.At) {
	status := http.StatusOK
	advice := adviceFor(eff)
	j := c.reply()
	j.str("outcome", eff.Outcome.String())
	if eff.Outcome == engine.Queued {
		status = http.StatusAccepted
		writeTicket(j, &eff.Ticket)
		c.retryAfter(advice.RetryAfter)
	}
	if x := eff.Conflict; x != nil {
		j.str("key", string(x.Key))
		if x.Kind != "" {
			j.str("conflict_kind", string(x.Kind))
		}
		writeHolders(j, x.Holders, x.More)
	} else {
		writeHolders(j, nil, 0)
	}
	writeAdvice(j, advice)
	c.send(status, j, at)
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

// getLease is GET /v1/leases/{id}.
func (c *call) getLease() {
	id, ok := c.leaseID()
	if !ok {
		return
	}
	if eff, at, ok := c.do(&engine.GetLease{Head: c.head(), Lease: id}); ok {
		c.granted(&eff, at)
	}
}

// renew is POST /v1/leases/{id}/renew. It takes no Idempotency-Key: to repeat a
// renewal is to renew.
func (c *call) renew() {
	id, ok := c.leaseID()
	if !ok {
		return
	}
	cmd := &engine.Renew{Head: c.head(), Lease: id}
	if !c.body(func(d *jsonIn) { decodeProgress(d, &cmd.Progress) }) {
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.granted(&eff, at)
	}
}

// release is POST /v1/leases/{id}/release.
func (c *call) release() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	id, ok := c.leaseID()
	if !ok {
		return
	}
	cmd := &engine.Release{Head: h, Lease: id}
	if !c.body(func(d *jsonIn) { decodeRelease(d, cmd) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("released", at)
	}
}

// done answers that it was carried out.
func (c *call) done(outcome string, at interlock.At) {
	j := c.reply()
	j.str("outcome", outcome)
	c.send(http.StatusOK, j, at)
}

// traceparent takes the header of W3C Trace Context if it is one; what is not is
// ignored, as that specification asks.
func traceparent(s string) string {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || strings.HasPrefix(s, "ff") {
		return ""
	}
	for i := range len(s) {
		c := s[i]
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return ""
		}
	}
	return s
}
