package main

import (
	"encoding/json"
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

// usual is assumed of a package that was never tested here.
const usual = 300 * time.Millisecond

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
