package server

import (
	"fmt"
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// showKey is GET /v1/keys/{key}.
func (c *call) showKey() {
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
	j.decimal("version", uint64(documents[0].Version))
	j.count("generation", view.Generation)
	if view.Broken {
		j.bool("broken", true)
	}
	if asked {
		j.open("part")
		j.text("resource", resource)
		j.int("number", int64(part.Number))
		j.int("parts", int64(part.Parts))
		j.str("key", string(part.Key))
		if part.Holder != nil {
			writeHolder(j, "holder", part.Holder)
		}
		j.close()
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
	if !w.Task.IsZero() {
		writeTaskOf(j, "task", w.Task)
		j.str("queue", w.Queue)
		j.bool("dormant", w.Dormant)
	}
	j.close()
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
		row := &list.Rows[i]
		j.open("")
		j.text("agent", row.Agent)
		j.text("flow", row.Flow)
		j.text("purpose", row.Purpose)
		writeClaims(j, row.Claims)
		j.decimal("fence", uint64(row.Fence))
		writeParking(j, "parking", &row.Parking)
		j.close()
	}
	j.closeArray()
	if list.More {
		j.str("cursor", c.makePlace(listing, uint64(list.Next.Time), list.Next.Num))
	}
	c.send(http.StatusOK, j, at)
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
