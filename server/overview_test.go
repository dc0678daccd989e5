package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

func tourOverview(d *door) {
	d.get("/v1/overview").want(200).num("sums.leases")
	one, two := d.session("over-one"), d.session("over-two")
	for session, key := range map[string]string{one: "over:1", two: "over:2"} {
		d.post("/v1/leases", `{"session":"`+session+`","claims":[{"key":"`+key+`"}]}`).want(200)
	}
	d.post("/v1/leases", `{"session":"`+one+`","on_conflict":"wait","claims":[{"key":"over:2"}]}`).want(202)
	d.post("/v1/leases", `{"agent":"third","on_conflict":"wait","claims":[{"key":"over:1"}]}`).want(202)
	pass(2 * time.Second)
	over := d.get("/v1/overview").want(200)
	if over.num("sums.waiters") < 2 || over.num("edges.0.waited_ms") == 0 {
		d.Fatalf("the overview has no waits: %s", over.raw)
	}
	d.delete("/v1/sessions/" + one).want(200)
	d.delete("/v1/sessions/" + two).want(200)
	pass(time.Minute)
}

// The overview ranks keys by the time that is lost at them, and shows the waits as a graph.
func TestOverview(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.get("/v1/overview").want(200).is("verdict", "No agent waits.")
		d.acquire("idle", "quiet:1")
		d.acquire("billing-7", "hot:1")
		d.acquire("refactor-3", "warm:1")
		d.post("/v1/leases", `{"agent":"late","on_conflict":"wait","claims":[{"key":"warm:1"}]}`).want(202)
		for i := range 3 {
			pass(time.Second)
			agent := fmt.Sprint("support-", i)
			d.post("/v1/leases", `{"agent":"`+agent+`","on_conflict":"wait","claims":[{"key":"hot:1"}]}`).want(202)
		}
		pass(2 * time.Second)
		o := d.get("/v1/overview").want(200)
		o.is("verdict", "4 waiters, most at hot:1: 3 waiters, 9.0s lost so far; billing-7 holds it for 5.0s.")
		o.is("keys.0.row.key", "hot:1").is("keys.1.row.key", "warm:1").is("keys.2.row.key", "quiet:1")
		if got := o.num("keys.0.lost_ms"); got != 4000+3000+2000 {
			t.Errorf("%d ms are lost at hot:1", got)
		}
		for _, edge := range o.body["edges"].([]any) {
			e := edge.(map[string]any)
			from, _ := e["from"].(json.Number).Int64()
			to, _ := e["to"].(json.Number).Int64()
			waiter, blocker := o.str(fmt.Sprintf("nodes.%d.agent", from)), o.str(fmt.Sprintf("nodes.%d.agent", to))
			if !strings.HasPrefix(waiter, "support") && waiter != "late" || blocker == "idle" || waiter == blocker {
				t.Errorf("%s waits for %s", waiter, blocker)
			}
		}
		d.get("/v1/overview", "Interlock-Namespace", "another").want(200).is("verdict", "No agent waits.")
	})
}

// viewer is a reader of the overview that takes all at once.
type viewer struct {
	mu     sync.Mutex
	header http.Header
	b      strings.Builder
	done   chan struct{}
}

func (v *viewer) Header() http.Header { return v.header }
func (v *viewer) WriteHeader(int)     {}
func (v *viewer) Flush()              {}

func (v *viewer) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.b.Write(b)
}

func (v *viewer) raw() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.b.String()
}

// pictures are those that came.
func (v *viewer) pictures() (list []string) {
	for event := range strings.SplitSeq(v.raw(), "\n\n") {
		if data, ok := strings.CutPrefix(event, "event: picture\ndata: "); ok {
			list = append(list, data)
		}
	}
	return list
}

// view follows the overview until leave is called, or the server ends it.
func (d *door) view(headers ...string) (v *viewer, leave func()) {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	r := d.request("GET", "/v1/overview", "", append(headers, "Accept", "text/event-stream")...).WithContext(ctx)
	v = &viewer{header: http.Header{}, done: make(chan struct{})}
	go func() {
		defer close(v.done)
		d.handler.ServeHTTP(v, r)
	}()
	return v, func() {
		cancel()
		<-v.done
	}
}

// A picture is made once for all viewers, comes when something has happened, and each 5 s otherwise.
func TestOverviewStream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		counted := &countedSurveys{Shard: d.server.shard}
		d.server.shard = counted
		first, endFirst := d.view()
		second, endSecond := d.view()
		other, endOther := d.view("Interlock-Namespace", "another")
		pass(time.Second)
		if a, b := first.pictures(), second.pictures(); len(a) != 1 || !slices.Equal(a, b) || counted.surveys.Load() != 2 {
			t.Fatalf("%d and %d pictures, made %d times", len(a), len(b), counted.surveys.Load())
		}
		if n := d.figure("interlock_overview_viewers"); n != "3" {
			t.Errorf("%s viewers are counted", n)
		}
		d.acquire("billing-7", "account:1")
		pass(time.Second)
		if got := first.pictures(); len(got) != 2 || !strings.Contains(got[1], "billing-7") {
			t.Fatalf("after a grant: %q", got)
		}
		pass(20 * time.Second)
		if n := len(first.pictures()); n < 5 || n > 7 {
			t.Errorf("%d pictures after 20 s without events", n)
		}
		for i := range 40 {
			d.acquire("busy", fmt.Sprint("key:", i))
			pass(50 * time.Millisecond)
		}
		if n := len(first.pictures()); n > 7+6 {
			t.Errorf("%d pictures after 2 s with 40 events", n)
		}
		if strings.Contains(other.raw(), "billing-7") || len(other.pictures()) == 0 {
			t.Errorf("another tenant sees %q", other.pictures())
		}
		endFirst()
		endSecond()
		endOther()
		synctest.Wait()
		if n := d.figure("interlock_overview_viewers"); n != "0" {
			t.Errorf("%s viewers are counted after all have left", n)
		}
		before := counted.surveys.Load()
		pass(time.Minute)
		if counted.surveys.Load() != before {
			t.Error("pictures are made without viewers")
		}
		third, _ := d.view()
		pass(time.Second)
		if n := len(third.pictures()); n != 1 {
			t.Errorf("a viewer that came later got %d pictures", n)
		}
		d.server.Drain()
		<-third.done
		if !strings.Contains(third.raw(), `event: end`) || !strings.Contains(third.raw(), `"code":"shutting_down"`) {
			t.Errorf("the stream of a server that drains ended with %q", third.raw())
		}
	})
}

// countedSurveys counts the pictures, which each namespace makes on its own.
type countedSurveys struct {
	Shard
	surveys atomic.Int64
}

func (c *countedSurveys) Survey(
	ctx context.Context, ns interlock.Namespace, look func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	c.surveys.Add(1)
	return c.Shard.Survey(ctx, ns, look)
}

func TestCycles(t *testing.T) {
	g := &waitGraph{
		parties: make([]engine.FlowRef, 7), ends: [][2]int{{0, 1}, {1, 2}, {2, 0}, {3, 0}, {4, 5}, {5, 4}, {6, -1}},
	}
	if got := fmt.Sprint(g.cycles()); got != "[[0 1 2] [4 5]]" {
		t.Errorf("cycles %s", got)
	}
}
