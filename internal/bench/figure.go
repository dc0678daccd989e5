package bench

import (
	"slices"
	"time"
)

// A Value is one thing that one run has measured.
type Value struct {
	Name string
	Unit Unit
	V    float64
}

// Unit is the unit of a value.
type Unit string

// The units.
const (
	PerSecond    Unit = "/s"
	PerHour      Unit = "/h"
	Microseconds Unit = "us"
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
	Bytes        Unit = "B"
	Percent      Unit = "%"
	Index        Unit = "index" // from 0 to 1
	Plain        Unit = ""      // a number of things
)

func rate(name string, n int, d time.Duration) Value {
	return Value{name, PerSecond, float64(n) / d.Seconds()}
}

func micro(name string, d time.Duration) Value {
	return Value{name, Microseconds, float64(d.Nanoseconds()) / 1e3}
}

func milli(name string, d time.Duration) Value {
	return Value{name, Milliseconds, float64(d.Nanoseconds()) / 1e6}
}

// quantiles are how long something took.
func quantiles(h *Histogram) []Value {
	return []Value{micro("p50", h.Quantile(.5)), micro("p99", h.Quantile(.99))}
}

func count(name string, n int) Value { return Value{name, Plain, float64(n)} }

// share is part in whole, as a percentage; 0 of nothing.
func share(name string, part, whole float64) Value {
	if whole == 0 {
		return Value{name, Percent, 0}
	}
	return Value{name, Percent, 100 * part / whole}
}

// A Figure is one thing that the runs of one case have measured: its median, and how far
// the runs lie apart.
type Figure struct {
	Scenario string    `json:"scenario"`
	Load     string    `json:"load"`
	Target   string    `json:"target"`
	Name     string    `json:"name"`
	Unit     Unit      `json:"unit"`
	Median   float64   `json:"median"`
	Min      float64   `json:"min"`
	Max      float64   `json:"max"`
	Runs     int       `json:"runs"`
	Each     []float64 `json:"each"` // run, in their order
}

// NewFigure makes a figure of the result of each run, in their order.
func NewFigure(scenario, load, target, name string, unit Unit, each []float64) Figure {
	sorted := slices.Sorted(slices.Values(each))
	return Figure{
		Scenario: scenario, Load: load, Target: target, Name: name, Unit: unit,
		Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], Runs: len(each), Each: each,
	}
}

// summarize makes the figures of a case from the results of its runs. Each has the same values
// in the same order.
func summarize(c Case, runs [][]Value) []Figure {
	figures := make([]Figure, len(runs[0]))
	for i, first := range runs[0] {
		each := make([]float64, len(runs))
		for r, values := range runs {
			each[r] = values[i].V
		}
		figures[i] = NewFigure(c.Scenario, c.Load, c.Target, first.Name, first.Unit, each)
	}
	return figures
}

// median is the middle of sorted numbers.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}
