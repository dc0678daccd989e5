package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// events is GET /v1/events: the journal's events of the caller's namespace, as
// JSON lines, or as server-sent events where Accept asks for text/event-stream.
// Lines end at the newest event unless follow=true is given; server-sent events go
// on unless follow=false is.
//
// The journal is read at the reader's pace and nothing is held back for it, so one
// that stands still costs a connection and blocks nobody. One that has read
// nothing for writeTimeout is cut off; it comes back with Last-Event-ID, or with
// from.
func (c *call) events() {
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
	at, ok := c.confirm()
	if !ok {
		return
	}
	from, ok := c.eventsFrom(at.Index)
	if !ok {
		return
	}
	c.follow(newEventOut(c.w, sse, view{
		shows: func(ev *engine.Event) bool { return shown(ev.Kind) },
		write: writeEvent,
	}), from, at.Index, follow)
}

// view is what of the journal a reader is shown, and how.
type view struct {
	shows func(*engine.Event) bool
	write func(*jsonOut, *engine.Event, interlock.Index, interlock.Epoch)
}

// follow answers with what a view shows of the journal, from an index on (0 is the
// oldest that is kept) up to newest, which the journal has confirmed for this call, or
// with follow beyond it.
func (c *call) follow(out *eventOut, from, newest interlock.Index, follow bool) {
	if c.s.isDraining() {
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down: ask again in a moment")
		return
	}
	if first := c.s.shard.First(); from != 0 && from < first {
		c.refuse(interlock.CodeHistoryTrimmed, fmt.Sprintf("event %d is no longer kept: the oldest is %d", from, first))
		return
	}
	leave, ok := c.s.streams.enter(c.namespace)
	if !ok {
		c.refuse(interlock.CodeTooManyStreams, fmt.Sprintf("namespace %s has %d readers of events, which is its limit", c.namespace, c.s.streams.max))
		return
	}
	defer leave()
	c.s.obs.figures.streams.Inc()
	defer c.s.obs.figures.streams.Dec()

	c.answered = true
	h := c.w.Header()
	h["Content-Type"] = []string{"application/x-ndjson"}
	if out.sse {
		h["Content-Type"] = []string{"text/event-stream"}
	}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	c.w.WriteHeader(http.StatusOK)
	c.streamEvents(out, from, newest, follow)
}

