package report

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock/internal/incident"
	"github.com/interlockdev/interlock/internal/prose"
)

// Verdict is the report in one paragraph, the most urgent first.
func (p *Report) Verdict() string {
	text := p.happened()
	if in := p.Incidents; in.Open > 0 {
		text += fmt.Sprintf(" %s on, %s so far.", prose.Count(in.Open, "wait goes", "waits go"), prose.Short(in.OpenFor))
	}
	return text
}

// happened is what has ended.
func (p *Report) happened() string {
	counts, all := map[incident.Kind]int{}, 0
	for i := range p.Incidents.Incidents {
		in := &p.Incidents.Incidents[i]
		counts[in.Kind] += in.Count
		all += in.Count
	}
	for kind, n := range p.Incidents.Left {
		counts[kind] += n
		all += n
	}
	text := "No incidents."
	if all > 0 {
		var parts []string
		for _, kind := range incident.Kinds {
			if n := counts[kind]; n > 0 {
				words := incidentWords[kind]
				parts = append(parts, prose.Count(n, words[0], words[1]))
			}
		}
		text = prose.Count(all, "incident", "incidents") + ": " + strings.Join(parts, ", ") + "."
	}
	s := &p.All
	switch {
	case s.Grants+s.Waits == 0:
		return text + " No agent asked for a key."
	case s.Waits == 0:
		return text + fmt.Sprintf(" %s, none after a wait.", prose.Count(s.Grants, "grant", "grants"))
	}
	text += fmt.Sprintf(
		" %s, %s, %s lost", prose.Count(s.Grants, "grant", "grants"), prose.Count(s.Waits, "wait", "waits"),
		prose.Short(s.Lost),
	)
	if len(p.Top) > 0 {
		text += fmt.Sprintf(", most at %s: %s", p.Top[0].Key, prose.Short(p.Top[0].Lost))
	}
	return text + "."
}

var incidentWords = map[incident.Kind][2]string{
	incident.Deadlock:   {"deadlock", "deadlocks"},
	incident.LostLease:  {"lost lease", "lost leases"},
	incident.StaleWrite: {"refused write", "refused writes"},
	incident.DeadLetter: {"dead letter", "dead letters"},
	incident.StuckWait:  {"long wait", "long waits"},
	incident.FailOver:   {"fail-over", "fail-overs"},
}
