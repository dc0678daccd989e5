package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// TestRun measures against a server within the test, on a clock that advances only while all
// clients wait. Results that depend on the order of two events at one moment are not compared.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		j, err := new(memjournal.Store).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s, err := shard.Open(ctx, shard.Config{Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(ctx)
		srv, err := server.New(server.Config{Shard: s})
		if err != nil {
			t.Fatal(err)
		}
		b := burst{
			client: &http.Client{Transport: within{srv.HTTPHandler()}}, url: "http://127.0.0.1",
			starts: 100, limit: 2, work: 50 * time.Millisecond, budget: 2 * time.Second,
		}
		var out strings.Builder
		plot := filepath.Join(t.TempDir(), "plot.svg")
		if err := b.run(ctx, &out, plot); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != 3+len(strategies) {
			t.Errorf("the table has %d lines:\n%s", n, out.String())
		}
		content, err := os.ReadFile(plot)
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(content))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("the plot is no XML: %v", err)
			}
		}

		all := map[string]*result{}
		for _, s := range strategies {
			if all[s.name], err = b.measure(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		fixed, jittered, line := all["fixed 10 ms"], all["jittered"], all["in line"]
		most := int(b.budget/b.work)*b.limit + b.limit
		for _, r := range all {
			if n := len(r.waits); n > most || n+r.gaveUp != b.starts || r.statuses[200] != n {
				t.Errorf(
					"%s: %d started of %d, and %d gave up; more than %d do not fit", r.name, n, r.statuses[200], r.gaveUp, most,
				)
			}
		}
		// In line nothing is lost: the cap is used to the last moment, by one request each.
		if n := len(line.waits); n < most-b.limit || len(line.sent) > b.starts+line.gaveUp {
			t.Errorf("in line: %d started with %d requests", n, len(line.sent))
		}
		// At a fixed beat all come back together, all the time; with jitter they spread.
		late := func(r *result) int { return slices.Max(r.bins(b.budget)[50:]) }
		if late(fixed) < b.starts/4 || late(jittered) > b.starts/4 || late(line) > b.limit {
			t.Errorf("the largest bursts after half a second: %d, %d and %d", late(fixed), late(jittered), late(line))
		}
		if len(fixed.sent) < 4*len(jittered.sent) || len(jittered.sent) < 2*len(line.sent) {
			t.Errorf("requests: %d, %d and %d", len(fixed.sent), len(jittered.sent), len(line.sent))
		}
	})
}

// within hands requests to a handler without a network, so that no time passes on the
// way.
type within struct{ handler http.Handler }

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.Clone(r.Context())
	q.Host, q.RequestURI, q.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "127.0.0.1:1"
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, q)
	return rec.Result(), nil
}
