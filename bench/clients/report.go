package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/interlockdev/interlock/internal/bench"
)

// cycleValues are what a worker measures of cycles, with their units.
var cycleValues = []struct {
	name string
	unit bench.Unit
}{{"cycles", bench.PerSecond}, {"p50", bench.Microseconds}, {"p99", bench.Microseconds}}

// report is all that was measured.
type report struct {
	bench.Report
	Ratios []bench.Figure `json:"ratios"` // cycles of Interlock's client ÷ those of another one in its group
	Held   []bench.Figure `json:"held"`   // processor time of a process that holds leases
}

// measure runs all loads. The runs of one load alternate between the clients.
func (s *services) measure(ctx context.Context, o *options, progress func(string)) (*report, error) {
	r := &report{Report: bench.Report{
		Machine: bench.ThisMachine(revision()),
		Server:  "one Interlock and one Redis (appendfsync always) for all runs; every answer is synced to the disk",
	}}
	var list []client
	for _, c := range clients() {
		if c.takesPart(o.only) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no client has one of %q in its name", o.only)
	}
	for _, n := range o.callers {
		load := fmt.Sprintf("%d callers", n)
		runs := make([][]map[string]float64, len(list))
		for round := range o.rounds {
			for i := range list {
				c := &list[i]
				progress(fmt.Sprintf("%s, %s, %s, run %d of %d", load, c.group, c.name, round+1, o.rounds))
				values, err := s.work(ctx, c, c.kind, n, o.warm, o.duration)
				if err != nil {
					return nil, err
				}
				runs[i] = append(runs[i], values)
			}
		}
		r.take(load, list, runs)
	}
	return r, s.hold(ctx, o, list, r, progress)
}

// take adds the figures of a load.
func (r *report) take(load string, list []client, runs [][]map[string]float64) {
	for i, c := range list {
		for _, v := range cycleValues {
			f := bench.NewFigure("cycle", load, c.group+", "+c.name, v.name, v.unit, each(runs[i], v.name))
			r.Figures = append(r.Figures, f)
		}
	}
	for i, our := range list {
		for k, their := range list {
			if !our.ours() || their.ours() || our.group != their.group {
				continue
			}
			ratio := each(runs[i], "cycles")
			for run, theirs := range each(runs[k], "cycles") {
				ratio[run] /= theirs
			}
			r.Ratios = append(
				r.Ratios, bench.NewFigure("cycle", load, our.group+", "+our.name+" ÷ "+their.name, "cycles", bench.Plain, ratio),
			)
		}
	}
}

// each returns one value of all runs.
func each(runs []map[string]float64, name string) (list []float64) {
	for _, values := range runs {
		list = append(list, values[name])
	}
	return list
}

// hold measures processes of Interlock's clients that hold leases and do nothing else.
func (s *services) hold(ctx context.Context, o *options, list []client, r *report, progress func(string)) error {
	if o.leases == 0 {
		return nil
	}
	load := fmt.Sprintf("%d leases", o.leases)
	runs := map[string][]map[string]float64{}
	rounds := (o.rounds + 1) / 2 // they are long, and lie close together
	for round := range rounds {
		for _, c := range list {
			if !c.ours() {
				continue
			}
			progress(fmt.Sprintf("%s, %s, run %d of %d", load, c.group, round+1, rounds))
			values, err := s.work(ctx, &c, "hold", o.leases, 0, o.hold)
			if err != nil {
				return err
			}
			runs[c.group] = append(runs[c.group], values)
		}
	}
	for _, c := range list {
		if c.ours() {
			r.Held = append(
				r.Held, bench.NewFigure("hold", load, c.group+", "+c.name, "core", bench.Percent, each(runs[c.group], "core")),
			)
		}
	}
	return nil
}

// write writes the tables.
func (r *report) write(w io.Writer) error {
	if err := r.WriteHead(w); err != nil {
		return err
	}
	for _, table := range []struct {
		scenario bench.Scenario
		figures  []bench.Figure
	}{
		{
			bench.Scenario{Name: "cycle", About: "Callers of one process acquire and release a key of their own."}, r.Figures,
		},
		{
			bench.Scenario{Name: "cycle: ours ÷ theirs", About: "Run by run, so that other load cancels out."}, r.Ratios,
		},
		{
			bench.Scenario{Name: "hold", About: "One process holds leases and does nothing else: its processor time."},
			r.Held,
		},
	} {
		if len(table.figures) == 0 {
			continue
		}
		if err := bench.WriteTable(w, table.scenario, table.figures); err != nil {
			return err
		}
	}
	return nil
}

// revision is the commit from which this program was built; "unknown" by go run.
func revision() string {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return "unknown"
}
