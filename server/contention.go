package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// contention is GET /v1/contention.
func (c *call) contention() {
	var list []interlock.Contention
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { list = e.Contention(c.namespace) })
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("patterns")
	for i := range list {
		writeContended(j, &list[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

func writeContended(j *jsonOut, p *interlock.Contention) {
	j.open("")
	j.text("pattern", p.Pattern)
	j.int("commits", int64(p.Commits))
	j.int("conflicts", int64(p.Conflicts))
	j.int("retries", int64(p.Retries))
	j.int("leased", int64(p.Leased))
	j.int("leases", int64(p.Leases))
	j.int("waited", int64(p.Waited))
	j.str("write", p.Write.String())
	writeAdvice(j, prose.ForContention(p))
	j.close()
}
