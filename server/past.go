package server

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/shard"
)

// moment is what a call about the past is about: the state after an index, as of a time (0: that of its last
// entry). shown is the time that was shown, and path what was asked for.
type moment struct {
	path  string
	index interlock.Index
	now   engine.Time
	shown engine.Time
}

// wrap puts the answer of the path into that of the call.
func (m *moment) wrap(answer *jsonOut, at interlock.At) *jsonOut {
	j := newJSON()
	j.open("")
	j.text("path", m.path)
	if m.shown != 0 {
		j.moment("time", m.shown)
	}
	j.name("answer")
	j.b = append(j.b, answer.b...)
	answer.free()
	j.at(at)
	j.serverTime()
	j.close()
	return j
}

// ofThePast are the paths that /v1/at answers. Each of their handlers uses read, survey or look alone, so
// that its answer about the past is that about the present, of another state. They must not show what is not
// journaled, such as statistics, and their answers are JSON.
var ofThePast = map[string]bool{
	"/v1/leases": true, "/v1/tickets": true, "/v1/sessions": true, "/v1/parked": true,
	"/v1/overview": true, "/v1/keys": true, "/v1/keys/{key}": true, "/v1/waits": true, "/v1/why": true,
	"/v1/tasks": true, "/v1/queues": true, "/v1/queues/{queue}": true, "/v1/approvals": true, "/v1/runs": true,
	"/v1/state": true, "/v1/effects": true, "/v1/effects/{digest}": true,
	"/v1/writers": true, "/v1/patterns": true, "/v1/patterns/{name}": true, "/v1/namespace": true,
}

// getPast is GET /v1/at?index=N&path=PATH, or with time=T: the answer of a path about the state after an index.
func (c *call) getPast() {
	view, ok := c.pathOfThePast()
	if !ok {
		return
	}
	leave, ok := c.enterHistories()
	if !ok {
		return
	}
	defer leave()
	if c.past, ok = c.moment(); !ok {
		return
	}
	c.past.path = strings.TrimSuffix(view, "?")
	path, query, _ := strings.Cut(view, "?")
	m, variable := findView(path)
	if m == nil {
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
			"parameter path: the past of %q is not shown: name one of %s", clipped(c.past.path),
			strings.Join(slices.Sorted(maps.Keys(ofThePast)), ", "),
		))
		return
	}
	c.variable, c.query = variable, nil
	if !c.allowed(m.needs) || query != "" && !c.takeQuery(query, m.query) {
		return
	}
	m.handle(c)
}

// findView returns how a path is answered that may be about the past, with the variable part of the path; nil
// for any other path. It is set at the start, because a handler cannot refer to the table that has it.
var findView func(path string) (m *method, variable string)

func init() {
	findView = func(path string) (*method, string) {
		pattern, variable := matchPath(http.MethodGet, path)
		rt := byPath[pattern]
		if rt == nil || !ofThePast[pattern] {
			return nil, ""
		}
		return &rt.methods[slices.IndexFunc(rt.methods, func(m method) bool { return m.name == http.MethodGet })], variable
	}
}

// pathOfThePast returns the path that is asked for, with its query; /v1/ may be left out.
func (c *call) pathOfThePast() (path string, ok bool) {
	asked := c.query.Get("path")
	if asked == "" {
		c.refuse(
			interlock.CodeInvalidRequest, "parameter path: name a path, such as waits, keys/account:1 or why?agent=billing-7",
		)
		return "", false
	}
	u, err := url.Parse("/v1/" + strings.TrimPrefix(strings.TrimPrefix(asked, "/v1"), "/"))
	if err != nil {
		c.refuse(interlock.CodeInvalidRequest, "parameter path: want a path with its parameters, percent-encoded as a whole")
		return "", false
	}
	return u.EscapedPath() + "?" + u.RawQuery, true
}

