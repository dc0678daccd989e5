package main

import (
	"slices"

	"github.com/interlockdev/interlock/internal/bench"
)

// over stands between the two targets of a ratio.
const over = " ÷ "

// ratios divides Interlock's figures by those of the peers under the same load: the first run
// by the first, the second by the second, which the alternation has put side by side. So the
// spread is that of the ratio, and not of the machine's other load. Figures that are no
// amounts, or are zero with the peer, have no ratio.
func ratios(figures []bench.Figure, ours func(target string) bool) (list []bench.Figure) {
	cases := slices.Collect(chunks(figures))
	for _, our := range cases {
		if !ours(our[0].Target) {
			continue
		}
		for _, their := range cases {
			if ours(their[0].Target) || their[0].Scenario != our[0].Scenario || their[0].Load != our[0].Load {
				continue
			}
			for _, f := range our {
				i := slices.IndexFunc(their, func(t bench.Figure) bool { return t.Name == f.Name })
				if i < 0 || f.Unit == bench.Index || f.Unit == bench.Plain || slices.Contains(their[i].Each, 0) {
					continue
				}
				each := make([]float64, len(f.Each))
				for run := range each {
					each[run] = f.Each[run] / their[i].Each[run]
				}
				list = append(list, bench.NewFigure(f.Scenario, f.Load, f.Target+over+their[i].Target, f.Name, bench.Plain, each))
			}
		}
	}
	return list
}

// chunks returns the figures of each case.
func chunks(figures []bench.Figure) func(yield func([]bench.Figure) bool) {
	return func(yield func([]bench.Figure) bool) {
		for len(figures) > 0 {
			n := 1
			for n < len(figures) && figures[n].Scenario == figures[0].Scenario && figures[n].Load == figures[0].Load &&
				figures[n].Target == figures[0].Target {
				n++
			}
			if !yield(figures[:n]) {
				return
			}
			figures = figures[n:]
		}
	}
}
