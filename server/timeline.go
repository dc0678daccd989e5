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
	leave, ok := c.enterHistories()
	if !ok {
		return
	}
	defer leave()
	reducer := timeline.New(timeline.Filter{
		From: since, To: until, Agent: c.query.Get("agent"), Key: interlock.Key(c.query.Get("key")), Ended: ended,
	})
	h := history{since: since, until: until, lead: timelineLead, entries: timelineEntries, full: reducer.Full}
	read, ok := c.readHistory(h, reducer.Add)
	if !ok {
		return
	}
	j := c.reply()
	if !c.compute(func() {
		j.moment("since", since)
		j.moment("until", read.end)
		writeTimeline(j, reducer.Timeline(), ended)
		j.bool("more", read.more)
	}) {
		return
	}
	leave()
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
		writeBar(j, "", &t.Bars[i], ended)
	}
	j.closeArray()
	j.openArray("tasks")
	for i := range t.Tasks {
		writeTimelineTask(j, "", &t.Tasks[i])
	}
	j.closeArray()
	j.openArray("marks")
	for i := range t.Marks {
		writeMark(j, "", &t.Marks[i])
	}
	j.closeArray()
	j.openArray("links")
	for i := range t.Links {
		writeLink(j, "", &t.Links[i])
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

// writeLeaseOf writes the members of an api.TimelineMark about the lease that had the fence.
func writeLeaseOf(j *jsonOut, t *timeline.Target) {
	j.str("lease", t.Lease)
	if t.TraceID != "" {
		j.str("trace_id", t.TraceID)
	}
	if !t.Task.IsZero() {
		j.str("task", t.Task.String())
	}
}
