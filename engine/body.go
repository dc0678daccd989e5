package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// Bodies that are read in advance.
//
// Checking that a body is JSON, and reading what a merge patch changes, takes milliseconds
// for a large body and needs no state. A step is the wrong place for it, because all callers
// wait for the engine. So the caller's goroutine calls Prepare first. A step relies on a
// result of Prepare for the same slice of bytes only, and reads all other bodies itself.

// A preparer is a command with bodies that can be read in advance.
type preparer interface {
	// prepare reads the large bodies.
	prepare()
}

func (c *Commit) prepare() { c.bodies = readBodies(c.Writes) }

func (c *Submit) prepare() { c.Task.prepare() }

func (c *Ack) prepare() {
	c.bodies = readBodies(c.Writes)
	for i := range c.Tasks {
		c.Tasks[i].prepare()
	}
}

// smallBytes is how much is read faster than it is prepared.
const smallBytes = 1 << 10

// objectBytes is how many bytes of a body that a step writes count as an object.
const objectBytes = 256

// body is the result of checking one.
type body struct {
	text    []byte
	problem *message.Text // jsonProblem's result
	patch   *jsonText     // of a merge patch without a problem
}

func readBody(text []byte, op interlock.WriteOp) body {
	b := body{text: text, problem: jsonProblem(text)}
	if op == interlock.Merge && b.problem == nil {
		b.patch = readJSON(text)
		b.patch.value().object()
	}
	return b
}

// isAbout reports whether b is about a body: the same bytes, not equal ones.
func (b *body) isAbout(text []byte) bool {
	return b != nil && len(text) > 0 && len(b.text) == len(text) && &b.text[0] == &text[0]
}

// readBodies returns a body for each write, or nil if all are small.
func readBodies(writes []interlock.Write) []body {
	size := 0
	for i := range writes {
		size += len(writes[i].Body)
	}
	if size < smallBytes || size > interlock.MaxCommitBytes || len(writes) > interlock.MaxWrites {
		return nil // or it is refused
	}
	list := make([]body, len(writes))
	for i := range writes {
		switch w := &writes[i]; {
		case len(w.Body) == 0:
		case w.Op == interlock.Merge, w.Op == interlock.Put && (w.ContentType == "" || isJSON(w.ContentType)):
			list[i] = readBody(w.Body, w.Op)
		}
	}
	return list
}

// problemOf is jsonProblem of the body of a write.
func (c *Commit) problemOf(i int) *message.Text {
	if text := c.Writes[i].Body; i >= len(c.bodies) || !c.bodies[i].isAbout(text) {
		return jsonProblem(text)
	}
	return c.bodies[i].problem
}

// patchOf reads the body of a merge that has no problem.
func (c *Commit) patchOf(i int) *jsonText {
	if text := c.Writes[i].Body; i >= len(c.bodies) || !c.bodies[i].isAbout(text) || c.bodies[i].patch == nil {
		return readJSON(text)
	}
	return c.bodies[i].patch
}

// prepare reads the payload of a task.
func (x *TaskSpec) prepare() {
	if n := len(x.Payload); n >= smallBytes && n <= interlock.MaxPayloadBytes {
		b := readBody(x.Payload, interlock.Put)
		x.payload = &b
	}
}

// problemOfPayload is jsonProblem of the payload.
func (x *TaskSpec) problemOfPayload() *message.Text {
	if !x.payload.isAbout(x.Payload) {
		return jsonProblem(x.Payload)
	}
	return x.payload.problem
}
