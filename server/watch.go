package server

import (
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// watchState is GET /v1/watch: what is written to a key, below a prefix or anywhere in the namespace,
// from an index on or from now on: as server-sent events, or as JSON lines where Accept asks for
// application/x-ndjson. It is read from the journal like the events are, so a slow reader holds up
// no other.
func (c *call) watchState() {
	values, ok := c.boolParam("values")
	if !ok {
		return
	}
	wanted, ok := c.watched()
	if !ok {
		return
	}
	at, ok := c.confirm()
	if !ok {
		return
	}
	from, ok := c.eventsFrom(at.Index)
	if !ok {
		return
	}
	if from == 0 {
		from = at.Index + 1
	}
	c.follow(newEventOut(c, !acceptsLines(c.r.Header.Values("Accept")), view{
		shows: func(ev *record.Event) bool { return ev.Kind == record.Written && wanted(string(ev.Claims[0].Key)) },
		write: func(j *jsonOut, ev *record.Event, index interlock.Index, _ interlock.Epoch) {
			writeWritten(j, ev, index, values)
		},
	}), from, at.Index, true)
}

// watched reads which keys are asked for. A key is spelled as in its pattern, so that a watcher of
// an alias sees what is written.
func (c *call) watched() (wanted func(key string) bool, ok bool) {
	prefix, ok := c.prefixParam()
	if !ok {
		return nil, false
	}
	text := c.query.Get("key")
	switch {
	case text == "":
		return func(key string) bool { return strings.HasPrefix(key, prefix) }, true
	case prefix != "":
		c.refuse(interlock.CodeInvalidRequest, "parameters key and prefix: use exactly one of them")
		return nil, false
	}
	var list []interlock.Document
	var err error
	_, ok = c.read(func(e *engine.Engine, _ engine.Time) {
		list, _, err = e.Documents(c.namespace, []interlock.Key{interlock.Key(text)}, false)
	})
	switch {
	case !ok:
		return nil, false
	case err != nil:
		c.failWith(err)
		return nil, false
	}
	one := string(list[0].Key)
	return func(key string) bool { return key == one }, true
}

// writeWritten writes one version of a document as it is in the journal.
func writeWritten(j *jsonOut, ev *record.Event, index interlock.Index, values bool) {
	d := interlock.Document{
		Key: ev.Claims[0].Key, Version: ev.Version, Absent: interlock.WriteOp(ev.Op) == interlock.Delete,
		ContentType: ev.ContentType, Body: ev.Blob, Size: len(ev.Blob), Op: interlock.WriteOp(ev.Op),
		Agent: ev.Agent, Session: ev.SessionName, Flow: ev.Flow, Principal: ev.Actor, Fence: ev.Fence, Note: ev.Note,
	}
	j.open("")
	j.decimal("index", uint64(index))
	j.moment("time", ev.At)
	j.str("key", string(d.Key))
	j.decimal("version", uint64(d.Version))
	writeDocumentInfo(j, &d)
	if values && !d.Absent {
		writeBody(j, d.ContentType, d.Body)
	}
	j.close()
}
