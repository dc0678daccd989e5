package server

import (
	"net/http"
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// setQueue is PUT /v1/queues/{queue}.
func (c *call) setQueue() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	cmd := &engine.SetQueue{Head: h, Queue: interlock.TaskQueue{Name: name}}
	if !c.body(func(d *jsonIn) { d.queueRequest(&cmd.Queue) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("set", at)
	}
}

// deleteQueue is DELETE /v1/queues/{queue}.
func (c *call) deleteQueue() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	if _, at, ok := c.do(&engine.DropQueue{Head: h, Name: name}); ok {
		c.done("deleted", at)
	}
}

// switchQueue has a queue hand tasks out or not, and take new ones or not.
func (c *call) switchQueue(outcome string, paused, drain engine.Toggle) {
	h, name, ok := c.ofNamed()
	cmd := &engine.SwitchQueue{Head: h, Name: name, Paused: paused, Drain: drain}
	if !ok || !c.body(func(d *jsonIn) { d.switchRequest(cmd) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done(outcome, at)
	}
}

// pauseQueue is POST /v1/queues/{queue}/pause: it hands nothing out.
func (c *call) pauseQueue() { c.switchQueue("paused", engine.On, engine.AsIs) }

// drainQueue is POST /v1/queues/{queue}/drain: it takes nothing new.
func (c *call) drainQueue() { c.switchQueue("draining", engine.AsIs, engine.On) }

// resumeQueue is POST /v1/queues/{queue}/resume: it does both again.
func (c *call) resumeQueue() { c.switchQueue("resumed", engine.Off, engine.Off) }

// queue reads how a queue stands. ok is false when the call was answered.
func (c *call) queue(name string) (q interlock.QueueStatus, at interlock.At, ok bool) {
	var known bool
	at, ok = c.read(func(e *engine.Engine, _ engine.Time) { q, known = e.QueueStatus(c.namespace, name) })
	if ok && !known {
		c.noSuchQueue(name)
	}
	return q, at, ok && known
}

func (c *call) noSuchQueue(name string) {
	c.refuse(interlock.CodeUnknownQueue, "no queue is named "+strconv.Quote(clipped(name))+": an operator creates queues")
}

// getQueue is GET /v1/queues/{queue}.
func (c *call) getQueue() {
	name, ok := c.pathName()
	if !ok {
		return
	}
	if q, at, ok := c.queue(name); ok {
		j := c.reply()
		writeQueueStatus(j, "queue", &q)
		c.send(http.StatusOK, j, at)
	}
}

// listQueues is GET /v1/queues.
func (c *call) listQueues() {
	found := engine.QueueList{Namespace: c.namespace}
	at, ok := c.survey(&found)
	if !ok {
		return
	}
	list := found.Rows
	j := c.reply()
	j.openArray("queues")
	for i := range list {
		writeQueueStatus(j, "", &list[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}
