package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// record is reliability.json.
type record struct {
	Commit  string  `json:"commit"`
	Date    string  `json:"date"`
	Machine machine `json:"machine"`

	Seeds          int64   `json:"seeds"`
	Commands       int64   `json:"commands"`
	SimulatedHours float64 `json:"simulated_hours"`
	Recoveries     int64   `json:"crash_recoveries"` // in the simulated worlds, and of real servers
	CrashStates    int64   `json:"crash_states"`
	ByteFlips      int64   `json:"byte_flips"`
	Histories      int64   `json:"histories"`
	Operations     int64   `json:"history_operations"`
	Security       int64   `json:"security_cases"`

	// Operations with an outcome that the client never learned, in the worlds and in the
	// histories of real processes. The checks allow each of them to have happened or not, but
	// no third outcome.
	WorldUnknowns   int64 `json:"world_unknowns"`
	HistoryUnknowns int64 `json:"history_unknowns"`

	SeededBugs seededResult     `json:"seeded_bugs"`
	Faults     map[string]int64 `json:"faults"`
	Tests      map[string]int   `json:"tests"` // that passed, by suite

	Night *night `json:"night,omitempty"`
}

// night sums up the rounds of "make night", which go beyond the share of every change. Only rounds without a failure
// are recorded.
type night struct {
	Rounds  int64            `json:"rounds"` // from the first one on; the next night begins behind them
	Seconds float64          `json:"seconds"`
	Commit  string           `json:"commit"` // of the last round
	Date    string           `json:"date"`
	Counts  map[string]int64 `json:"counts"`
	Tests   int64            `json:"tests"` // that passed
}

// add adds a round, from the records of its suites.
func (n *night) add(suites []suite, commit, date string) error {
	for _, s := range suites {
		if s.Failed > 0 {
			return fmt.Errorf("%d tests of suite %s failed: there is nothing to record", s.Failed, s.Suite)
		}
	}
	if n.Counts == nil {
		n.Counts = map[string]int64{}
	}
	for _, s := range suites {
		n.Seconds += s.Seconds
		n.Tests += int64(s.Passed)
		for what, count := range s.Counts {
			n.Counts[what] += count
		}
	}
	n.Rounds++
	n.Commit, n.Date = commit, date
	return nil
}

type machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	Go     string `json:"go"`
}

// seededResult is the number of deliberate mistakes that were found. Trying them takes an hour,
// so this is of the last run, at a commit of its own.
type seededResult struct {
	Found  int64  `json:"found"`
	Total  int64  `json:"total"`
	Commit string `json:"commit"`
}

func readSeeded(path string) (s seededResult, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	if s.Total == 0 || s.Commit == "" {
		return s, fmt.Errorf("%s holds no run", path)
	}
	return s, nil
}

// suite is the record that internal/test/suite writes.
type suite struct {
	Suite   string
	Passed  int
	Failed  int
	Seconds float64
	Counts  map[string]int64
}

func readSuite(path string) (s suite, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// gather adds the records of suites up. A figure that no suite has counted is an error: missing
// is not nought.
func gather(paths []string) (*record, error) {
	r := &record{Faults: map[string]int64{}, Tests: map[string]int{}}
	counts := map[string]int64{}
	for _, path := range paths {
		s, err := readSuite(path)
		if err != nil {
			return nil, err
		}
		if s.Failed > 0 {
			return nil, fmt.Errorf(
				"%s: %d tests of suite %s failed: there is nothing to publish", filepath.Base(path), s.Failed, s.Suite,
			)
		}
		r.Tests[s.Suite] = s.Passed
		for what, n := range s.Counts {
			if kind, ok := strings.CutPrefix(what, "faults."); ok {
				r.Faults[kind] += n
				continue
			}
			counts[what] += n
		}
	}
	var missing []error
	take := func(what string) int64 {
		n, ok := counts[what]
		if !ok {
			missing = append(missing, fmt.Errorf("no suite has counted %s", what))
		}
		return n
	}
	r.Seeds, r.Commands, r.Recoveries = take("seeds"), take("commands"), take("crash_recoveries")
	r.SimulatedHours = float64(take("simulated_seconds")/360) / 10
	r.CrashStates, r.ByteFlips = take("crash_states"), take("byte_flips")
	r.Histories, r.Operations = take("histories"), take("history_operations")
	r.WorldUnknowns, r.HistoryUnknowns = take("world_unknowns"), take("history_unknowns")
	r.Security = take("security_cases")
	return r, errors.Join(missing...)
}
