package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// times has how long a test of each package took on this machine, on average. It decides in which order packages
// are tested, and whether one can end in time; no result depends on it.
type times struct {
	mu   sync.Mutex
	path string
	test map[string]time.Duration // by folder
}

const (
	usual = 300 * time.Millisecond // is assumed of a package that was never tested here
	long  = 4 * time.Second        // a test that took longer is left to "make test" unless its package has changed
)

// leaveOut takes the tests that took too long in the last run of the suite unit out of runs of unchanged packages, and
// returns their names. Without such a run there are none.
func leaveOut(root string, runs []*run) (left []string, err error) {
	var unit struct {
		Tests []struct {
			Package, Test string
			Seconds       float64
		}
	}
	b, err := os.ReadFile(filepath.Join(root, "dist", "suites", "unit.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &unit); err != nil {
		return nil, fmt.Errorf("dist/suites/unit.json: %w", err)
	}
	for _, one := range runs {
		for _, t := range unit.Tests {
			if one.dir == t.Package && !one.own && one.tests[t.Test] && t.Seconds > long.Seconds() {
				delete(one.tests, t.Test)
				one.skip = append(one.skip, t.Test)
				left = append(left, fmt.Sprintf("%s %s (%.0f s)", t.Package, t.Test, t.Seconds))
			}
		}
	}
	return left, nil
}

func readTimes(root string) *times {
	t := &times{path: filepath.Join(root, "bin", "reach.json"), test: map[string]time.Duration{}}
	if b, err := os.ReadFile(t.path); err == nil {
		if json.Unmarshal(b, &t.test) != nil {
			t.test = map[string]time.Duration{}
		}
	}
	return t
}

// of estimates how long the tests take.
func (t *times) of(one *run) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	each, ok := t.test[one.dir]
	if !ok {
		each = usual
	}
	return each * time.Duration(len(one.tests))
}

func (t *times) note(one *run, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.test[one.dir] = took / time.Duration(max(len(one.tests), 1))
}

// write keeps the times for the next run, if it can.
func (t *times) write() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, err := json.MarshalIndent(t.test, "", "  "); err == nil {
		os.WriteFile(t.path, append(b, '\n'), 0o666)
	}
}
