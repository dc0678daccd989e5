package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// getContention is GET /v1/contention.
func (c *call) getContention() {
	var list []interlock.Contention
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { list = e.Contention(c.namespace) })
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("patterns")
	for i := range list {
		writeContention(j, "", &list[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}
