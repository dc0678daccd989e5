//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The file for Perfetto is the same from a server and from a copy of its journal, and has the hand-off.
func TestPerfettoFile(t *testing.T) {
	r := newRig(t)
	r.must("run", "account:1", "--agent", "billing-7", "--", "true")
	r.must("run", "account:1", "--agent", "support-2", "--", "true")
	r.must("run", "other:1", "--", "true")
	slicesOf := func(args ...string) (list []string) {
		var f struct {
			Events []struct {
				Phase  string `json:"ph"`
				Name   string
				Time   int64 `json:"ts"`
				Length int64 `json:"dur"`
				Args   map[string]any
			} `json:"traceEvents"`
		}
		out := r.must(append([]string{"log", "--format", "perfetto", "--key", "account:1"}, args...)...)
		if err := json.Unmarshal([]byte(out), &f); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		for _, e := range f.Events {
			if e.Phase == "X" {
				line, _ := json.Marshal(e)
				list = append(list, string(line))
			}
		}
		return list
	}
	live := slicesOf()
	if len(live) != 2 || !strings.Contains(live[0], "hold account:1") || !strings.Contains(live[0], "released") {
		t.Errorf("the slices are %q", live)
	}
	if out := r.must("log", "--format", "perfetto"); !strings.Contains(out, `"namespace default"`) {
		t.Errorf("the process is not named after the namespace: %s", out)
	}
	if copied := slicesOf("--data-dir", r.dir); !slices.Equal(copied, live) {
		t.Errorf("without a server they are %q, with one %q", copied, live)
	}
	for _, args := range [][]string{
		{"--format", "perfetto", "--follow"},
		{"--format", "dot"},
		{"--data-dir", r.dir},
		{"account:1", "--format", "perfetto"},
	} {
		if out, code := r.do(append([]string{"log"}, args...)...); code != 2 {
			t.Errorf("log %q ends with %d: %s", args, code, out)
		}
	}
}
