package server

import (
	"net/http"

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

// revokeLease is POST /v1/revocations.
func (c *call) revokeLease() {
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

// requestYield is POST /v1/yield-requests.
func (c *call) requestYield() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.RequestYield{Head: h}
	if !c.body(func(d *jsonIn) { decodeRequestYield(d, cmd) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("asked", at)
	}
}

// getJournalHead is GET /v1/journal/head. The head is of the whole shard, whichever namespace
// the call is for.
func (c *call) getJournalHead() {
	head, at, err := c.s.shard.Head(c.r.Context())
	if err != nil {
		c.failWith(err)
		return
	}
	j := c.reply()
	j.str("head", head)
	c.send(http.StatusOK, j, at)
}
