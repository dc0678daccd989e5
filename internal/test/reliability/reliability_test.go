package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The document quotes the record, and nothing else.
func TestGuaranteesQuoteTheRecord(t *testing.T) {
	b, err := os.ReadFile("../../../reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	_, got, _, err := split(doc)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.table(); string(got) != want {
		t.Errorf("docs/guarantees.md says\n%s\nand reliability.json\n%s", got, want)
	}
}

var counted = map[string]int64{
	"seeds": 400, "commands": 2000000, "crash_recoveries": 2000, "simulated_seconds": 5400, "crash_states": 10000,
	"byte_flips": 900,
	"histories":  4, "history_operations": 80000, "world_unknowns": 40, "history_unknowns": 12, "security_cases": 45,
	"faults.pause": 3,
}

func suiteFile(t *testing.T, s suite) string {
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), s.Suite+".json")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGather(t *testing.T) {
	unit := suiteFile(t, suite{Suite: "unit", Passed: 7, Counts: counted})
	crash := suiteFile(
		t, suite{Suite: "crash", Passed: 2, Counts: map[string]int64{"history_unknowns": 3, "faults.pause": 4}},
	)
	r, err := gather([]string{unit, crash})
	if err != nil {
		t.Fatal(err)
	}
	if r.WorldUnknowns != 40 || r.HistoryUnknowns != 15 || r.Faults["pause"] != 7 || r.SimulatedHours != 1.5 ||
		r.Tests["unit"] != 7 {
		t.Errorf("gathered %+v", r)
	}
	if got := r.table(); !strings.Contains(got, "| 2,000,000 | 0 | 1 in 666,666 commands |") {
		t.Errorf("the table says\n%s", got)
	}
}

// A figure without a count, or with a count from failed tests, is not published.
func TestNothingIsMadeUp(t *testing.T) {
	for what := range counted {
		if strings.HasPrefix(what, "faults.") {
			continue
		}
		less := maps.Clone(counted)
		delete(less, what)
		if _, err := gather([]string{suiteFile(t, suite{Suite: "unit", Passed: 1, Counts: less})}); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("without %s: %v", what, err)
		}
	}
	if _, err := gather([]string{suiteFile(t, suite{Suite: "unit", Passed: 9, Failed: 1, Counts: counted})}); err == nil {
		t.Error("the figures of a suite that failed are published")
	}
	empty := filepath.Join(t.TempDir(), "last-run.json")
	if err := os.WriteFile(empty, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readSeeded(empty); err == nil {
		t.Error("a run of mistakes that never was is published")
	}
}
