package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// history is a part of the journal that one call reads.
type history struct {
	since, until engine.Time            // until is 0 for now
	lead         time.Duration          // how much before since the reading begins
	entries      int                    // of the call's namespace, at most
	full         func(engine.Time) bool // whether the reading ends before an event of a time; nil: never
}

// historyRead is how far a call has read.
type historyRead struct {
	at   interlock.At // the newest entry when the reading began
	end  engine.Time  // the time that was reached
	more bool         // that is earlier than asked for: there is more than one call reads
}

// period reads the parameters since and until. Without since, the period is as long as usual.
func (c *call) period(usual time.Duration) (since, until engine.Time, ok bool) {
	if since, ok = c.momentParam("since"); !ok {
		return 0, 0, false
	}
	if until, ok = c.momentParam("until"); !ok {
		return 0, 0, false
	}
	if since == 0 {
		since = cmp.Or(until, engine.Time(time.Now().UnixNano())).Add(-usual)
	}
	if until > 0 && until <= since {
		c.refuse(interlock.CodeInvalidRequest, "parameter until: want a time after since")
		return 0, 0, false
	}
	return since, until, true
}

// readHistory passes the events of the call's namespace, and those of the whole server, to add. The call has a place
// among those that read histories. ok is false when the call was answered.
func (c *call) readHistory(h history, add func(interlock.Index, *record.Event)) (read historyRead, ok bool) {
	read.at = c.s.shard.At()
	if !c.s.archive {
		if read.at, ok = c.confirm(); !ok {
			return read, false
		}
	}
	from, ok := c.seek(h.since.Add(-min(h.lead, time.Duration(h.since))))
	if !ok {
		return read, false
	}
	start, ok := c.seek(h.since)
	if !ok {
		return read, false
	}
	// At least half of the entries are of the time that is asked for, so that callers get on.
	from = max(from, start-min(start, interlock.Index(h.entries/2)))
	if err := c.visit(h, max(from, c.s.shard.First()), add, &read); err != nil {
		c.failWith(c.whyEnded(c.r.Context(), err))
		return read, false
	}
	return read, true
}

// visit visits the events from an index on.
func (c *call) visit(
	h history, from interlock.Index, add func(interlock.Index, *record.Event), read *historyRead,
) error {
	read.end = cmp.Or(h.until, engine.Time(time.Now().UnixNano()))
	newest := read.at.Index
	if from > newest {
		return nil
	}
	ctx, cancel := c.s.whileKnown(c.r.Context(), c.identity)
	defer cancel()
	defer context.AfterFunc(c.s.serving, cancel)()
	entries := 0
	err := c.s.shard.Follow(ctx, shard.Follower{
		Namespace: c.namespace, From: from,
		Visit: func(index interlock.Index, _ interlock.Epoch, events []record.Event) error {
			if index > newest {
				return errEnough
			}
			for i := range events {
				ev := &events[i]
				if h.until > 0 && ev.Namespace != "" && ev.At >= h.until {
					return errEnough
				}
				if entries >= h.entries || h.full != nil && h.full(ev.At) {
					read.end, read.more = min(read.end, ev.At), true
					return errEnough
				}
				if !isOfCopy(ev) {
					add(index, ev)
				}
			}
			entries++
			return nil
		},
		Reached: func(index interlock.Index) error {
			if index >= newest {
				return errEnough
			}
			return nil
		},
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
