package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// record is the file of a suite's last run, dist/suites/NAME.json.
type record struct {
	Suite    string           `json:"suite"`
	Passed   int              `json:"passed"`
	Failed   int              `json:"failed"`
	Counts   map[string]int64 `json:"counts"`
	Seconds  float64          `json:"seconds"`     // by the clock
	CPU      float64          `json:"cpu_seconds"` // of the processors, by processes that ended
	Load     float64          `json:"load"`        // mean of the machine's load average
	Unstable []unstable       `json:"unstable"`
	Tests    []testTime       `json:"tests"` // the slowest
}

// mostTests is how many tests a record keeps.
const mostTests = 200

// slowest returns the slowest tests, the slowest first.
func (r *report) slowest() []testTime {
	slices.SortStableFunc(r.tests, func(a, b testTime) int {
		switch {
		case a.Seconds > b.Seconds:
			return -1
		case a.Seconds < b.Seconds:
			return 1
		}
		return 0
	})
	return r.tests[:min(len(r.tests), mostTests)]
}

func (r record) write(folder string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, r.Suite+".json"), append(b, '\n'), 0o666)
}

// readRecord returns the record of a suite's last run.
func readRecord(folder, name string) (r record, err error) {
	b, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// sampleEvery is the time between two samples of the load.
const sampleEvery = 10 * time.Second

// A loadMeter samples the machine's load average, where the system tells it, until mean is called.
type loadMeter struct {
	sum, n float64
	stop   chan struct{}
	ended  chan struct{}
}

func newLoad() *loadMeter {
	l := &loadMeter{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			l.sample()
			select {
			case <-ticker.C:
			case <-l.stop:
				return
			}
		}
	}()
	return l
}

func (l *loadMeter) sample() {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	minute, _, _ := strings.Cut(string(b), " ")
	if v, err := strconv.ParseFloat(minute, 64); err == nil {
		l.sum, l.n = l.sum+v, l.n+1
	}
}

// mean ends the meter, and returns the mean of its samples.
func (l *loadMeter) mean() float64 {
	close(l.stop)
	<-l.ended
	if l.n == 0 {
		return 0
	}
	return l.sum / l.n
}
