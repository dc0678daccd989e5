package server

import (
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/advice"
	"github.com/interlockdev/interlock/internal/incident"
	"github.com/interlockdev/interlock/internal/report"
)

// A report, as a timeline. It reads more, because its memory does not grow with the entries.
const (
	reportSince   = 12 * time.Hour
	reportLead    = time.Hour
	reportEntries = 1 << 20
	reportClasses = 50 // that an answer has
)

// getReport is GET /v1/report: what happened in a time, what went wrong, and what would help.
func (c *call) getReport() {
	since, until, ok := c.period(reportSince)
	if !ok {
		return
	}
	o := report.Options{Namespace: c.namespace, Since: since}
	if !c.s.archive {
		if _, ok = c.read(func(e *engine.Engine, _ engine.Time) { o.Patterns = e.Patterns(c.namespace) }); !ok {
			return
		}
	}
	reducer := report.New(o)
	h := history{since: since, until: until, lead: reportLead, entries: reportEntries}
	read, ok := c.readHistory(h, reducer.Add)
	if !ok {
		return
	}
	j := c.reply()
	j.timestamp("since", time.Unix(0, int64(since)))
	j.timestamp("until", time.Unix(0, int64(read.end)))
	writeReport(j, reducer.Report(read.end))
	j.bool("more", read.more)
	c.send(http.StatusOK, j, read.at)
}

// writeReport writes the members of an api.Report but for its times and its stamp.
func writeReport(j *jsonOut, p *report.Report) {
	j.text("verdict", p.Verdict())
	writeReportSums(j, "all", &p.All)
	j.openArray("classes")
	for _, s := range p.Classes[:min(len(p.Classes), reportClasses)] {
		writeReportSums(j, "", s)
	}
	j.closeArray()
	j.openArray("keys")
	for i := range p.Top {
		k := &p.Top[i]
		j.open("")
		j.str("key", string(k.Key))
		j.int("waits", int64(k.Waits))
		j.ms("lost_ms", k.Lost)
		j.close()
	}
	j.closeArray()
	j.openArray("incidents")
	for i := range p.Incidents.Incidents {
		writeIncident(j, &p.Incidents.Incidents[i])
	}
	j.closeArray()
	more := 0
	for _, n := range p.Incidents.Left {
		more += n
	}
	j.int("more_incidents", int64(more))
	j.openArray("advice")
	for i := range p.Advice.Advice {
		writeReportAdvice(j, &p.Advice.Advice[i])
	}
	j.closeArray()
	j.int("left_out", int64(p.Incidents.LeftOpen+p.Advice.Left))
}

func writeReportSums(j *jsonOut, name string, s *report.Sums) {
	j.open(name)
	if s.Class != "" {
		j.str("class", s.Class)
	}
	j.int("grants", int64(s.Grants))
	j.int("waits", int64(s.Waits))
	j.int("failures", int64(s.Failures))
	j.ms("lost_ms", s.Lost)
	j.ms("wait_p50_ms", s.Wait(50))
	j.ms("wait_p99_ms", s.Wait(99))
	j.ms("hold_p50_ms", s.Hold(50))
	j.ms("hold_p99_ms", s.Hold(99))
	j.close()
}

func writeIncident(j *jsonOut, in *incident.Incident) {
	j.open("")
	j.str("kind", string(in.Kind))
	j.timestamp("time", time.Unix(0, int64(in.Time)))
	j.timestamp("last", time.Unix(0, int64(in.Last)))
	j.decimal("index", uint64(in.Index))
	if in.Before != 0 {
		j.decimal("before", uint64(in.Before))
	}
	j.int("count", int64(in.Count))
	if in.Cause != "" {
		j.str("cause", in.Cause)
	}
	writeTexts(j, "agents", in.Agents)
	writeKeys(j, in.Keys)
	if !in.Task.IsZero() {
		j.str("task", in.Task.String())
	}
	j.duration("took_ms", in.Took)
	if in.GoesOn {
		j.bool("goes_on", true)
	}
	if len(in.Cycle) > 0 {
		j.openArray("cycle")
		for i := range in.Cycle {
			writeCycleStep(j, "", &in.Cycle[i])
		}
		j.closeArray()
	}
	j.text("text", in.Text)
	j.text("next", in.Next)
	j.said("command", in.Command)
	j.close()
}

func writeReportAdvice(j *jsonOut, a *advice.Advice) {
	j.open("")
	j.str("kind", string(a.Kind))
	writeKeys(j, a.Keys)
	j.said("pattern", a.Pattern)
	writeTexts(j, "agents", a.Agents)
	j.int("count", int64(a.Count))
	j.int("of", int64(a.Of))
	j.duration("lost_ms", a.Lost)
	j.text("text", a.Text)
	j.said("command", a.Command)
	j.openArray("indexes")
	for _, index := range a.Indexes {
		j.decimal("", uint64(index))
	}
	j.closeArray()
	j.close()
}

func writeKeys(j *jsonOut, keys []interlock.Key) {
	j.openArray("keys")
	for _, k := range keys {
		j.str("", string(k))
	}
	j.closeArray()
}
