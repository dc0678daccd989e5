package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/timeline"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// history answers as a server with these bars does: no more than MaxEnded of them but those of one moment, and no
// further than some entries.
type history struct {
	t       *testing.T
	bars    []api.TimelineBar // by their ends
	entries int
	asked   int
}

func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked++
	q := r.URL.Query()
	since, err := time.Parse(time.RFC3339, q.Get("since"))
	if err != nil || r.URL.Path != "/v1/timeline" || q.Get("ended") != "true" {
		h.t.Errorf("asked for %s: %v", r.URL, err)
	}
	answer := api.Timeline{Since: since, Until: noon.Add(time.Hour)}
	if text := q.Get("until"); text != "" {
		answer.Until, _ = time.Parse(time.RFC3339, text)
	}
	n := 0
	for _, b := range h.bars {
		if b.To.Before(since) || !b.To.Before(answer.Until) {
			continue
		}
		full := len(answer.Bars) >= timeline.MaxEnded
		if n == h.entries || full && b.To.After(*answer.Bars[len(answer.Bars)-1].To) {
			answer.Until, answer.More = *b.To, true
			break
		}
		if n++; len(answer.Bars) == 2*timeline.MaxEnded {
			answer.MoreBars++
		} else {
			answer.Bars = append(answer.Bars, b)
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// newApp returns one for a server with a history of n bars. Three each end at the same time.
func newApp(t *testing.T, n, entries int) (*cli.App, *history) {
	t.Helper()
	h := &history{t: t, entries: entries}
	for i := range n {
		end := noon.Add(time.Duration(i/3*7) * time.Millisecond)
		h.bars = append(h.bars, api.TimelineBar{
			Kind: "hold", Lease: fmt.Sprint("l-", i), Fence: interlock.Fence(i + 1), From: noon.Add(-time.Hour), To: &end,
			Claims: []api.Claim{{Key: "a", Mode: "exclusive"}}, EndIndex: interlock.Index(i + 1),
			Links: []api.TimelineTarget{{Kind: "handed_on", Lease: fmt.Sprint("l-", i-1), Fence: interlock.Fence(i)}},
		})
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	a := &cli.App{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Output: "text"}
	var err error
	if a.Server.Bases, err = api.ParseBases([]string{server.URL}); err != nil {
		t.Fatal(err)
	}
	return a, h
}

// do runs the command, and returns what it wrote.
func do(t *testing.T, a *cli.App, args ...string) (out, complaints string, err error) {
	t.Helper()
	cmd := New(a)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"export", "--since", noon.Add(-time.Minute).Format(time.RFC3339)}, args...))
	err = cmd.ExecuteContext(t.Context())
	return a.Out.(*bytes.Buffer).String(), a.Err.(*bytes.Buffer).String(), err
}

// fences counts the spans of lines by their fences.
func fences(t *testing.T, lines string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(lines) {
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						Attributes []struct {
							Key   string
							Value struct{ IntValue string }
						}
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &body); err != nil {
			t.Fatal(err)
		}
		list := body.ResourceSpans[0].ScopeSpans[0].Spans
		if len(list) > batch {
			t.Errorf("a line has %d spans", len(list))
		}
		for _, s := range list {
			for _, a := range s.Attributes {
				if a.Key == "interlock.fence" {
					seen[a.Value.IntValue]++
				}
			}
		}
	}
	return seen
}

// However much there is, each span is exported once: what an answer has no room for is in the next one.
func TestParts(t *testing.T) {
	for _, entries := range []int{1 << 20, 4001, 7} {
		n := timeline.MaxEnded + timeline.MaxEnded/2 + 17
		if entries == 7 {
			n = 400
		}
		a, h := newApp(t, n, entries)
		out, complaints, err := do(t, a)
		if err != nil {
			t.Fatal(err)
		}
		seen := fences(t, out)
		for fence, times := range seen {
			if times != 1 {
				t.Errorf("fence %s is exported %d times", fence, times)
			}
		}
		if len(seen) != n || h.asked > n {
			t.Errorf("%d of %d spans in %d answers", len(seen), n, h.asked)
		}
		want := fmt.Sprintf("interlock: exported %d spans\ninterlock: 1 target of a link is not among these", n)
		if !strings.HasPrefix(complaints, want) {
			t.Errorf("it reports %q", complaints)
		}
	}
}

// What does not fit, because it ends at one moment, is counted; a server that gets no further is reported.
func TestTooMuch(t *testing.T) {
	a, h := newApp(t, 2*timeline.MaxEnded+5, 1<<20)
	for i := range h.bars {
		h.bars[i].To = h.bars[0].To
	}
	out, complaints, err := do(t, a)
	if seen := fences(t, out); err != nil || len(seen) != 2*timeline.MaxEnded ||
		!strings.Contains(complaints, "5 spans are left out") {
		t.Errorf("%d spans, %v, %q", len(seen), err, complaints)
	}

	a, h = newApp(t, 20, 2)
	for i := range h.bars {
		h.bars[i].To = h.bars[0].To
	}
	if _, _, err = do(t, a); err == nil || !strings.Contains(err.Error(), "continue with --since 2026-01-02T12:00:01Z") {
		t.Errorf("%v", err)
	}
}

// A collector gets batches, compressed, with the headers of the environment.
func TestCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "api-key=secret")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	var lines strings.Builder
	answer := func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{}`) }
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		packed, err := gzip.NewReader(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "secret" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the collector gets %s with %v: %v", r.URL, r.Header, err)
		}
		_, _ = io.Copy(&lines, packed)
		answer(w)
	}))
	defer collector.Close()
	a, _ := newApp(t, 2*batch+3, 1<<20)
	out, complaints, err := do(t, a, "--endpoint", collector.URL)
	if seen := fences(t, lines.String()); err != nil || out != "" || len(seen) != 2*batch+3 ||
		!strings.Contains(complaints, fmt.Sprintf("exported %d spans to %s", 2*batch+3, collector.URL)) ||
		!strings.Contains(lines.String(), `"deployment.environment.name"`) {
		t.Errorf("%d spans, %v, %q, %q", len(seen), err, out, complaints)
	}

	answer = func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }
	_, _, err = do(t, a, "--endpoint", collector.URL)
	if err == nil || !strings.Contains(err.Error(), "401") || !strings.Contains(err.Error(), "port 4318") {
		t.Errorf("%v", err)
	}
	answer = func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`)
	}
	_, _, err = do(t, a, "--endpoint", collector.URL)
	if err == nil || !strings.Contains(err.Error(), "3 spans are rejected: too old") {
		t.Errorf("%v", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--since", "yesterday"},
		{"--until", "2026-01-01T00:00:00Z"},
		{"--endpoint", "collector:4318"},
		{"more"},
	} {
		a, h := newApp(t, 1, 1)
		if _, _, err := do(t, a, args...); err == nil || cli.ExitCode(err) != cli.ExitUsage || h.asked > 0 {
			t.Errorf("%q: %v", args, err)
		}
	}
}
