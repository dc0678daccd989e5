package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/timeline"
	"github.com/interlockdev/interlock/shard"
)

const (
	// timelineSince is the time that a timeline shows if the caller does not choose one.
	timelineSince = time.Hour
	// timelineLead is how much earlier the journal is read: bars that began before go on.
	timelineLead = time.Hour
	// timelineEntries is how many entries of its namespace one call reads.
	timelineEntries = 1 << 18
)

// getTimeline is GET /v1/timeline: the waits and holds of a time as bars, with marks and links.
func (c *call) getTimeline() {
	f, ok := c.timelineFilter()
	if !ok {
		return
	}
	at := c.s.shard.At()
	if !c.s.archive {
		if at, ok = c.confirm(); !ok {
			return
		}
	}
	from, ok := c.seek(f.From.Add(-min(timelineLead, time.Duration(f.From))))
	if !ok {
		return
	}
	leave, ok := c.enterStreams()
	if !ok {
		return
	}
	defer leave()
	reducer := timeline.New(f)
	end, more, err := c.readTimeline(reducer, &f, max(from, c.s.shard.First()), at.Index)
	if err != nil {
		c.failWith(c.whyEnded(c.r.Context(), err))
		return
	}
	j := c.reply()
	j.timestamp("since", time.Unix(0, int64(f.From)))
	j.timestamp("until", time.Unix(0, int64(end)))
	writeTimeline(j, reducer.Timeline())
	j.bool("more", more)
	c.send(http.StatusOK, j, at)
}

// timelineFilter reads what to show.
func (c *call) timelineFilter() (f timeline.Filter, ok bool) {
	f.Agent, f.Key = c.query.Get("agent"), interlock.Key(c.query.Get("key"))
	if f.From, ok = c.momentParam("since"); !ok {
		return f, false
	}
	if f.To, ok = c.momentParam("until"); !ok {
		return f, false
	}
	if f.From == 0 {
		f.From = cmp.Or(f.To, engine.Time(time.Now().UnixNano())).Add(-timelineSince)
	}
	if f.To > 0 && f.To <= f.From {
		c.refuse(interlock.CodeInvalidRequest, "parameter until: want a time after since")
		return f, false
	}
	return f, true
}

// readTimeline adds the events from an index on, up to the newest or to the end of the filter. It returns the time that
// the timeline ends at; more means that it is earlier than asked for, because there is more than one call reads.
func (c *call) readTimeline(
	r *timeline.Reducer, f *timeline.Filter, from, newest interlock.Index,
) (end engine.Time, more bool, err error) {
	end = cmp.Or(f.To, engine.Time(time.Now().UnixNano()))
	if from > newest {
		return end, false, nil
	}
	ctx, cancel := c.s.whileKnown(c.r.Context(), c.identity)
	defer cancel()
	defer context.AfterFunc(c.s.serving, cancel)()
	entries := 0
	err = c.s.shard.Follow(ctx, shard.Follower{
		Namespace: c.namespace, From: from,
		Visit: func(index interlock.Index, _ interlock.Epoch, events []record.Event) error {
			if index > newest {
				return errEnough
			}
			for i := range events {
				ev := &events[i]
				if f.To > 0 && ev.Namespace != "" && ev.At >= f.To {
					return errEnough
				}
				if entries >= timelineEntries {
					end, more = min(end, ev.At), true
					return errEnough
				}
				if !isOfCopy(ev) {
					r.Add(index, ev)
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
		err = nil
	}
	return end, more, err
}

// writeTimeline writes the members of an api.Timeline but for its times and its stamp.
func writeTimeline(j *jsonOut, t *timeline.Timeline) {
	j.openArray("lanes")
	for _, agent := range t.Lanes {
		j.text("", agent)
	}
	j.closeArray()
	j.openArray("bars")
	for i := range t.Bars {
		writeBar(j, &t.Bars[i])
	}
	j.closeArray()
	j.openArray("marks")
	for i := range t.Marks {
		m := &t.Marks[i]
		j.open("")
		j.str("kind", m.Kind)
		j.text("agent", m.Agent)
		j.str("key", string(m.Key))
		j.timestamp("time", time.Unix(0, int64(m.Time)))
		j.decimal("index", uint64(m.Index))
		j.text("text", m.Text)
		j.close()
	}
	j.closeArray()
	j.openArray("links")
	for _, l := range t.Links {
		j.open("")
		j.str("kind", l.Kind)
		j.int("from", int64(l.From))
		j.int("to", int64(l.To))
		j.close()
	}
	j.closeArray()
	j.int("more_bars", int64(t.MoreBars+t.MoreOpen))
	j.int("more_marks", int64(t.MoreMarks))
}

func writeBar(j *jsonOut, b *timeline.Bar) {
	j.open("")
	j.str("kind", string(b.Kind))
	j.text("agent", b.Agent)
	j.said("flow", b.Flow)
	writeClaims(j, b.Claims)
	j.timestamp("from", time.Unix(0, int64(b.From)))
	if b.To != 0 {
		j.timestamp("to", time.Unix(0, int64(b.To)))
		j.str("outcome", b.Outcome)
	}
	if b.Fence != 0 {
		j.decimal("fence", uint64(b.Fence))
	}
	j.said("purpose", b.Purpose)
	if b.TraceID != "" {
		j.str("trace_id", b.TraceID)
	}
	if b.Index != 0 {
		j.decimal("index", uint64(b.Index))
	}
	if b.EndIndex != 0 {
		j.decimal("end_index", uint64(b.EndIndex))
	}
	j.close()
}
