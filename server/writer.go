package server

import (
	"fmt"
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Writers: the queues that alone may change the keys of a pattern. They are a part of
// the pattern, which is named and changed here without the rest of it.

// setWriter is PUT /v1/writers/{pattern}.
func (c *call) setWriter() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	var queue, shape string
	if !c.body(func(d *jsonIn) { queue, shape = decodeWriter(d) }) {
		return
	}
	p, known, _, ok := c.patternNamed(name)
	switch {
	case !ok:
		return
	case known && shape != "" && shape != p.Shape:
		c.refuse(
			interlock.CodeInvalidPattern,
			fmt.Sprintf(
				"pattern %q already exists, with the shape %q: omit pattern, or use another name", clipped(name),
				clipped(p.Shape),
			),
		)
		return
	case !known && shape == "":
		c.noSuchPattern(name)
		return
	case !known:
		p = interlock.Pattern{Name: name, Shape: shape}
	}
	p.Write, p.Writer, p.WriterQueue = interlock.WriteSingle, "", queue
	if _, at, ok := c.do(&engine.SetPattern{Head: h, Pattern: p}); ok {
		c.done("set", at)
	}
}

// deleteWriter is DELETE /v1/writers/{pattern}: the keys have the default write policy again.
func (c *call) deleteWriter() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	p, known, _, ok := c.patternNamed(name)
	switch {
	case !ok:
		return
	case !known:
		c.noSuchPattern(name)
		return
	case p.WriterQueue == "":
		c.refuse(interlock.CodeNoWriter, fmt.Sprintf("no queue is the single writer of pattern %q", clipped(name)))
		return
	}
	p.Write, p.Writer, p.WriterQueue = interlock.WriteGuarded, "", ""
	if _, at, ok := c.do(&engine.SetPattern{Head: h, Pattern: p}); ok {
		c.done("deleted", at)
	}
}

// listWriters is GET /v1/writers.
func (c *call) listWriters() {
	list, at, ok := c.patterns()
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("writers")
	for i := range list {
		if p := &list[i]; p.WriterQueue != "" {
			writeWriter(j, "", p)
		}
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}
