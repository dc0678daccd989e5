package server

import (
	"fmt"
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// getKey is GET /v1/keys/{key}.
func (c *call) getKey() {
	key, ok := c.pathKey()
	if !ok {
		return
	}
	var err error
	var view engine.KeyView
	var part engine.PartView
	resource, asked := c.query.Get("resource"), c.query.Has("resource")
	var documents []interlock.Document
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) {
		if view, err = e.Key(c.namespace, key); err == nil {
			documents, _, err = e.Documents(c.namespace, []interlock.Key{key}, false)
		}
		if asked && err == nil {
			part, err = e.Part(c.namespace, key, resource)
		}
	})
	if !ok {
		return
	}
	if err != nil {
		c.failWith(err)
		return
	}
	j := c.reply()
	writeKeyView(j, &view, documents[0].Version)
	if asked {
		writePartView(j, "part", &part, resource)
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

// listKeys is GET /v1/keys.
func (c *call) listKeys() {
	var filter engine.KeyFilter
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
	var ok bool
	if filter.Prefix, ok = c.prefixParam(); !ok {
		return
	}
	limit, ok := c.intParam("limit", 100, 1, 1000)
	if !ok {
		return
	}
	filter.Limit = int(limit)
	listing := fmt.Sprintf("keys %q %t %t", filter.Prefix, filter.Held, filter.Waiting)
	after, ok := c.openCursor(listing)
	if !ok {
		return
	}
	filter.After = interlock.Key(after)
	list := engine.KeyList{Namespace: c.namespace, Filter: filter}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("keys")
	for i := range list.Rows {
		writeKeyRow(j, "", &list.Rows[i])
	}
	j.closeArray()
	if n := len(list.Rows); list.More && n > 0 {
		j.str("cursor", c.makeCursor(listing, string(list.Rows[n-1].Key)))
	}
	c.send(http.StatusOK, j, at)
}

// listParked is GET /v1/parked.
func (c *call) listParked() {
	const listing = "parked"
	var since, num uint64
	limit, ok := c.pageSize()
	if !ok || !c.openPlace(listing, &since, &num) {
		return
	}
	list := engine.ParkedList{
		Namespace: c.namespace, Limit: limit, After: engine.ParkedAt{Time: engine.Time(since), Num: num},
	}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("leases")
	for i := range list.Rows {
		writeParkedLease(j, "", &list.Rows[i])
	}
	j.closeArray()
	if list.More {
		j.str("cursor", c.makePlace(listing, uint64(list.Next.Time), list.Next.Num))
	}
	c.send(http.StatusOK, j, at)
}

// listHotKeys is GET /v1/hot.
func (c *call) listHotKeys() {
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
		writeHotKey(j, "", &list.Keys[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}
