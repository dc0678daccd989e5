package spans

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/interlockdev/interlock/internal/api"
)

// strictly decodes a body by the schema of OTLP, where each unknown name and each wrong type is an error. Ids are
// base64 there, which the JSON of OTLP has in hexadecimal digits.
func strictly(t *testing.T, body []byte) *collector.ExportTraceServiceRequest {
	t.Helper()
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		t.Fatal(err)
	}
	var ids func(v any)
	ids = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if text, ok := member.(string); ok && strings.HasSuffix(name, "Id") {
					b, err := hex.DecodeString(text)
					if err != nil || len(b) != 16 && len(b) != 8 {
						t.Errorf("%s is %q", name, text)
					}
					v[name] = base64.StdEncoding.EncodeToString(b)
				}
				ids(member)
			}
		case []any:
			for _, member := range v {
				ids(member)
			}
		}
	}
	ids(tree)
	plain, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	r := &collector.ExportTraceServiceRequest{}
	if err := protojson.Unmarshal(plain, r); err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	return r
}

func TestEncode(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 123e6, time.UTC)
	later := noon.Add(time.Second)
	line := &api.Timeline{
		Bars: []api.TimelineBar{
			{
				Kind: "wait", Agent: "support \"2\"\u2028<b>", Lease: "l-2",
				Claims: []api.Claim{{Key: "a:1", Mode: "exclusive"}},
				From:   noon, To: &later, Outcome: "deadlock", EndIndex: 9,
				Links: []api.TimelineTarget{{Kind: "blocked_by", Lease: "l-1", Fence: 1<<63 - 1}},
			},
			{Kind: "hold", Lease: "l-3", Fence: 3, From: noon, Claims: []api.Claim{}},
			{
				Kind: "attempt", Lease: "l-4", Fence: 4, From: noon, To: &later, Outcome: "released", Task: "q_1", Attempt: 2,
				Claims: make([]api.Claim, 20), Queue: "sums", TraceID: "0af7651916cd43dd8448eb211c80319c",
				ParentID: "b7ad6b7169203331",
			},
		},
		Tasks: []api.TimelineTask{{Task: "q_1", Queue: "sums", From: noon, To: &later, Outcome: "dead"}},
		Marks: []api.TimelineMark{
			{Kind: "deadlock", Agent: "support \"2\"\u2028<b>", Index: 9, Time: later, Text: "Deadlock."},
			{Kind: "stale_commit", Index: 10, Time: later, Key: "doc/1", Text: "commit was refused."},
			{Kind: "yield_asked", Index: 11, Time: later},
		},
	}
	resource := Resource{Attributes: map[string]string{"service.name": "interlock", "a": "b"}, Version: "1.2.3"}
	body, err := resource.Encode(Of("default", line, later.Add(time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(body), "\n") != 1 || body[len(body)-1] != '\n' {
		t.Errorf("more than one line: %s", body)
	}
	got := strictly(t, body).ResourceSpans[0]
	if a := got.Resource.Attributes; len(a) != 2 || a[0].Key != "a" || a[1].Value.GetStringValue() != "interlock" {
		t.Errorf("the resource has %v", a)
	}
	list := got.ScopeSpans[0].Spans
	if got.ScopeSpans[0].Scope.Version != "1.2.3" || len(list) != 4 {
		t.Fatalf("%d spans of version %s", len(list), got.ScopeSpans[0].Scope.Version)
	}
	wait, attempt, task, refused := list[0], list[1], list[2], list[3]
	if wait.Name != "wait a" || wait.StartTimeUnixNano != uint64(noon.UnixNano()) ||
		wait.EndTimeUnixNano != uint64(later.UnixNano()) || wait.Kind != 1 || wait.Status.Code != 2 ||
		wait.Status.Message != "Deadlock." || len(wait.Events) != 1 || len(wait.Links) != 1 ||
		len(wait.ParentSpanId) != 0 {
		t.Errorf("the wait is %v", wait)
	}
	if id := holdID("l-1", 1<<63-1); string(wait.Links[0].SpanId) != string(id[:]) {
		t.Errorf("the link leads to %x", wait.Links[0].SpanId)
	}
	attribute := func(name string) string {
		for _, a := range wait.Attributes {
			if a.Key == name {
				return a.Value.String()
			}
		}
		return ""
	}
	if got := attribute("gen_ai.agent.name"); !strings.Contains(got, `\"2\"`) || !strings.Contains(got, "<b>") {
		t.Errorf("the agent is %s", got)
	}
	if attempt.Kind != 5 || string(attempt.ParentSpanId) != string(task.SpanId) || attempt.Status != nil ||
		hex.EncodeToString(attempt.TraceId) != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the attempt is %v", attempt)
	}
	if task.Kind != 4 || task.Name != "task sums" || task.Status.Code != 2 {
		t.Errorf("the task is %v", task)
	}
	if refused.Name != "stale_commit doc" || refused.StartTimeUnixNano != refused.EndTimeUnixNano {
		t.Errorf("the refusal is %v", refused)
	}

	if early := Of("default", line, later); len(early) != 0 {
		t.Errorf("%d spans have ended before %v", len(early), later)
	}
}

// Ids of spans differ wherever a fact differs, also where texts could run into each other.
func TestIDs(t *testing.T) {
	seen := map[SpanID]bool{}
	for _, id := range []SpanID{
		spanID("hold", "a", "12"), spanID("hold", "a1", "2"), spanID("hol", "da", "12"), spanID("wait", "a", "12"),
		spanID("hold", "a12"), holdID("a", 3), taskID("a"),
	} {
		if seen[id] || id == (SpanID{}) {
			t.Errorf("%x twice", id)
		}
		seen[id] = true
	}
	if holdID("a", 12) != spanID("hold", "a", "12") {
		t.Error("holds have other ids")
	}
}
