package server

import (
	"fmt"
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// listPatternRevisions is GET /v1/patterns/{name}/revisions.
func (c *call) listPatternRevisions() {
	name, ok := c.pathName()
	if !ok {
		return
	}
	var list []interlock.PatternRevision
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { list = e.Revisions(c.namespace, name) })
	switch {
	case !ok:
		return
	case len(list) == 0:
		c.refuse(
			interlock.CodeUnknownPattern,
			fmt.Sprintf("namespace %s has no pattern named %q, and had none", c.namespace, clipped(name)),
		)
		return
	}
	j := c.reply()
	j.text("name", name)
	j.openArray("revisions")
	for i := range list {
		writeRevision(j, "", &list[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

// revertPattern is POST /v1/patterns/{name}/revert.
func (c *call) revertPattern() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	cmd := &engine.RevertPattern{Head: h, Name: name}
	if !c.body(func(d *jsonIn) { d.revertRequest(cmd) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("reverted", at)
	}
}
