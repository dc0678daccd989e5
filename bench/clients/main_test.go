package main

import (
	"io"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/bench"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-callers", "2,8", "-leases", "0", "-only", "node"}, io.Discard)
	if err != nil || len(o.callers) != 2 || o.callers[1] != 8 || o.leases != 0 || o.rounds != 5 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range []string{"-callers 0", "-callers x", "-rounds 0", "-leases -1", "-duration 0s", "more"} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
}

func TestTakesPart(t *testing.T) {
	for only, want := range map[string]int{"": 9, "node": 3, "asyncio, threads": 6, "redis-py": 4, "ruby": 0} {
		n := 0
		for _, c := range clients() {
			if c.takesPart(only) {
				n++
			}
		}
		if n != want {
			t.Errorf("%q: %d clients, want %d", only, n, want)
		}
	}
}

// TestTake: a ratio is that of runs which were beside each other, within one group.
func TestTake(t *testing.T) {
	list := clients()
	runs := make([][]map[string]float64, len(list))
	for i := range list {
		for round := range 3 {
			values := map[string]float64{"cycles": float64((i + 1) * (round + 1)), "p50": 1, "p99": 2}
			runs[i] = append(runs[i], values)
		}
	}
	var r report
	r.take("2 callers", list, runs)
	if len(r.Figures) != 27 || r.Figures[0].Median != 2 || r.Figures[0].Max != 3 {
		t.Errorf("%d figures, %+v", len(r.Figures), r.Figures[0])
	}
	if len(r.Ratios) != 6 {
		t.Fatalf("%d ratios", len(r.Ratios))
	}
	for i, want := range []float64{1.0 / 2, 1.0 / 3, 4.0 / 5, 4.0 / 6, 7.0 / 8, 7.0 / 9} {
		if got := r.Ratios[i]; got.Min != got.Max || got.Median != want {
			t.Errorf("%+v, want %v", got, want)
		}
	}
	r.Held = append(r.Held, bench.NewFigure("hold", "1 leases", "Node.js", "core", bench.Percent, []float64{0.5}))
	var out strings.Builder
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"CYCLES /s", "redis-py Lock at Redis", "÷ redis SET NX at Interlock", "CORE %"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %s in\n%s", part, out.String())
		}
	}
}
