package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/shard"
)

// getDifferences is GET /v1/differences?from=MOMENT&to=MOMENT: what differs between the states after two moments.
func (c *call) getDifferences() {
	var ok bool
	list := engine.Comparison{Namespace: c.namespace}
	if list.Prefix, ok = c.prefixParam(); !ok {
		return
	}
	if list.Limit, ok = c.pageSize(); !ok {
		return
	}
	newest, ok := c.newest()
	if !ok {
		return
	}
	if c.query.Get("from") == "" {
		c.refuse(
			interlock.CodeInvalidRequest, "parameter from: name the earlier moment: the index of an entry, such as 1041, a "+
				"time such as 2026-01-02T03:04:05Z, or how long it is ago, such as 12h",
		)
		return
	}
	leave, ok := c.enterHistories()
	if !ok {
		return
	}
	defer leave()
	to := shard.Moment{Index: newest.Index}
	from, ok := c.momentFor("from", newest.Index)
	if ok && c.query.Get("to") != "" {
		to, ok = c.momentFor("to", newest.Index)
	}
	switch {
	case !ok:
		return
	case from.Index > to.Index:
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
			"parameter from: entry %d is later than entry %d, which parameter to names: exchange the two", from.Index, to.Index,
		))
		return
	}
	at, failed, err := c.s.shard.Compare(
		c.r.Context(), c.s.past, from, to, func(first, second *engine.Engine) bool {
			from.Time, to.Time = first.Now(), second.Now()
			return list.Look(first, second)
		},
	)
	if err != nil {
		c.failWith(c.pastRefusal(err, failed))
		return
	}
	j := c.reply()
	writeMoment(j, "from", from)
	writeMoment(j, "to", to)
	writeDifferences(j, &list)
	c.send(http.StatusOK, j, at)
}

// momentFor reads a parameter that is an index or a time.
func (c *call) momentFor(name string, newest interlock.Index) (m shard.Moment, ok bool) {
	text := c.query.Get(name)
	if strings.Trim(text, "0123456789") == "" {
		m.Index, ok = c.pastIndex(name, newest)
		return m, ok
	}
	if m.Time, ok = parseMoment(text); !ok {
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
			"parameter %s: want the index of an entry, such as 1041, a time such as 2026-01-02T03:04:05Z, or how long it is "+
				"ago, such as 12h, found %q", name, clipped(text),
		))
		return m, false
	}
	m.Index, ok = c.indexAt(m.Time, newest)
	return m, ok
}

func writeMoment(j *jsonOut, name string, m shard.Moment) {
	j.open(name)
	j.decimal("index", uint64(m.Index))
	if m.Time > 0 {
		j.moment("time", m.Time)
	}
	j.close()
}

// writeDifferences writes the members of an api.Differences but for its moments and its stamp.
func writeDifferences(j *jsonOut, d *engine.Comparison) {
	j.open("sums")
	leftOut := writeSums(j, "leases", &d.Leases) + writeSums(j, "waiters", &d.Waiters) +
		writeSums(j, "documents", &d.Documents) + writeSums(j, "tasks", &d.Tasks)
	j.close()
	writeChanges(j, "leases", &d.Leases, func(h *interlock.Holder) { j.text("key", string(h.Key)) }, writeLeaseThen)
	writeChanges(j, "waiters", &d.Waiters, func(w *engine.TicketRow) {
		j.decimal("request", w.Request)
		j.text("agent", w.Agent)
		j.str("session", w.Session)
		j.text("flow", w.Flow)
		j.openArray("keys")
		for i := range w.Claims {
			j.text("", string(w.Claims[i].Key))
		}
		j.closeArray()
		if w.On != nil {
			writeFlow(j, "on", w.On)
		}
	}, writeWaiterThen)
	writeChanges(
		j, "documents", &d.Documents, func(x *interlock.Document) { j.text("key", string(x.Key)) }, writeDocumentThen,
	)
	writeChanges(j, "tasks", &d.Tasks, func(t *interlock.Task) {
		j.str("task", t.ID.String())
		j.text("queue", t.Queue)
		j.text("kind", t.Kind)
		j.text("purpose", t.Purpose)
	}, writeTaskThen)
	j.int("left_out", int64(leftOut))
}

// writeSums writes an api.DifferenceSums, and returns how many changes have no row.
func writeSums[T any](j *jsonOut, name string, c *engine.Changes[T]) (leftOut int) {
	j.open(name)
	j.int("new", int64(c.New))
	j.int("gone", int64(c.Gone))
	j.int("changed", int64(c.Changed))
	j.close()
	return c.New + c.Gone + c.Changed - len(c.Rows)
}

// writeChanges writes the rows of one kind: what they are about, the kind of change, and both states.
func writeChanges[T any](
	j *jsonOut, name string, c *engine.Changes[T], about func(*T), then func(j *jsonOut, name string, v *T),
) {
	j.openArray(name)
	for _, row := range c.Rows {
		j.open("")
		change, of := "changed", row.After
		switch {
		case row.Before == nil:
			change = "new"
		case row.After == nil:
			change, of = "gone", row.Before
		}
		about(of)
		j.str("change", change)
		if row.Before != nil {
			then(j, "before", row.Before)
		}
		if row.After != nil {
			then(j, "after", row.After)
		}
		j.close()
	}
	j.closeArray()
}
