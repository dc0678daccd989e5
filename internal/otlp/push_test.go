package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// fakeCollector answers each push as the test has set, and keeps what came.
type fakeCollector struct {
	t       *testing.T
	status  int
	answer  []byte
	kind    string
	refused error         // instead of an answer
	hang    bool          // until the push is given up
	took    []time.Time   // of all pushes
	last    *http.Request // its body is in message
	message *collector.ExportMetricsServiceRequest
	mu      *sync.Mutex         // guards the fields above; the test has it while no time passes
	after   func(time.Duration) // lets a time pass
	ended   func()              // called when the pusher has ended
}

func (f *fakeCollector) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.took, f.last = append(f.took, time.Now()), r
	if f.hang {
		f.mu.Unlock()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	defer f.mu.Unlock()
	if f.refused != nil {
		return nil, f.refused
	}
	packed, err := gzip.NewReader(r.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	body, err := io.ReadAll(packed)
	if err != nil {
		f.t.Fatal(err)
	}
	f.message = &collector.ExportMetricsServiceRequest{}
	if err := proto.Unmarshal(body, f.message); err != nil {
		f.t.Fatal(err)
	}
	return &http.Response{
		StatusCode: f.status, Body: io.NopCloser(bytes.NewReader(f.answer)),
		Header: http.Header{"Content-Type": {f.kind}, "Location": {"http://elsewhere/v1/metrics"}},
	}, nil
}

// answers makes the collector answer as another one does.
func (f *fakeCollector) answers(as fakeCollector) {
	f.status, f.answer, f.kind, f.refused, f.hang = as.status, as.answer, as.kind, as.refused, as.hang
}

// pushing runs a pusher in a bubble with a clock of its own until f returns, and returns what it logged.
func pushing(t *testing.T, f func(*fakeCollector, *Pusher)) (log string) {
	t.Helper()
	var lines bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		collector := &fakeCollector{t: t, status: http.StatusOK, mu: &sync.Mutex{}, ended: func() {}}
		mu := collector.mu
		collector.after = func(d time.Duration) {
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
		}
		registry := prometheus.NewRegistry()
		counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "interlock_things_total"})
		registry.MustRegister(counter)
		counter.Add(3)
		p := New(Config{
			Endpoint: "http://collector:4318/v1/metrics?key=sesame", Headers: http.Header{"Api-Key": {"secret"}},
			Every: 30 * time.Second, Version: "1.2.3", Metrics: registry,
			Resource: map[string]string{"service.name": "interlock"},
			Log:      slog.New(slog.NewTextHandler(&lines, nil)), Transport: collector,
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			p.Run(ctx)
			close(ended)
		}()
		mu.Lock()
		f(collector, p)
		mu.Unlock()
		cancel()
		<-ended
		collector.ended()
	})
	return lines.String()
}

// counts returns how many pushes went well, and how many failed.
func counts(t *testing.T, p *Pusher) (pushed, failed float64) {
	t.Helper()
	families, err := p.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "interlock_otlp_pushes_total" {
		t.Fatalf("the pusher has the metrics %v: %v", families, err)
	}
	for _, m := range families[0].Metric {
		switch m.Label[0].GetValue() {
		case "pushed":
			pushed = m.Counter.GetValue()
		case "failed":
			failed = m.Counter.GetValue()
		}
	}
	return pushed, failed
}

// The metrics come every 30 s, and once more at the end, with the headers and the resource.
func TestPush(t *testing.T) {
	log := pushing(t, func(c *fakeCollector, p *Pusher) {
		c.after(29 * time.Second)
		if len(c.took) != 0 {
			t.Errorf("there were %d pushes before the first 30 s were over", len(c.took))
		}
		c.after(62 * time.Second)
		if pushed, failed := counts(t, p); len(c.took) != 3 || pushed != 3 || failed != 0 {
			t.Errorf("after 91 s there were %d pushes, counted as %v and %v", len(c.took), pushed, failed)
		}
		h := c.last.Header
		if h.Get("Api-Key") != "secret" || h.Get("Content-Type") != "application/x-protobuf" ||
			h.Get("User-Agent") != "interlock/1.2.3" || c.last.Method != http.MethodPost {
			t.Errorf("the request is %s %v", c.last.Method, h)
		}
		resource := c.message.ResourceMetrics[0]
		metric := resource.ScopeMetrics[0].Metrics[0]
		if resource.Resource.Attributes[0].Value.GetStringValue() != "interlock" ||
			metric.Name != "interlock_things_total" || metric.GetSum().DataPoints[0].GetAsDouble() != 3 {
			t.Errorf("the message is %v", c.message)
		}
		c.took = nil
		c.ended = func() {
			if len(c.took) != 1 {
				t.Errorf("at the end there were %d pushes, want 1", len(c.took))
			}
		}
	})
	if log != "" {
		t.Errorf("logged:\n%s", log)
	}
}

// Whatever the collector does wrong, the failure is counted each time and logged once; then the end is logged.
func TestFailures(t *testing.T) {
	part, err := proto.Marshal(&collector.ExportMetricsServiceResponse{
		PartialSuccess: &collector.ExportMetricsPartialSuccess{RejectedDataPoints: 7, ErrorMessage: "too old"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		broken fakeCollector
		want   string
	}{
		{"refused", fakeCollector{refused: errors.New("connection refused")}, "connection refused"},
		{"overloaded", fakeCollector{status: 429, answer: []byte("slow\x1b[1m down")}, "429 Too Many Requests: slow"},
		{"unavailable in protobuf", fakeCollector{status: 503, kind: "application/x-protobuf"}, "503 Service Unavailable"},
		{"moved", fakeCollector{status: 307}, "307 Temporary Redirect"},
		{"partly", fakeCollector{status: 200, answer: part}, "refuses 7 data points: too old"},
		{"silent", fakeCollector{hang: true}, "deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := pushing(t, func(c *fakeCollector, p *Pusher) {
				working := *c
				c.answers(tt.broken)
				c.after(5*time.Minute + 15*time.Second)
				if pushed, failed := counts(t, p); pushed != 0 || failed != 10 {
					t.Errorf("of 10 pushes %v are counted as pushed and %v as failed", pushed, failed)
				}
				c.answers(working)
				c.after(time.Minute)
				if pushed, failed := counts(t, p); pushed != 2 || failed != 10 {
					t.Errorf("then %v are counted as pushed and %v as failed", pushed, failed)
				}
			})
			if strings.Count(log, "metrics cannot be pushed") != 1 || !strings.Contains(log, tt.want) ||
				strings.Count(log, "metrics are pushed again") != 1 || !strings.Contains(log, "failed=10") {
				t.Errorf("want one line with %q and one at the end; logged:\n%s", tt.want, log)
			}
			for _, secret := range []string{"sesame", "secret", "\x1b"} {
				if strings.Contains(log, secret) {
					t.Errorf("the log has %q in it:\n%s", secret, log)
				}
			}
		})
	}
}

// The process waits for the last push for 2 s at most, and not at all if the one before failed.
func TestEndDoesNotWait(t *testing.T) {
	for _, tt := range []struct {
		name   string
		broken bool
		want   time.Duration
	}{{"silent at the end", false, lastTimeout}, {"silent before", true, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			pushing(t, func(c *fakeCollector, _ *Pusher) {
				c.hang = tt.broken
				c.after(45 * time.Second)
				c.hang = true
				end := time.Now()
				c.ended = func() {
					if took := time.Since(end); took != tt.want {
						t.Errorf("the end took %v, want %v", took, tt.want)
					}
				}
			})
		})
	}
}
