package server

import (
	"errors"
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// checkFence is POST /v1/fences/check.
func (c *call) checkFence() {
	cmd := &engine.CheckFence{Head: c.head()}
	var statement string
	if !c.body(func(d *jsonIn) { statement = decodeCheckFence(d, cmd) }) {
		return
	}
	if statement != "" {
		var ok bool
		if cmd.Fence, ok = c.fenceOf(statement, cmd.Key); !ok {
			return
		}
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("valid", at)
	}
}

// revoke is POST /v1/revocations.
func (c *call) revoke() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Revoke{Head: h}
	if !c.body(func(d *jsonIn) { decodeRevoke(d, cmd) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("revoked", at)
	}
}

// journalHead is GET /v1/journal/head. The head is of the whole shard, whichever namespace
// the call is for.
func (c *call) journalHead() {
	head, at, err := c.s.shard.Head(c.r.Context())
	if err != nil {
		c.failWith(err)
		return
	}
	j := c.reply()
	j.str("head", head)
	c.send(http.StatusOK, j, at)
}

// healthz says whether the process can still answer. If not, it must be restarted.
func (c *call) healthz() {
	select {
	case <-c.s.shard.Failed():
		c.failed()
	default:
		c.ok()
	}
}

// readyz says whether new work should come here.
func (c *call) readyz() {
	select {
	case <-c.s.shard.Failed():
		c.failed()
	case <-c.s.draining:
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down")
	default:
		if c.s.standby != nil {
			c.fail(notOwner(c.s.standby()))
			return
		}
		c.ok()
	}
}

// failed tells why the shard is finished. Its errors are the journal's and name
// no tenant.
func (c *call) failed() {
	err := c.s.shard.Err()
	c.s.log.Debug("health asked of a failed shard", "error", err)
	var e *interlock.Error
	if errors.As(err, &e) {
		c.refuse(e.Code, e.Message)
		return
	}
	c.refuse(interlock.CodeNotOwner, "this server no longer has its journal: restart it, or go to the server that took over")
}

func (c *call) ok() {
	j := c.reply()
	j.str("status", "ok")
	if c.s.standby != nil {
		j.str("role", "standby")
	} else {
		j.str("role", "active")
	}
	c.send(http.StatusOK, j, c.s.shard.At())
}

func (c *call) openAPI() {
	c.plain("application/json", c.s.openapi)
}

func (c *call) plain(contentType string, body []byte) {
	c.answered = true
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h["X-Content-Type-Options"] = noSniff
	_, _ = c.w.Write(body)
}
