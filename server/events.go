package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// listEvents is GET /v1/events: the journal's events of the caller's namespace, as
// JSON lines, or as server-sent events where Accept asks for text/event-stream.
// Lines end at the newest event unless follow=true is given; server-sent events go
// on unless follow=false is. Filters choose events by time, key, agent, kind and principal. With before the
// newest events come first: see eventsBefore.
//
// The journal is read at the reader's pace and nothing waits for it, so one that stands still
// costs a connection and blocks no other. One that has read nothing for writeTimeout is cut
// off; it comes back with Last-Event-ID, or with from. Events of other namespaces do not wake a
// reader (see shard.Follow).
//
// A stream that ends on our side ends with the event "end", which contains the reason. An answer
// that should have ended at the newest event and cannot get there is broken off besides.
func (c *call) listEvents() {
	sse := acceptsSSE(c.r.Header.Values("Accept"))
	follow := sse
	switch c.query.Get("follow") {
	case "":
	case "true":
		follow = true
	case "false":
		follow = false
	default:
		c.refuse(interlock.CodeInvalidRequest, "parameter follow: want true or false")
		return
	}
	filter, ok := c.eventFilter()
	if !ok {
		return
	}
	if filter.until > 0 {
		if c.query.Get("follow") == "true" {
			c.refuse(interlock.CodeInvalidRequest, "with parameter until there is an end: leave out follow=true")
			return
		}
		follow = false
	}
	at, ok := c.confirm()
	if !ok {
		return
	}
	if c.query.Has("before") || c.query.Has("limit") {
		c.eventsBefore(filter, at.Index)
		return
	}
	from, ok := c.eventsFrom(at.Index)
	if !ok {
		return
	}
	if filter.since > 0 && from == 0 {
		if from, ok = c.seek(filter.since); !ok {
			return
		}
	}
	c.follow(newEventOut(c, sse, view{shows: filter.shows, ends: filter.ends, write: writeEvent}), from, at.Index, follow)
}

// seek returns an index before all events from a time on. ok is false when the call was answered.
func (c *call) seek(since engine.Time) (from interlock.Index, ok bool) {
	from, err := c.s.shard.Seek(c.r.Context(), since.Add(-seekMargin))
	if err != nil {
		c.failWith(c.whyEnded(c.r.Context(), err))
		return 0, false
	}
	return from, true
}

// view is the part of the journal that a reader sees, and its form.
type view struct {
	shows func(*record.Event) bool
	ends  func(entry []record.Event) bool // nothing that it shows can follow these; nil: never
	write func(*jsonOut, *record.Event, interlock.Index, interlock.Epoch)
}

// follow answers with the journal as a view shows it, from an index on (0 is the
// oldest that is kept) up to newest, which the journal has confirmed for this call, or
// with follow beyond it.
func (c *call) follow(out *eventOut, from, newest interlock.Index, follow bool) {
	if c.s.isDraining() {
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down: try again in a moment")
		return
	}
	if first := c.s.shard.First(); from != 0 && from < first {
		c.refuse(interlock.CodeHistoryTrimmed, fmt.Sprintf("event %d is no longer kept: the oldest is %d", from, first))
		return
	}
	enter := c.enterPage
	if follow {
		enter = c.enterStreams
	}
	leave, ok := enter()
	if !ok {
		return
	}
	defer leave()

	kind := "application/x-ndjson"
	if out.sse {
		kind = "text/event-stream"
	}
	c.beginStream(kind)
	c.streamEvents(out, from, newest, follow)
}

// enterStreams admits one more reader of events that stays. ok is false when the call was answered, else the reader
// calls leave.
func (c *call) enterStreams() (leave func(), ok bool) {
	left, ok := c.s.streams.enter(c.namespace)
	if !ok {
		c.refuse(
			interlock.CodeTooManyStreams,
			fmt.Sprintf("namespace %s has reached its limit of %d readers of events", c.namespace, c.s.streams.max),
		)
		return nil, false
	}
	return c.countStream(left), true
}

// countStream counts a reader of events, until it calls leave.
func (c *call) countStream(left func()) (leave func()) {
	c.s.obs.figures.streams.Inc()
	return func() {
		c.s.obs.figures.streams.Dec()
		left()
	}
}

// beginStream begins an answer of a content type that is written part by part.
func (c *call) beginStream(contentType string) {
	c.answered = true
	h := c.w.Header()
	h["Content-Type"] = []string{contentType}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	c.w.WriteHeader(http.StatusOK)
}

// eventsFrom is the index to begin at; 0 when none is given. It refuses to begin behind
// an index above newest, which was never given out (one from before an older journal was
// restored, for example): the events up to it would be missed in silence.
//
// An id of server-sent events names the shard, too, where servers share several. After a move of the namespace
// an id of its former shard means all that happened here, and so does arrival.
func (c *call) eventsFrom(newest interlock.Index) (interlock.Index, bool) {
	happened := func(index interlock.Index, asked string) bool {
		if index > newest {
			c.refuse(interlock.CodeFutureVersion, fmt.Sprintf("index %s does not exist yet: the newest is %d", asked, newest))
		}
		return index <= newest
	}
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		if shard, index, ok := strings.Cut(last, ":"); ok {
			if number, err := strconv.Atoi(shard); err == nil && number != c.s.shard.At().Shard {
				return c.arrival()
			}
			last = index
		}
		index, err := parseDecimal(last)
		if err != nil {
			c.refuse(interlock.CodeInvalidRequest, "the header Last-Event-ID is not an index of this server")
			return 0, false
		}
		return interlock.Index(index) + 1, happened(interlock.Index(index), last)
	}
	text := c.query.Get("from")
	switch text {
	case "", "oldest":
		return 0, true
	case "now":
		return newest + 1, true
	case "arrival":
		return c.arrival()
	}
	index, err := parseDecimal(text)
	if err != nil {
		c.refuse(
			interlock.CodeInvalidRequest,
			fmt.Sprintf("parameter from: want an index such as 1041, oldest, arrival or now, found %q", clipped(text)),
		)
		return 0, false
	}
	return interlock.Index(index), index == 0 || happened(interlock.Index(index-1), text)
}

