package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/packet"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/internal/traceparent"
)

// acquireLease is POST /v1/leases.
func (c *call) acquireLease() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Acquire{Head: h, ID: freshID(), LeaseRequest: interlock.LeaseRequest{
		Trace: c.traceparent(),
	}}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeAcquire(d, cmd) }) {
		return
	}
	c.inLine(cmd, &cmd.Head, &cmd.Attach, wait, h.RequestID != "")
}

// ofLease begins a call that changes a lease.
func (c *call) ofLease() (h engine.Head, id interlock.LeaseID, ok bool) {
	if h, ok = c.mutating(); !ok {
		return h, id, false
	}
	id, ok = c.leaseID()
	return h, id, ok
}

// convertLease is POST /v1/leases/{id}/convert.
func (c *call) convertLease() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.Convert{Head: h, Lease: id, ID: freshID()}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeConvert(d, cmd) }) {
		return
	}
	c.inLine(cmd, &cmd.Head, &cmd.Attach, wait, true)
}

// arriveAtBarrier is POST /v1/leases/{id}/arrive.
func (c *call) arriveAtBarrier() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.Arrive{Head: h, Lease: id, ID: freshID()}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeArrive(d, cmd) }) {
		return
	}
	c.inLine(cmd, &cmd.Head, &cmd.Attach, wait, true)
}

// parkLease is POST /v1/leases/{id}/park.
func (c *call) parkLease() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.Park{Head: h, Lease: id}
	if !c.body(func(d *jsonIn) { decodePark(d, cmd) }) {
		return
	}
	eff, at, ok := c.do(cmd)
	if !ok {
		return
	}
	j := c.reply()
	j.str("outcome", "parked")
	writeLease(j, "lease", &eff.Lease)
	writeAdvice(j, prose.For(&eff))
	c.send(http.StatusOK, j, at)
}

// resumeLease is POST /v1/leases/{id}/resume.
func (c *call) resumeLease() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.Resume{Head: h, Lease: id}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeResume(d, cmd) }) {
		return
	}
	if wait <= 0 {
		c.inLine(cmd, &cmd.Head, &cmd.Attach, 0, true)
		return
	}
	// A lease that asks a person is resumed when that is answered, and may stand in line then.
	cmd.Attach = true
	for until := time.Now().Add(wait); ; {
		var asks bool
		next := *cmd // the engine owns a command that was submitted
		last, ok := c.listen(&next, &next.Head, time.Until(until), func(first *engine.Effect) *longPoll {
			if asks = first.Question != nil; asks {
				return untilAnswered(cmd)
			}
			return inLineFor(first.Ticket.ID, true)
		})
		switch {
		case !ok:
			return
		case asks && last.eff.Code == interlock.CodeParked && !c.s.isDraining() && time.Now().Before(until):
		default:
			c.tell(&last.eff, last.at)
			return
		}
	}
}

// untilAnswered waits for the answer about a parked lease, which cmd is to resume then.
func untilAnswered(cmd *engine.Resume) *longPoll {
	resume := func(h engine.Head, attach bool) engine.Command {
		again := *cmd
		again.Head, again.Attach = h, attach
		return &again
	}
	return &longPoll{
		open:  func(eff *engine.Effect) bool { return eff.Outcome == engine.Queued && eff.Question != nil },
		again: func(h engine.Head) engine.Command { return resume(h, true) },
		last:  func(h engine.Head) engine.Command { return resume(h, false) },
		leave: func(h engine.Head) engine.Command {
			return &engine.Detach{Head: h, Ticket: interlock.TicketID(cmd.Lease)}
		},
	}
}

// tell answers with the outcome of a request for a lease.
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
	c.writeStale(j, eff.Lease.Stale, eff.Lease.StaleMore, packet.Grant)
	if l := &eff.Lease; l.Documents != nil {
		writeEvidence(j, l.Documents)
		j.decimal("as_of", uint64(l.AsOf))
		if l.DocumentsMore {
			j.bool("documents_more", true)
		}
	}
	writeTexts(j, "warnings", warningsOf(eff))
	writeAdvice(j, prose.For(eff))
	c.send(http.StatusOK, j, at)
}

// warningsOf returns the warnings of a grant, and of documents missing from those that come with
// it.
func warningsOf(eff *engine.Effect) []string {
	cut := slices.IndexFunc(eff.Lease.Documents, isTruncated)
	if cut < 0 && !eff.Lease.DocumentsMore {
		return prose.Sentences(eff.Warnings)
	}
	list := prose.Sentences(eff.Warnings)
	if cut >= 0 {
		list = append(list, fmt.Sprintf(
			"documents without a value are too large for a grant: read them with GET /v1/state/{key}, such as %s",
			eff.Lease.Documents[cut].Key,
		))
	}
	if eff.Lease.DocumentsMore {
		list = append(
			list,
			"the grant does not include all documents below the claimed keys: read the others with GET "+
				"/v1/state?prefix={key}/&values=true",
		)
	}
	return list
}

// conflict is for the two outcomes that are no refusal although the request is blocked: queued
// and skipped.
func (c *call) conflict(eff *engine.Effect, at interlock.At) {
	status := http.StatusOK
	advice := prose.For(eff)
	j := c.reply()
	j.str("outcome", eff.Outcome.String())
	if eff.Outcome == engine.Queued {
		status = http.StatusAccepted
		writeTicket(j, "ticket", &eff.Ticket)
		c.retryAfter(advice.RetryAfter)
	}
	if x := eff.Conflict; x != nil {
		writeConflict(j, x)
		writeHolders(j, x.Holders, x.More)
	} else {
		writeHolders(j, nil, 0)
	}
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	writeAdvice(j, advice)
	c.send(status, j, at)
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

// renewLease is POST /v1/leases/{id}/renew. An Idempotency-Key counts for a change of the ttl
// alone: to repeat a renewal is to renew.
func (c *call) renewLease() {
	id, ok := c.leaseID()
	if !ok {
		return
	}
	cmd := &engine.Renew{Head: c.head(), Lease: id}
	if !c.body(func(d *jsonIn) { d.renewRequest(cmd) }) {
		return
	}
	h, ok := c.mutating()
	if !ok {
		return
	}
	if cmd.TTL != 0 { // a renewal that changes nothing remembers nothing
		cmd.Head = h
	}
	if eff, at, ok := c.do(cmd); ok {
		c.granted(&eff, at)
	}
}

// releaseLease is POST /v1/leases/{id}/release.
func (c *call) releaseLease() { c.giveBack(&engine.Release{}, "released") }

// giveBack ends a lease by its holder's will, which cmd is the rest of; outcome is the
// word for it.
func (c *call) giveBack(cmd *engine.Release, outcome string) {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd.Head, cmd.Lease = h, id
	if !c.body(func(d *jsonIn) { d.releaseRequest(cmd) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done(outcome, at)
	}
}

// done answers that it was carried out.
func (c *call) done(outcome string, at interlock.At) {
	j := c.reply()
	j.str("outcome", outcome)
	c.send(http.StatusOK, j, at)
}

// traceparent returns the trace context of the request, "" for none.
func (c *call) traceparent() string { return traceparent.Clean(c.r.Header.Get("Traceparent")) }
