package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/bench"
)

// writeMarkdown writes one small table for each scenario, for a document: the medians, and
// in brackets what Interlock through its first transport is to them.
func (r *report) writeMarkdown(w io.Writer) error {
	m := r.Machine
	var b strings.Builder
	fmt.Fprintf(
		&b, "%s, %d cores, %s, %s, commit %s: `%s`\n", m.Processor, m.Cores, m.System, m.Go, m.Commit,
		strings.Join(r.Command, " "),
	)
	for _, p := range plans {
		if figures := about(p.scenario, r.Figures); len(figures) > 0 {
			r.writePlan(&b, p, figures)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// column is one column of a table: figures of one load.
type column struct {
	heading string
	load    string
	names   []string // the first one has a ratio
}

func (r *report) writePlan(b *strings.Builder, p plan, figures []bench.Figure) {
	var loads, targets []string
	for _, f := range figures {
		if !slices.Contains(loads, f.Load) {
			loads = append(loads, f.Load)
		}
		if !slices.Contains(targets, f.Target) {
			targets = append(targets, f.Target)
		}
	}
	first := bench.Interlock{Transport: p.transports[0]}.Name()
	columns := columnsOf(p.scenario, loads, common(figures, loads, targets))
	fmt.Fprintf(
		b, "\n%s. Medians; in brackets %s ÷ it, and the least and the most of that.\n\n| | durable |", p.scenario, first,
	)
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.heading)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("--:|", len(columns)) + "\n")
	for _, target := range targets {
		fmt.Fprintf(b, "| %s | %s |", target, r.durable(target))
		for _, c := range columns {
			fmt.Fprintf(b, " %s |", r.cell(figures, c, target, first))
		}
		b.WriteByte('\n')
	}
}

// columnsOf returns the significant columns of a scenario. most is the largest load that all
// targets have: figures that are not shown for each load are shown for that one.
func columnsOf(scenario string, loads []string, most string) (columns []column) {
	each := func(what string, names ...string) {
		for _, load := range loads {
			columns = append(columns, column{load + ", " + what, load, names})
		}
	}
	also := func(load, what string, names ...string) {
		columns = append(columns, column{load + ", " + what, load, names})
	}
	switch scenario {
	case "cycle":
		also(loads[0], "p50 µs", "p50")
		each("cycles/s", "cycles")
	case "handoff":
		each("p50 / p99 µs", "p50", "p99")
		also(most, "owner changes/s", "owner changes")
		also(most, "overtaking % / Jain", "overtaking", "Jain")
		also(most, "server's / agents' CPU µs", "server CPU", "agents' CPU")
	case "keepalive":
		each("server's / agents' CPU %", "server CPU", "agents' CPU")
		also(loads[len(loads)-1], "journal growth B", "journal growth")
	case "memory":
		each("B a lease, live / resident", "live per lease", "resident per lease")
		each("B a waiter", "live per waiter")
	}
	return columns
}

// common is the last load under which all targets were measured; the last one if there
// is none.
func common(figures []bench.Figure, loads, targets []string) string {
	for _, load := range slices.Backward(loads) {
		all := true
		for _, target := range targets {
			all = all && slices.ContainsFunc(figures, func(f bench.Figure) bool { return f.Load == load && f.Target == target })
		}
		if all {
			return load
		}
	}
	return loads[len(loads)-1]
}

// durable returns the durability of a target's answers, in a word.
func (r *report) durable(target string) string {
	for _, p := range r.Peers {
		if p.Peer == target {
			word, _, _ := strings.Cut(p.Durable, ":")
			return word
		}
	}
	return "yes"
}

func (r *report) cell(figures []bench.Figure, c column, target, first string) string {
	var parts []string
	for _, name := range c.names {
		if f := find(figures, c.load, target, name); f != nil {
			parts = append(parts, bench.Number(f.Median))
		}
	}
	if len(parts) == 0 {
		return "–" // was not measured
	}
	text := strings.Join(parts, " / ")
	if f := find(about(figures[0].Scenario, r.Ratios), c.load, first+over+target, c.names[0]); f != nil && f.Max > 0 {
		text += " (" + bench.Number(f.Median)
		if f.Runs > 1 {
			text += ": " + bench.Number(f.Min) + "–" + bench.Number(f.Max)
		}
		text += ")"
	}
	return text
}

func find(figures []bench.Figure, load, target, name string) *bench.Figure {
	i := slices.IndexFunc(
		figures, func(f bench.Figure) bool { return f.Load == load && f.Target == target && f.Name == name },
	)
	if i < 0 {
		return nil
	}
	return &figures[i]
}
