package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/guard/signed"
	"github.com/interlockdev/interlock/journal"
)

// takeOver lets another server own the shard. This one has not noticed yet.
func (d *door) takeOver() {
	d.Helper()
	if _, err := d.store.Open(context.Background()); err != nil {
		d.Fatal(err)
	}
}

// ownSamples has a request for every operation, those of shared files included.
func ownSamples() []sample {
	return append(
		samples(),
		sample{"GET", "/v1/files/a", "", ""},
		sample{"PUT", "/v1/files/a", "x", anyBytes},
		sample{"DELETE", "/v1/files/a", "", ""},
	)
}

// ofTheProcess are the operations that a former owner of the shard still answers: they are
// about the process alone.
var ofTheProcess = map[string]bool{"/": true, "/healthz": true, "/openapi.json": true, "/llms.txt": true, "/metrics": true}

// From the moment when another server owns the shard, it gets no answer, whatever is asked first:
// each operation is tried at a server that has not noticed yet.
func TestFormerOwnerAnswersNothing(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range ownSamples() {
		inBubble(t, func(t *testing.T) {
			_, files := withFiles(t, interlock.DefaultNamespace)
			d := newDoor(t, files)
			d.loose = true
			headers := []string{"If-None-Match", "*"}
			if c.method == "GET" {
				headers = nil
			}
			path, _, _ := strings.Cut(c.path, "?")
			pattern, _ := matchPath(c.method, path)
			tried[c.method+" "+pattern] = true
			if c.path != "/v1/watch?key=a" { // it would go on
				if r := d.sample(c, c.path, c.body, headers...); r.status == 503 {
					t.Fatalf("before: %d %s", r.status, r.raw)
				}
			}
			d.takeOver()
			r := d.sample(c, c.path, c.body, headers...)
			if ofTheProcess[path] {
				if r.want(200); strings.Contains(r.raw, "interlock_journal_index") {
					t.Error("the metrics show the shard")
				}
				return
			}
			r.want(503, "not_owner")
		})
	}
	for _, list := range [][]route{openRoutes, routes} {
		for _, rt := range list {
			for _, m := range rt.methods {
				if !tried[m.name+" "+rt.path] {
					t.Errorf("nobody has tried %s %s: add a sample", m.name, rt.path)
				}
			}
		}
	}
}

// Readers of events that were there before hear of it when nothing happens, too, and do not receive
// any more that nothing has.
func TestFormerOwnerEndsReaders(t *testing.T) {
	for _, c := range []struct{ path, accept string }{
		{"/v1/events?follow=true", "application/x-ndjson"},
		{"/v1/events", "text/event-stream"},
		{"/v1/watch?prefix=a", "text/event-stream"},
		{"/v1/watch?prefix=a", "application/x-ndjson"},
	} {
		inBubble(t, func(t *testing.T) {
			d := newDoor(t)
			d.loose = true
			d.acquire("ann", "a")
			reader := d.start(d.request("GET", c.path, "", "Accept", c.accept))
			synctest.Wait()
			d.takeOver()
			pass(keepAliveEvery + time.Second)
			r := <-reader
			last := r.raw[strings.LastIndex(strings.TrimSpace(r.raw), "\n")+1:]
			if !strings.Contains(last, `"event":"end","code":"not_owner"`) || strings.Contains(r.raw, "keep_alive") {
				t.Errorf("%v: the answer is %q", c, r.raw)
			}
		})
	}
}

// stuck is a shard with a journal that does not answer before the test ends.
type stuck struct {
	Shard
	ended chan struct{}
}

func (s stuck) Read(context.Context, interlock.Namespace, func(*engine.Engine, engine.Time)) (interlock.At, error) {
	<-s.ended
	return interlock.At{}, &interlock.Error{Code: interlock.CodeShuttingDown}
}

// A server is not ready while its journal does not answer, and reports that in time.
func TestReadyIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.get("/readyz").want(200).is("role", "active")
		ended := make(chan struct{})
		defer func() { close(ended); pass(confirmPause) }()
		d.server.shard = stuck{d.shard, ended}
		began := time.Now()
		d.get("/readyz").want(503, "not_owner").says("detail", "has not confirmed")
		if took := time.Since(began); took > readyTimeout {
			t.Errorf("it took %v", took)
		}
		d.get("/v1/fences/keys").want(503, "not_owner")
		d.get("/healthz").want(200)
	})
}

// readCounter counts the reads of a shard.
type readCounter struct {
	Shard
	reads *int
}

func (s readCounter) Read(
	ctx context.Context, ns interlock.Namespace, query func(*engine.Engine, engine.Time),
) (interlock.At, error) {
	*s.reads++
	<-time.After(time.Millisecond)
	return s.Shard.Read(ctx, ns, query)
}

