//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The worker of a task goes on with the trace of its submitter.
func TestTraceOfATask(t *testing.T) {
	r := newRig(t)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.must("queue", "set", "q")
	plain := r.env
	r.env = append(slices.Clone(plain), "TRACEPARENT="+trace)
	r.must("task", "create", "q")
	r.env = plain
	r.must("task", "create", "q")
	const worker = `echo "trace: $TRACEPARENT." >&2`
	out := r.must("task", "work", "q", "--idle", "0", "--", "sh", "-c", worker)
	for _, want := range []string{"trace: " + trace + ".\n", "trace: .\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the workers wrote %q, want %q in it", out, want)
		}
	}
}

// Spans are the same from a server and from a copy of its journal, and a lease belongs to the trace of its caller.
func TestTraceExport(t *testing.T) {
	r := newRig(t)
	r.env = append(r.env, "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.must("run", "account:1", "--agent", "billing-7", "--", "true")
	r.must("run", "other:1", "--", "true")
	lines := func(args ...string) (list []string) {
		for line := range strings.Lines(r.must(append([]string{"trace", "export", "--key", "account:1"}, args...)...)) {
			if strings.HasPrefix(line, "{") {
				list = append(list, line)
			}
		}
		return list
	}
	live := lines()
	var body struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct{ Name, TraceID, ParentSpanID string }
			}
		}
	}
	if len(live) != 1 || json.Unmarshal([]byte(live[0]), &body) != nil {
		t.Fatalf("the lines are %q", live)
	}
	list := body.ResourceSpans[0].ScopeSpans[0].Spans
	if len(list) != 1 || list[0].Name != "hold account" || list[0].TraceID != "0af7651916cd43dd8448eb211c80319c" ||
		list[0].ParentSpanID != "b7ad6b7169203331" {
		t.Errorf("the spans are %+v", list)
	}
	if copied := lines("--data-dir", r.dir); !slices.Equal(copied, live) {
		t.Errorf("without a server they are %q, with one %q", copied, live)
	}
}
