package bench

import (
	"slices"
	"testing"
)

// A run over a journal in an engine is compared with the run beside it that has a directory.
func TestRatios(t *testing.T) {
	cases := []Case{
		{Target: "interlock stream"}, {Target: "interlock stream over redis", Against: "interlock stream"}, {Target: "echo"},
	}
	runs := [][][]Value{
		{{{"cycles", PerSecond, 100}}, {{"cycles", PerSecond, 200}}},
		{{{"cycles", PerSecond, 50}}, {{"cycles", PerSecond, 150}}},
		{{{"cycles", PerSecond, 10}}, {{"cycles", PerSecond, 10}}},
	}
	compare(cases, runs)
	figures := summarize(cases[1], runs[1])
	if len(figures) != 2 || figures[1].Name != "ratio" || !slices.Equal(figures[1].Each, []float64{0.5, 0.75}) {
		t.Errorf("got %+v", figures)
	}
	if len(runs[0][0]) != 1 || len(runs[2][0]) != 1 {
		t.Error("others are compared too")
	}
}

// The target's name tells the engine, and nothing else of the URL.
func TestNameOfJournal(t *testing.T) {
	for journal, want := range map[string]string{
		"": "interlock stream", "postgres://me@db/locks?journal=bench": "interlock stream over postgres",
	} {
		if got := (Interlock{Transport: Stream, Journal: journal}).Name(); got != want {
			t.Errorf("%q: %q, want %q", journal, got, want)
		}
	}
}
