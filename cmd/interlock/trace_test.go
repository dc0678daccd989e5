package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

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
