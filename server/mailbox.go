package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// sendMessage is POST /v1/mailbox/{key}. A message is a task for the single writer of
// its key, and its reply is that task's result.
func (c *call) sendMessage() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	key, ok := c.pathKey()
	if !ok {
		return
	}
	cmd := &engine.Submit{
		Head: h, Task: engine.TaskSpec{ID: freshID(), TaskSpec: interlock.TaskSpec{
			Message: true, Key: key, Trace: c.traceparent(),
		}},
	}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeSend(d, cmd) }) {
		return
	}
	eff, at, ok := c.submitted(cmd, wait)
	if !ok {
		return
	}
	message := &eff.Tasks[0]
	status, outcome := http.StatusAccepted, "sent"
	if message.State == interlock.TaskDone {
		status, outcome = http.StatusOK, "replied"
	}
	j := c.reply()
	j.str("outcome", outcome)
	writeTask(j, "message", prose.Task(message), c, true)
	if len(message.Result) > 0 {
		j.value("reply", message.Result)
	}
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	writeAdvice(j, prose.For(&eff))
	c.send(status, j, at)
}

// getMailboxLog is GET /v1/mailbox/{key}/log: what became of the messages to a key, the oldest first. A
// caller that asks again from next misses nothing.
func (c *call) getMailboxLog() {
	key, ok := c.pathKey()
	if !ok {
		return
	}
	from := uint64(0)
	if text := c.query.Get("from"); text != "" {
		var err error
		if from, err = parseDecimal(text); err != nil {
			c.refuse(
				interlock.CodeInvalidRequest,
				fmt.Sprintf("parameter from: want the number of an entry such as 17, found %q", clipped(text)),
			)
			return
		}
	}
	limit, ok := c.intParam("limit", 100, 1, interlock.MaxLogEntries)
	if !ok {
		return
	}
	var entries []engine.LogEntry
	var first, next uint64
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) {
		entries, first, next = e.Log(c.namespace, key, from, int(limit))
	})
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("entries")
	for i := range entries {
		writeLogEntry(j, "", prose.LogEntry(&entries[i]))
	}
	j.closeArray()
	j.decimal("first", first)
	j.decimal("next", next)
	c.send(http.StatusOK, j, at)
}