// moment reads which moment is asked for.
func (c *call) moment() (m *moment, ok bool) {
	index, at := c.query.Get("index"), c.query.Get("time")
	if (index == "") == (at == "") {
		c.refuse(
			interlock.CodeInvalidRequest,
			"name one moment: ?index=1041, ?time=2026-01-02T03:04:05Z, or ?time=12h for 12 hours ago",
		)
		return nil, false
	}
	newest, ok := c.newest()
	if !ok {
		return nil, false
	}
	m = &moment{}
	if at != "" {
		if m.now, ok = c.momentParam("time"); ok {
			m.index, ok = c.indexAt(m.now, newest.Index)
		}
		return m, ok
	}
	m.index, ok = c.pastIndex("index", newest.Index)
	return m, ok
}

// newest is the newest entry that a call about the past may name.
func (c *call) newest() (at interlock.At, ok bool) {
	if c.s.archive {
		return c.s.shard.At(), true
	}
	return c.confirm()
}

// pastIndex reads a parameter that is the index of an entry.
func (c *call) pastIndex(name string, newest interlock.Index) (index interlock.Index, ok bool) {
	text := c.query.Get(name)
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		c.refuse(
			interlock.CodeInvalidRequest, fmt.Sprintf("parameter %s: want a number from 1 on, found %q", name, clipped(text)),
		)
		return 0, false
	}
	if index = interlock.Index(n); index > newest {
		c.fail(&interlock.Error{
			Code:    interlock.CodeFutureVersion,
			Message: fmt.Sprintf("index %s does not exist yet: the newest is %d", text, newest),
			Advice: interlock.Advice{
				Action: interlock.ActFixRequest, Message: fmt.Sprintf("name index %d or an earlier moment", newest),
			},
		})
		return 0, false
	}
	return index, true
}

// indexAt returns the index of the last entry up to a time.
func (c *call) indexAt(t engine.Time, newest interlock.Index) (index interlock.Index, ok bool) {
	index, err := c.s.shard.IndexAt(c.r.Context(), t, seekMargin)
	switch {
	case err != nil:
		c.failWith(c.whyEnded(c.r.Context(), err))
		return 0, false
	case index == 0:
		c.failWith(c.trimmed())
		return 0, false
	}
	return min(index, newest), true
}

// lookBack asks about the call's moment.
func (c *call) lookBack(look func(*engine.Engine, engine.Time) (done bool)) (interlock.At, error) {
	m := c.past
	at, err := c.s.shard.LookBack(
		c.r.Context(), c.s.past, m.index, m.now, func(e *engine.Engine, now engine.Time) bool {
			m.shown = now
			return look(e, now)
		},
	)
	return at, c.pastRefusal(err, m.index)
}

// pastRefusal is the refusal of a state that cannot be replayed, or err.
func (c *call) pastRefusal(err error, index interlock.Index) error {
	switch {
	case errors.Is(err, shard.ErrTooOld):
		return c.trimmed()
	case errors.Is(err, shard.ErrTooLarge), errors.Is(err, shard.ErrTooLong):
		return &interlock.Error{
			Code:    interlock.CodePastTooLarge,
			Message: fmt.Sprintf("the state after entry %d cannot be replayed within 2 s and 512 MiB", index),
		}
	}
	return err
}

// trimmed is the refusal of a moment before all states that are kept.
func (c *call) trimmed() error {
	oldest, err := c.s.shard.Oldest(c.r.Context())
	if err != nil {
		return err
	}
	text := fmt.Sprintf("the state of that moment is no longer kept: the oldest is that of index %d", oldest)
	if oldest <= 1 {
		text = "the journal has no state of that moment: it began later, with index 1"
	}
	return &interlock.Error{
		Code:    interlock.CodeHistoryTrimmed,
		Message: text,
		Advice: interlock.Advice{
			Action: interlock.ActFixRequest, Message: fmt.Sprintf("name index %d or a later moment", oldest),
		},
	}
}
