package server

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// showKey is GET /v1/keys/{key}. The key is all that follows in the path, with
// '/' in it, decoded exactly once.
func (c *call) showKey() {
	text, err := url.PathUnescape(c.variable)
	if err != nil {
		c.refuse(interlock.CodeInvalidRequest, "the path is not percent-encoded as it should be: write % as %25")
		return
	}
	key, ok := c.key(text)
	if !ok {
		return
	}
	var view engine.KeyView
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { view, err = e.Key(c.namespace, key) })
	if !ok {
		return
	}
	if err != nil {
		c.failWith(err)
		return
	}
	j := c.reply()
	j.str("key", string(view.Key))
	j.str("state", keyState(len(view.Holders)+view.More, view.Length))
	writeHolders(j, view.Holders, view.More)
	j.openArray("line")
	for i := range view.Waiters {
		writeWaiter(j, &view.Waiters[i])
	}
	j.closeArray()
	j.int("length", int64(view.Length))
	j.decimal("fence_floor", uint64(view.FenceFloor))
	writeNotes(j, view.Notes)
	j.duration("hold_time_ms", view.HoldTime)
	j.said("pattern", view.Pattern)
	if view.Capacity != nil {
		writeCapacity(j, view.Capacity)
	}
	j.count("generation", view.Generation)
	if view.Broken {
		j.bool("broken", true)
	}
	c.send(http.StatusOK, j, at)
}

// key checks one that came in a path or a parameter.
func (c *call) key(text string) (interlock.Key, bool) {
	key, err := engine.ParseKey(text)
	if err != nil {
		c.failWith(err)
		return "", false
	}
	return key, true
}

func keyState(holders, waiting int) string {
	switch {
	case holders > 0:
		return "held"
	case waiting > 0:
		return "waiting"
	}
	return "free"
}

func writeWaiter(j *jsonOut, w *engine.WaiterView) {
	j.open("")
	writeParty(j, w.Agent, w.Session, w.Flow)
	j.text("purpose", w.Purpose)
	writeMode(j, w.Mode, w.Count)
	j.int("priority", int64(w.Priority))
	j.int("position", int64(w.Position))
	j.ms("waited_ms", w.Waited)
	j.ms("eta_ms", w.ETA)
	j.bool("offered", w.Offered)
	j.close()
}

// listKeys is GET /v1/keys.
func (c *call) listKeys() {
	filter := engine.KeyFilter{Prefix: c.query.Get("prefix")}
	switch state := c.query.Get("state"); state {
	case "":
	case "held":
		filter.Held = true
	case "waiting":
		filter.Waiting = true
	default:
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf("parameter state: want held or waiting, found %q", clipped(state)))
		return
	}
	if len(filter.Prefix) > interlock.MaxKeyBytes {
		c.refuse(interlock.CodeInvalidKey, fmt.Sprintf("parameter prefix has more than %d bytes, as no key has", interlock.MaxKeyBytes))
		return
	}
	limit, ok := c.intParam("limit", 100, 1, 1000)
	if !ok {
		return
	}
	filter.Limit = int(limit)
	if cursor := c.query.Get("cursor"); cursor != "" {
		if filter.After, ok = c.openCursor(cursor, filter); !ok {
			c.refuse(interlock.CodeNotFound, "this cursor is not of this listing: begin again without one")
			return
		}
	}
	list := engine.KeyList{Namespace: c.namespace, Filter: filter}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("keys")
	for i := range list.Rows {
		row := &list.Rows[i]
		j.open("")
		j.str("key", string(row.Key))
		j.str("state", keyState(len(row.Holders)+row.More, row.Length))
		writeHolders(j, row.Holders, row.More)
		j.int("length", int64(row.Length))
		j.close()
	}
	j.closeArray()
	if n := len(list.Rows); list.More && n > 0 {
		j.str("cursor", c.makeCursor(list.Rows[n-1].Key, filter))
	}
	c.send(http.StatusOK, j, at)
}

// A cursor is the key after which a listing goes on, behind a mark of the
// namespace and the filter that it belongs to: in another namespace, or with
// another filter, it is unknown. It grants nothing, so the mark is no secret.

func (c *call) cursorMark(f engine.KeyFilter) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %t %t", c.namespace, f.Prefix, f.Held, f.Waiting))
	return sum[:8]
}

func (c *call) makeCursor(after interlock.Key, f engine.KeyFilter) string {
	return base64.RawURLEncoding.EncodeToString(append(c.cursorMark(f), after...))
}

func (c *call) openCursor(cursor string, f engine.KeyFilter) (interlock.Key, bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) <= 8 || string(b[:8]) != string(c.cursorMark(f)) {
		return "", false
	}
	key, err := engine.ParseKey(string(b[8:]))
	return key, err == nil
}

// hot is GET /v1/hot.
func (c *call) hot() {
	limit, ok := c.intParam("limit", 20, 1, 100)
	if !ok {
		return
	}
	list := engine.HotList{Namespace: c.namespace, Limit: int(limit)}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("keys")
	for i := range list.Keys {
		j.open("")
		j.str("key", string(list.Keys[i].Key))
		j.int("holders", int64(list.Keys[i].Holders))
		j.int("length", int64(list.Keys[i].Length))
		j.close()
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}
