package server

import (
	"net/http"
	"time"

	"github.com/interlockdev/interlock/engine"
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
	leave, ok := c.enterHistories()
	if !ok {
		return
	}
	defer leave()
	reducer := report.New(o)
	h := history{since: since, until: until, lead: reportLead, entries: reportEntries}
	read, ok := c.readHistory(h, reducer.Add)
	if !ok {
		return
	}
	j := c.reply()
	if !c.compute(func() {
		j.moment("since", since)
		j.moment("until", read.end)
		writeReport(j, reducer.Report(read.end))
		j.bool("more", read.more)
	}) {
		return
	}
	leave()
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
		writeReportKey(j, "", &p.Top[i])
	}
	j.closeArray()
	j.openArray("incidents")
	for i := range p.Incidents.Incidents {
		writeIncident(j, "", &p.Incidents.Incidents[i])
	}
	j.closeArray()
	more := 0
	for _, n := range p.Incidents.Left {
		more += n
	}
	j.int("more_incidents", int64(more))
	j.openArray("advice")
	for i := range p.Advice.Advice {
		writeReportAdvice(j, "", &p.Advice.Advice[i])
	}
	j.closeArray()
	j.int("left_out", int64(p.Incidents.LeftOpen+p.Advice.Left))
}
