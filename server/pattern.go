package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// setPattern is PUT /v1/patterns/{name}.
func (c *call) setPattern() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	cmd := &engine.SetPattern{Head: h, Pattern: interlock.Pattern{Name: name}}
	if !c.body(func(d *jsonIn) { decodePattern(d, cmd) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("set", at)
	}
}

// deletePattern is DELETE /v1/patterns/{name}.
func (c *call) deletePattern() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	if _, at, ok := c.do(&engine.DropPattern{Head: h, Name: name}); ok {
		c.done("deleted", at)
	}
}

// ofNamed begins a call that changes something with a name given by operators: a pattern, a
// queue.
func (c *call) ofNamed() (h engine.Head, name string, ok bool) {
	if h, ok = c.mutating(); !ok {
		return h, "", false
	}
	name, ok = c.pathName()
	return h, name, ok
}

// pathName is the name in the path.
func (c *call) pathName() (string, bool) {
	name, err := url.PathUnescape(c.variable)
	if err != nil {
		c.refuse(interlock.CodeInvalidRequest, "the path is not percent-encoded: write % as %25")
		return "", false
	}
	return name, true
}

// getPattern is GET /v1/patterns/{name}.
func (c *call) getPattern() {
	name, ok := c.pathName()
	if !ok {
		return
	}
	p, known, at, ok := c.patternNamed(name)
	switch {
	case !ok:
		return
	case !known:
		c.noSuchPattern(name)
		return
	}
	j := c.reply()
	writePattern(j, &p)
	c.send(http.StatusOK, j, at)
}

// patternNamed reads a pattern. ok is false when the call was answered.
func (c *call) patternNamed(name string) (p interlock.Pattern, known bool, at interlock.At, ok bool) {
	list, at, ok := c.patterns()
	if i := slices.IndexFunc(list, func(p interlock.Pattern) bool { return p.Name == name }); i >= 0 {
		p, known = list[i], true
	}
	return p, known, at, ok
}

func (c *call) noSuchPattern(name string) {
	c.refuse(
		interlock.CodeUnknownPattern, fmt.Sprintf("namespace %s has no pattern named %q", c.namespace, clipped(name)),
	)
}

// listPatterns is GET /v1/patterns.
func (c *call) listPatterns() {
	list, at, ok := c.patterns()
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("patterns")
	for i := range list {
		j.open("")
		writePattern(j, &list[i])
		j.close()
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

// patterns returns the namespace's patterns in the order of their names.
func (c *call) patterns() (list []interlock.Pattern, at interlock.At, ok bool) {
	at, ok = c.read(func(e *engine.Engine, _ engine.Time) { list = e.Patterns(c.namespace) })
	return list, at, ok
}

// setNamespace is PUT /v1/namespace.
func (c *call) setNamespace() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Configure{Head: h}
	if !c.body(func(d *jsonIn) { d.settingsRequest(&cmd.Settings) }) {
		return
	}
	if _, at, ok := c.do(cmd); ok {
		c.done("set", at)
	}
}

// deleteNamespace is DELETE /v1/namespaces/{name}. The name in the path counts, whatever is in the
// header.
func (c *call) deleteNamespace() {
	name, ok := c.pathName()
	if !ok {
		return
	}
	ns, err := c.identity.Resolve(name)
	if err != nil {
		c.failWith(err)
		return
	}
	c.namespace = ns
	h, ok := c.mutating()
	if !ok {
		return
	}
	force, ok := c.boolParam("force")
	if !ok {
		return
	}
	cmd := &engine.DeleteNamespace{Head: h, Force: force}
	if _, at, ok := c.do(cmd); ok {
		c.done("deleted", at)
	}
}

// getNamespace is GET /v1/namespace.
func (c *call) getNamespace() {
	var s interlock.Settings
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { s = e.Settings(c.namespace) })
	if !ok {
		return
	}
	j := c.reply()
	writeSettings(j, &s)
	c.send(http.StatusOK, j, at)
}

// writeTexts writes texts of agents or people, and nothing for none.
func writeTexts(j *jsonOut, name string, list []string) {
	if len(list) == 0 {
		return
	}
	j.openArray(name)
	for _, s := range list {
		j.text("", s)
	}
	j.closeArray()
}
