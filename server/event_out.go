package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

const (
	// keepAliveEvery is how long a stream is silent at most.
	keepAliveEvery = 15 * time.Second
	// flushAbove is how much is collected before it is sent.
	flushAbove = 32 << 10
	// keptAbove is how large a buffer an idle reader may keep.
	keptAbove = 2 * flushAbove
)

// eventOut writes events for one reader. It is for one goroutine.
type eventOut struct {
	sse bool
	view
	c  *call
	rc *http.ResponseController

	json jsonOut
	last interlock.Index // everything up to here was looked at
	sent time.Time
	err  error // of the connection
}

func newEventOut(c *call, sse bool, v view) *eventOut {
	return &eventOut{sse: sse, view: v, c: c, rc: http.NewResponseController(c.w)}
}

// entry writes the events of an entry that the view shows. In server-sent events
// the id stands at the last event of an entry, so that a reader that was cut off
// in its middle gets all of it again.
func (o *eventOut) entry(index interlock.Index, epoch interlock.Epoch, events []record.Event) error {
	before := len(o.json.b)
	for i := range events {
		ev := &events[i]
		if !o.shows(ev) {
			continue
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
	}
	o.last = max(o.last, index)
	if o.sse && len(o.json.b) > before {
		o.json.b = o.json.b[:len(o.json.b)-1]
		o.writeID()
	}
	return o.err
}

// isFull reports whether rest sends something.
func (o *eventOut) isFull() bool {
	return len(o.json.b) > flushAbove || time.Since(o.sent) >= keepAliveEvery
}

// rest sends the collected events if they are large. It may take as long as the reader does.
func (o *eventOut) rest() error {
	if len(o.json.b) > flushAbove {
		return o.send()
	}
	return o.keepAlive()
}

// reached sends the collected events at the end of the journal.
func (o *eventOut) reached(index interlock.Index) error {
	o.last = max(o.last, index)
	if len(o.json.b) > 0 {
		return o.send()
	}
	return o.keepAlive()
}

func (o *eventOut) writeID() {
	o.json.b = append(o.json.b, "id: "...)
	if o.c.s.shared {
		o.json.b = append(strconv.AppendInt(o.json.b, int64(o.c.s.shard.At().Shard), 10), ':')
	}
	o.json.b = append(o.json.b, o.last.String()...)
	o.json.b = append(o.json.b, '\n', '\n')
}

// shown leaves out the records about request ids, which are their callers' own,
// and what stands in snapshots only.
func shown(k record.Kind) bool { return k != record.Answered && k < record.Counters }

// send sends the collected events to the reader, which has a time limit to take them.
func (o *eventOut) send() error {
	err := o.sendBytes(o.json.b)
	if o.json.b = o.json.b[:0]; cap(o.json.b) > keptAbove {
		o.json.b = nil
	}
	return err
}

// sendBytes is send of bytes that others may read at the same time.
func (o *eventOut) sendBytes(b []byte) error {
	if o.err != nil {
		return o.err
	}
	_ = o.rc.SetReadDeadline(time.Time{})
	_ = o.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if n := len(b); n > 0 {
		// Pending data stays here until the reader takes it, for up to writeTimeout.
		if n > smallBytes {
			if !o.c.s.flight.take(o.c.namespace, n) {
				return &interlock.Error{
					Code:    interlock.CodeOverloaded,
					Message: tooMuchInFlight + "continue after the last index, and read events without delay",
				}
			}
			defer o.c.s.flight.count(o.c.namespace, -n)
		}
		if _, o.err = o.c.w.Write(b); o.err != nil {
			return o.err
		}
	}
	o.err = o.rc.Flush()
	o.sent = time.Now()
	return o.err
}

// keepAlive lets a reader and what stands between see that the connection lives when
// nothing was sent for long, and how far the journal was looked through.
func (o *eventOut) keepAlive() error {
	if time.Since(o.sent) < keepAliveEvery {
		return nil
	}
	switch {
	case len(o.json.b) > 0:
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

// end is the last thing that a reader gets when the stream ends on our side.
func (o *eventOut) end(e *interlock.Error) {
	if o.sse {
		o.json.b = append(o.json.b, "event: end\ndata: "...)
	}
	o.json.open("")
	o.json.str("event", "end")
	o.json.str("code", string(e.Code))
	o.json.text("detail", e.Message)
	o.json.bool("retryable", e.Code.Retryable())
	writeAdvice(&o.json, prose.ForCode(e.Code))
	o.json.close()
	o.json.b = append(o.json.b, '\n')
	if o.sse {
		o.json.b = append(o.json.b, '\n')
	}
	_ = o.send()
}