// However many ask whether the server is ready, the journal is asked few times; each of
// them after the call came.
func TestReadyIsShared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		reads := 0
		d.server.shard = readCounter{d.shard, &reads}
		const calls = 200
		var replies []<-chan *reply
		for range calls {
			replies = append(replies, d.start(d.request("GET", "/readyz", "")))
		}
		for _, r := range replies {
			(<-r).want(200)
		}
		if reads == 0 || reads > 2 {
			t.Errorf("%d calls at once asked the journal %d times", calls, reads)
		}
		began := time.Now()
		reads = 0
		for range calls {
			d.get("/readyz").want(200)
		}
		if took := time.Since(began); reads != calls || took < (calls-1)*confirmPause {
			t.Errorf("%d calls one after the other asked %d times in %v", calls, reads, took)
		}
	})
}

// brokenKeeper is where a ring cannot be saved any more.
type brokenKeeper struct{ err error }

func (k *brokenKeeper) Load() ([]byte, error) { return nil, nil }
func (k *brokenKeeper) Save([]byte) error     { return k.err }
func (k *brokenKeeper) String() string        { return "keys" }

// A rotation that failed is not answered as one that was carried out, whatever its error
// looks like.
func TestRotationThatFailed(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{context.DeadlineExceeded, 500, "internal"},
		{context.Canceled, 500, "internal"},
		{fmt.Errorf("%w: %w", journal.ErrFailed, context.DeadlineExceeded), 503, "outcome_unknown"},
		{fmt.Errorf("%w: epoch 1 was followed by 2", journal.ErrFenced), 503, "not_owner"},
		{fmt.Errorf("%w: %w", journal.ErrNoSpace, context.Canceled), 503, "no_space"},
	} {
		d := newDoor(t)
		keeper := &brokenKeeper{}
		ring, err := signed.OpenRing(keeper, false)
		if err != nil {
			t.Fatal(err)
		}
		d.server.fences, keeper.err = ring, c.err
		before := d.get("/v1/fences/keys").want(200).raw
		d.post("/v1/fences/keys/rotate", `{}`).want(c.status, c.code)
		if after := d.get("/v1/fences/keys").want(200).raw; after != before {
			t.Errorf("after %v, the keys are %s", c.err, after)
		}
	}
}

// A handler that writes nothing has made a mistake, and its caller must not take that for
// success, as net/http would.
func TestEveryCallIsAnswered(t *testing.T) {
	const path = "/v1/silent"
	byPath[path] = &route{path, []method{{"GET", func(*call) {}, mayRead, nil}}}
	defer delete(byPath, path)
	var log bytes.Buffer
	d := newDoor(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	d.loose = true
	d.get(path).want(500, "internal")
	if !strings.Contains(log.String(), "was not answered") || !strings.Contains(log.String(), "route="+path) {
		t.Errorf("the log is %q", log.String())
	}
	log.Reset()
	gone, leave := context.WithCancel(t.Context())
	leave()
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, d.request("GET", path, "").WithContext(gone))
	if w.Body.Len() > 0 || log.Len() > 0 {
		t.Errorf("a caller that has gone got %q, the log is %q", w.Body.String(), log.String())
	}
	metrics := d.get("/metrics").want(200).raw
	for _, status := range []int{http.StatusInternalServerError, statusClientGone} {
		if want := fmt.Sprintf(
			`interlock_http_requests_total{route="%s",status="%d"} 1`, path, status,
		); !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// askedShard is a shard that answers each question when the test lets it.
type askedShard struct {
	Shard
	asked chan chan interlock.At
}

func (q askedShard) Read(
	context.Context, interlock.Namespace, func(*engine.Engine, engine.Time),
) (interlock.At, error) {
	answer := make(chan interlock.At)
	q.asked <- answer
	return <-answer, nil
}

// Callers share a question to the journal, but none gets the answer to one that began
// before it came.
func TestConfirmationsAreYoungerThanTheirCallers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		q := askedShard{asked: make(chan chan interlock.At)}
		c := &confirmer{server: &Server{shard: q}}
		come := func() <-chan interlock.At {
			got := make(chan interlock.At, 1)
			go func() {
				if at, err := c.confirm(t.Context()); err == nil {
					got <- at
				}
			}()
			synctest.Wait()
			return got
		}
		first := come()
		one := <-q.asked
		second, third := come(), come()
		one <- interlock.At{Index: 1}
		if at := <-first; at.Index != 1 {
			t.Errorf("the first got %v", at)
		}
		synctest.Wait()
		if len(second)+len(third) > 0 {
			t.Fatal("a caller got the answer to a question that began before it came")
		}
		two := <-q.asked
		two <- interlock.At{Index: 2}
		for _, got := range []<-chan interlock.At{second, third} {
			if at := <-got; at.Index != 2 {
				t.Errorf("one that came later got %v", at)
			}
		}
	})
}
