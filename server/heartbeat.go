package server

import (
	"encoding/hex"
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// createSession is POST /v1/sessions.
func (c *call) createSession() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.OpenSession{Head: h, ID: freshID()}
	if !c.body(func(d *jsonIn) { d.openSessionRequest(cmd) }) {
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		j := c.reply()
		writeSession(j, "session", &eff.Session)
		c.send(http.StatusOK, j, at)
	}
}

// getSession is GET /v1/sessions/{id}.
func (c *call) getSession() {
	id, ok := c.sessionID()
	if !ok {
		return
	}
	h := c.head()
	h.Session = id
	eff, at, ok := c.do(&engine.ShowSession{Head: h})
	if !ok {
		return
	}
	j := c.reply()
	writeSession(j, "session", &eff.Session)
	j.openArray("leases")
	for i := range eff.Work.Leases {
		writeOwnLease(j, "", &eff.Work.Leases[i])
	}
	j.closeArray()
	j.openArray("tickets")
	for i := range eff.Work.Tickets {
		writeOwnTicket(j, "", &eff.Work.Tickets[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

// heartbeatSession is POST /v1/sessions/{id}/heartbeat.
func (c *call) heartbeatSession() {
	id, ok := c.sessionID()
	if !ok {
		return
	}
	cmd := &engine.Heartbeat{Head: c.head()}
	cmd.Session = id
	if !c.body(func(d *jsonIn) { d.heartbeatRequest(cmd) }) {
		return
	}
	eff, at, ok := c.do(cmd)
	if !ok {
		return
	}
	j := c.reply()
	writeSession(j, "session", &eff.Session)
	writeWarnings(j, eff.Losses, c.s.obs)
	writeLosses(j, eff.Losses)
	if eff.WantsList {
		j.bool("wants_list", true)
	}
	c.send(http.StatusOK, j, at)
}

// known reads which leases a client knows of.
func (d *jsonIn) known() *interlock.KnownLeases {
	k := &interlock.KnownLeases{}
	if has := d.knownLeases(k); k.Listed && has != knownLeasesHasLeases {
		d.fail("field %s: leases, or count and digest, not both", d.path)
	}
	return k
}

// leaseIDs reads a list of lease ids.
func (d *jsonIn) leaseIDs() (list []interlock.LeaseID) {
	d.array(interlock.MaxKnown, d.tooLong(interlock.MaxKnown), func() { list = append(list, d.leaseID()) })
	return list
}

// digest16 reads the digest of lease ids.
func (d *jsonIn) digest16() (sum [16]byte) {
	b, err := hex.DecodeString(d.str())
	if err != nil || len(b) != len(sum) {
		d.fail("field %s: want 32 hexadecimal digits", d.path)
		return sum
	}
	return [16]byte(b)
}

// A warning is about a lease that is still in force: it can be saved or finished, or another agent
// asks for it. A loss is about one that allows nothing new to be begun.

func writeWarnings(j *jsonOut, losses []engine.Loss, obs *Observer) {
	j.openArray("warnings")
	for i := range losses {
		l := &losses[i]
		if isOver(l.Lease.State) {
			continue
		}
		if l.Lease.State == interlock.Soft {
			obs.Answered(nil, &engine.Effect{Outcome: engine.Warned})
		}
		j.open("")
		writeLease(j, "lease", &l.Lease)
		advice := prose.ForLease(&l.Lease)
		if l.LeftOut {
			advice = prose.ForLeftOut(&l.Lease)
		}
		writeAdvice(j, advice)
		j.close()
	}
	j.closeArray()
}

func writeLosses(j *jsonOut, losses []engine.Loss) {
	j.openArray("losses")
	for i := range losses {
		l := &losses[i]
		if !isOver(l.Lease.State) {
			continue
		}
		j.open("")
		writeLease(j, "lease", &l.Lease)
		j.str("code", string(l.Code))
		j.text("detail", prose.Sentence(l.Message))
		writeAdvice(j, prose.ForLoss(&l.Lease, l.Code))
		j.close()
	}
	j.closeArray()
}

func isOver(s interlock.LeaseState) bool { return s == interlock.Grace || s == interlock.Ended }

// deleteSession is DELETE /v1/sessions/{id}. It needs no Idempotency-Key: a session
// that was closed is closed.
func (c *call) deleteSession() {
	id, ok := c.sessionID()
	if !ok {
		return
	}
	h := c.head()
	h.Session = id
	if _, at, ok := c.do(&engine.CloseSession{Head: h}); ok {
		c.done("closed", at)
	}
}