// arrival returns the index of the first event since the namespace came into this shard. ok is false when the
// call was answered.
func (c *call) arrival() (from interlock.Index, ok bool) {
	_, ok = c.read(func(e *engine.Engine, _ engine.Time) { from = e.Arrived(c.namespace) + 1 })
	return max(from, c.s.shard.First()), ok
}

func acceptsSSE(accept []string) bool   { return accepts(accept, "text/event-stream") }
func acceptsLines(accept []string) bool { return accepts(accept, "application/x-ndjson") }

func accepts(accept []string, kind string) bool {
	return slices.ContainsFunc(accept, func(a string) bool { return strings.Contains(a, kind) })
}

var errEnough = errors.New("server: everything up to the newest event was sent")

func (c *call) streamEvents(out *eventOut, from, newest interlock.Index, follow bool) {
	if !follow && from > newest {
		return
	}
	ctx, cancel := c.s.whileKnown(c.r.Context(), c.identity)
	defer cancel()
	defer context.AfterFunc(c.s.serving, cancel)()
	reached := interlock.Index(0)
	err := out.send() // the headers, so that a reader knows that it is connected
	if err == nil {
		err = c.s.shard.Follow(ctx, shard.Follower{
			Namespace: c.namespace, From: from, Pulse: keepAliveEvery,
			Visit: func(index interlock.Index, epoch interlock.Epoch, events []record.Event) error {
				if !follow && index > newest {
					return errEnough
				}
				if err := out.entry(index, epoch, events); err != nil {
					return err
				}
				if out.ends != nil && out.ends(events) {
					return errEnough
				}
				if index <= newest {
					return nil
				}
				return endOfNamespace(events)
			},
			Visited: out.rest, Full: out.isFull,
			Reached: func(index interlock.Index) error {
				if !follow && index >= newest {
					return errEnough
				}
				if index == reached { // a pulse: nothing new has come
					if err := c.stillOwner(ctx); err != nil {
						return err
					}
				}
				reached = index
				return out.reached(index)
			},
		})
	}
	if errors.Is(err, errEnough) {
		if err = out.send(); err == nil {
			return
		}
	}
	if out.err != nil || c.r.Context().Err() != nil {
		return // the client is gone
	}
	out.end(c.whyEnded(ctx, err))
	if !follow {
		panic(http.ErrAbortHandler) // a client that does not know such an end must not take the answer for a whole one
	}
}

// endOfNamespace returns the last event of a reader when its namespace is deleted or leaves the shard while it
// reads; nil if the events contain neither.
func endOfNamespace(events []record.Event) error {
	for i := range events {
		if ev := &events[i]; ev.Kind == record.NamespaceMoved && record.MoveStep(ev.Op) == record.MoveClosed {
			return namespaceMoves(ev.Namespace)
		}
	}
	if !slices.ContainsFunc(events, func(ev record.Event) bool { return ev.Kind == record.NamespaceDeleted }) {
		return nil
	}
	return &interlock.Error{
		Code: interlock.CodeRevoked,
		Message: "an operator has deleted the namespace: this is its last event, and later events belong to a new " +
			"namespace with the same name",
	}
}

// stillOwner returns why a reader of events may not receive that nothing new has come, which a
// former owner of the shard would report for ever; nil if it may.
func (c *call) stillOwner(ctx context.Context) error {
	_, err := c.s.shard.Read(ctx, c.namespace, func(*engine.Engine, engine.Time) {})
	refusal, _ := errors.AsType[*interlock.Error](err)
	if refusal != nil && (refusal.Code == interlock.CodeOverloaded || refusal.Code == interlock.CodeNoSpace) {
		return nil
	}
	return err
}

// whyEnded returns the error that a reader receives when its stream ends on our side.
func (c *call) whyEnded(ctx context.Context, err error) *interlock.Error {
	if c.s.isDraining() {
		return &interlock.Error{
			Code: interlock.CodeShuttingDown, Message: "the server is shutting down: connect again in a moment",
		}
	}
	if refusal := takenBack(ctx); refusal != nil {
		return refusal
	}
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal
	}
	c.s.obs.figures.unreadable.Inc()
	c.s.log.Error(
		"the journal could not be read, and a reader of events was disconnected", "route", c.route, "namespace",
		string(c.namespace), "error", err,
	)
	return &interlock.Error{
		Code: interlock.CodeHistoryUnreadable,
		Message: "the server could not read its journal further, so events are missing: " +
			"connect again and continue after the last index, and ask the operator to check the server's log",
	}
}

// streamLimit counts the readers of events of each namespace.
type streamLimit struct {
	max  int
	mu   sync.Mutex
	open map[interlock.Namespace]int
}

// enter takes a place; leave returns it.
func (l *streamLimit) enter(ns interlock.Namespace) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[ns] >= l.max {
		return nil, false
	}
	if l.open == nil {
		l.open = map[interlock.Namespace]int{}
	}
	l.open[ns]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[ns]--; l.open[ns] == 0 {
			delete(l.open, ns)
		}
	}, true
}
