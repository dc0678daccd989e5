package server

import (
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/timeline"
)

// A timeline: the time that it shows if the caller does not choose one, how much earlier the journal is read (bars that
// began before go on), and how many entries of its namespace one call reads.
const (
	timelineSince   = time.Hour
	timelineLead    = time.Hour
	timelineEntries = 1 << 18
)

// getTimeline is GET /v1/timeline: the waits and holds of a time as bars, with marks and links.
func (c *call) getTimeline() {
	since, until, ok := c.period(timelineSince)
	if !ok {
		return
	}
	ended, ok := c.boolParam("ended")
	if !ok {
		return
	}
	reducer := timeline.New(timeline.Filter{
		From: since, To: until, Agent: c.query.Get("agent"), Key: interlock.Key(c.query.Get("key")), Ended: ended,
	})
	h := history{since: since, until: until, lead: timelineLead, entries: timelineEntries, full: reducer.Full}
	read, ok := c.readHistory(h, reducer.Add)
	if !ok {
		return
	}
	j := c.reply()
	j.timestamp("since", time.Unix(0, int64(since)))
	j.timestamp("until", time.Unix(0, int64(read.end)))
	writeTimeline(j, reducer.Timeline(), ended)
	j.bool("more", read.more)
	c.send(http.StatusOK, j, read.at)
}

// writeTimeline writes the members of an api.Timeline but for its times and its stamp; ended: of one with
// ended=true, which has the links of each bar.
func writeTimeline(j *jsonOut, t *timeline.Timeline, ended bool) {
	j.openArray("lanes")
	for _, agent := range t.Lanes {
		j.text("", agent)
	}
	j.closeArray()
	j.openArray("bars")
	for i := range t.Bars {
		writeBar(j, &t.Bars[i], ended)
	}
	j.closeArray()
	j.openArray("tasks")
	for i := range t.Tasks {
		writeTimelineTask(j, &t.Tasks[i])
	}
	j.closeArray()
	j.openArray("marks")
	for i := range t.Marks {
		m := &t.Marks[i]
		j.open("")
		j.str("kind", m.Kind)
		j.text("agent", m.Agent)
		j.str("key", string(m.Key))
		if m.Fence != 0 {
			j.decimal("fence", uint64(m.Fence))
		}
		if m.Holder != nil {
			writeTimelineLease(j, m.Holder)
		}
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
	more := t.MoreBars
	if !ended {
		more += t.MoreOpen // at their ends these are complete
	}
	j.int("more_bars", int64(more))
	j.int("more_tasks", int64(t.MoreTasks))
	j.int("more_marks", int64(t.MoreMarks))
}

func writeBar(j *jsonOut, b *timeline.Bar, linked bool) {
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
	writeContext(j, b.Context)
	j.str("lease", b.Lease)
	if b.Waited {
		j.bool("waited", true)
	}
	if !b.Task.IsZero() {
		j.str("task", b.Task.String())
	}
	j.count("attempt", uint64(b.Attempt))
	j.said("queue", b.Queue)
	if b.Index != 0 {
		j.decimal("index", uint64(b.Index))
	}
	if b.EndIndex != 0 {
		j.decimal("end_index", uint64(b.EndIndex))
	}
	if linked && len(b.Links) > 0 {
		j.openArray("links")
		for i := range b.Links {
			t := &b.Links[i]
			j.open("")
			j.str("kind", t.Kind)
			j.decimal("fence", uint64(t.Fence))
			writeTimelineLease(j, t)
			j.close()
		}
		j.closeArray()
	}
	j.close()
}

// writeTimelineLease writes which lease a hold was of.
func writeTimelineLease(j *jsonOut, t *timeline.Target) {
	j.str("lease", t.Lease)
	if t.TraceID != "" {
		j.str("trace_id", t.TraceID)
	}
	if !t.Task.IsZero() {
		j.str("task", t.Task.String())
	}
}

// writeContext writes where a request came from.
func writeContext(j *jsonOut, c timeline.Context) {
	if c.TraceID != "" {
		j.str("trace_id", c.TraceID)
		j.str("parent_id", c.ParentID)
	}
}

func writeTimelineTask(j *jsonOut, t *timeline.Task) {
	j.open("")
	j.str("task", t.ID.String())
	j.text("queue", t.Queue)
	j.said("kind", t.Kind)
	j.text("agent", t.Agent)
	j.said("flow", t.Flow)
	writeClaims(j, t.Claims)
	j.said("purpose", t.Purpose)
	writeContext(j, t.Context)
	j.timestamp("from", time.Unix(0, int64(t.From)))
	if t.To != 0 {
		j.timestamp("to", time.Unix(0, int64(t.To)))
		j.str("outcome", t.Outcome)
	}
	j.count("attempts", uint64(t.Attempts))
	j.decimal("index", uint64(t.Index))
	if t.EndIndex != 0 {
		j.decimal("end_index", uint64(t.EndIndex))
	}
	j.close()
}