// eventsFrom is the index to begin at; 0 when none is given. It refuses to begin behind
// an index above newest, which was never given out (one from before an older journal was
// restored, for example): the events up to it would be missed in silence.
func (c *call) eventsFrom(newest interlock.Index) (interlock.Index, bool) {
	happened := func(index interlock.Index, asked string) bool {
		if index > newest {
			c.refuse(interlock.CodeFutureVersion, fmt.Sprintf("index %s was never given out: the newest is %d", asked, newest))
		}
		return index <= newest
	}

	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		index, err := parseDecimal(last)
		if err != nil {
			c.refuse(interlock.CodeInvalidRequest, "the header Last-Event-ID is not an index as this server gives it")
			return 0, false
		}
		return interlock.Index(index) + 1, happened(interlock.Index(index), last)
	}
	text := c.query.Get("from")
	if text == "" {
		return 0, true
	}
	index, err := parseDecimal(text)
	if err != nil {
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf("parameter from: want an index such as 1041, found %q", clipped(text)))
		return 0, false
	}
	return interlock.Index(index), index == 0 || happened(interlock.Index(index-1), text)
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
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	helpers.Go(func() {
		keepAlive := time.NewTicker(keepAliveEvery)
		defer keepAlive.Stop()
		for {
			select {
			case <-keepAlive.C:
				if !c.stillOwner(ctx) {
					continue // a failed shard ends the stream with its reason
				}
				if out.keepAlive() != nil {
					cancel()
				}
			case <-c.s.draining:
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
	})
	err := out.flush() // the headers, so that a reader knows that it is connected
	if err == nil {
		err = c.s.shard.Follow(ctx, from, func(index interlock.Index, epoch interlock.Epoch, entry []byte) error {
			if err := out.entry(c.namespace, index, epoch, entry); err != nil {
				return err
			}
			if !follow && index >= newest {
				return errEnough
			}
			if index >= c.s.shard.At().Index {
				return out.flush()
			}
			return nil
		})
	}
	var e *interlock.Error
	switch {
	case c.s.isDraining():
		out.end(&interlock.Error{Code: interlock.CodeShuttingDown, Message: "the server is shutting down: connect again in a moment"})
	case takenBack(ctx) != nil:
		out.end(takenBack(ctx))
	case errors.As(err, &e):
		out.end(e)
	case errors.Is(err, errEnough):
		_ = out.flush()
	}
}

// stillOwner reports whether a reader of events may be told that nothing new has come: a
// former owner of the shard would say so for ever.
func (c *call) stillOwner(ctx context.Context) bool {
	_, err := c.s.shard.Read(ctx, c.namespace, func(*engine.Engine, engine.Time) {})
	refusal, _ := errors.AsType[*interlock.Error](err)
	return err == nil || refusal != nil && (refusal.Code == interlock.CodeOverloaded || refusal.Code == interlock.CodeNoSpace)
}

const (
	keepAliveEvery = 15 * time.Second
	flushAbove     = 32 << 10
)

// eventOut writes events for one reader. The keep-alive comes from another
// goroutine, hence the lock.
type eventOut struct {
	sse bool
	view
	w  http.ResponseWriter
	rc *http.ResponseController

	mu   sync.Mutex
	json jsonOut
	last interlock.Index // the newest index that was looked at
	err  error
}

func newEventOut(w http.ResponseWriter, sse bool, v view) *eventOut {
	return &eventOut{sse: sse, view: v, w: w, rc: http.NewResponseController(w)}
}

// entry writes those events of an entry that belong to ns. In server-sent events
// the id stands at the last event of an entry, so that a reader that was cut off
// in its middle gets all of it again.
func (o *eventOut) entry(ns interlock.Namespace, index interlock.Index, epoch interlock.Epoch, entry []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.json.b)
	err := engine.DecodeEntry(entry, func(ev *engine.Event) error {
		if ev.Namespace != ns && ev.Namespace != "" || !o.shows(ev) {
			return nil
		}
		if o.sse {
			o.json.b = append(o.json.b, "event: "...)
			o.json.b = append(o.json.b, ev.Kind.String()...)
			o.json.b = append(o.json.b, "\ndata: "...)
		}
		o.write(&o.json, ev, index, epoch)
		o.json.b = append(o.json.b, '\n')
		if o.sse {
			o.json.b = append(o.json.b, '\n')
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.last = index
	if o.sse && len(o.json.b) > before {
		o.json.b = o.json.b[:len(o.json.b)-1]
		o.writeID()
	}
	if len(o.json.b) > flushAbove {
		return o.send()
	}
	return nil
}

func (o *eventOut) writeID() {
	o.json.b = append(o.json.b, "id: "...)
	o.json.b = append(o.json.b, o.last.String()...)
	o.json.b = append(o.json.b, '\n', '\n')
}

// shown leaves out the records about request ids, which are their callers' own,
// and what stands in snapshots only.
func shown(k engine.EventKind) bool { return k != engine.EvAnswered && k < engine.EvCounters }

func (o *eventOut) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.send()
}

// send gives what was collected to the reader, and a time limit to take it.
func (o *eventOut) send() error {
	if o.err != nil {
		return o.err
	}
	_ = o.rc.SetReadDeadline(time.Time{})
	_ = o.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if len(o.json.b) > 0 {
		if _, o.err = o.w.Write(o.json.b); o.err != nil {
			return o.err
		}
		o.json.b = o.json.b[:0]
	}
	o.err = o.rc.Flush()
	return o.err
}

// keepAlive lets a reader and what stands between see that the connection lives,
// and tells how far the journal was looked through. A stream that is being written
// needs none.
func (o *eventOut) keepAlive() error {
	if !o.mu.TryLock() {
		return nil
	}
	defer o.mu.Unlock()
	switch {
	case o.sse && o.last > 0:
		// An id without data moves the reader's Last-Event-ID and is no event.
		o.writeID()
	case o.sse:
		o.json.b = append(o.json.b, ":\n\n"...)
	default:
		o.json.open("")
		o.json.str("event", "keep_alive")
		o.json.decimal("index", uint64(o.last))
		o.json.close()
		o.json.b = append(o.json.b, '\n')
	}
	return o.send()
}

// end is the last thing a reader is told when the stream ends on our side.
func (o *eventOut) end(e *interlock.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sse {
		o.json.b = append(o.json.b, "event: end\ndata: "...)
	}
	o.json.open("")
	o.json.str("event", "end")
	o.json.str("code", string(e.Code))
	o.json.text("detail", e.Message)
	o.json.bool("retryable", e.Code.Retryable())
	writeAdvice(&o.json, adviceForCode(e.Code))
	o.json.close()
	o.json.b = append(o.json.b, '\n')
	if o.sse {
		o.json.b = append(o.json.b, '\n')
	}
	_ = o.send()
}

// streamLimit counts the readers of events of each namespace.
type streamLimit struct {
	max  int
	mu   sync.Mutex
	open map[interlock.Namespace]int
}

// enter takes a place; leave gives it back.
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
