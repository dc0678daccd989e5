package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/shard"
)

// failingReads is a journal that cannot be read from an index on, once it has an error.
type failingReads struct {
	journal.Journal
	from interlock.Index
	err  atomic.Pointer[error]
}

func (j *failingReads) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	why := j.err.Load()
	if why == nil {
		return j.Journal.Read(ctx, from, visit)
	}
	return j.Journal.Read(ctx, from, func(e journal.Entry) error {
		if e.Index >= j.from {
			return *why
		}
		return visit(e)
	})
}

func (j *failingReads) fail(from interlock.Index, err error) {
	j.from = from
	j.err.Store(&err)
}

// newUnreadable is a door over a journal with 20 documents that can be made unreadable,
// and what its server logs.
func newUnreadable(t *testing.T) (*door, *failingReads, *strings.Builder) {
	t.Helper()
	logged := new(strings.Builder)
	d := newDoor(t)
	j := &failingReads{}
	d.log = slog.NewTextHandler(logged, nil)
	d.wrap = func(own journal.Journal) journal.Journal {
		j.Journal = own
		return j
	}
	d.reopen()
	for i := range 20 {
		d.commitDoc(fmt.Sprint("doc:", i), "1")
	}
	return d, j, logged
}

// lastOf is the last line or event of a stream.
func lastOf(t *testing.T, got *reply) map[string]any {
	t.Helper()
	text := strings.TrimRight(got.raw, "\n")
	if got.header.Get("Content-Type") == "text/event-stream" {
		block := text[strings.LastIndex(text, "\n\n")+1:]
		data, ok := strings.CutPrefix(strings.TrimLeft(block, "\n"), "event: end\ndata: ")
		if !ok {
			t.Fatalf("%s ends with %q", got.what, block)
		}
		text = data
	}
	var last map[string]any
	if err := json.Unmarshal([]byte(text[strings.LastIndex(text, "\n")+1:]), &last); err != nil {
		t.Fatalf("%s: %v in %q", got.what, err, text)
	}
	return last
}

// A history that cannot be read does not look whole: it ends with a code, an answer that
// would have ended by itself is broken off, and the log and a metric say so.
func TestUnreadableHistory(t *testing.T) {
	const sse, lines = "text/event-stream", "application/x-ndjson"
	n := 0
	inBubble(t, func(t *testing.T) {
		d, j, logged := newUnreadable(t)
		middle := d.server.shard.At().Index - 10
		for _, cause := range []error{syscall.EIO, syscall.EMFILE, &journal.DamageError{Reason: "its checksum is wrong"}} {
			for _, from := range []interlock.Index{1, middle} {
				for _, c := range []struct {
					path, accept string
					finite       bool
					count        string
				}{
					{"/v1/events", lines, true, `"event":"written"`},
					{"/v1/events?from=1", lines, true, `"event":"written"`},
					{"/v1/events?follow=true", lines, false, `"event":"written"`},
					{"/v1/events", sse, false, "event: written\n"},
					{"/v1/events?follow=false", sse, true, "event: written\n"},
					{"/v1/watch?from=1", sse, false, "event: written\n"},
					{"/v1/watch?from=1&prefix=doc:", lines, false, `"version":`},
				} {
					n++
					j.fail(from, cause)
					logged.Reset()
					got := d.get(c.path, "Accept", c.accept).want(200)
					last := lastOf(t, got)
					if last["event"] != "end" || last["code"] != "history_unreadable" || last["retryable"] != true {
						t.Errorf("%s with %v ends with %v", c.path, cause, last)
					}
					if got.broken != c.finite {
						t.Errorf("%s with %v is broken off: %v", c.path, cause, got.broken)
					}
					if count, want := strings.Count(got.raw, c.count), map[bool]int{true: 9}[from == middle]; count != want {
						t.Errorf("%s with %v has %d events of %d that can be read", c.path, cause, count, want)
					}
					if strings.Contains(got.raw, cause.Error()) {
						t.Errorf("%s shows the cause to a tenant: %s", c.path, got.raw)
					}
					if !strings.Contains(logged.String(), "level=ERROR") || !strings.Contains(logged.String(), cause.Error()) {
						t.Errorf("%s with %v: the log says %q", c.path, cause, logged)
					}
				}
			}
		}
		if got := d.figure("interlock_history_unreadable_total"); got != fmt.Sprint(n) {
			t.Errorf("%s streams are counted, want %d", got, n)
		}
		// The server goes on, and so do readers that need nothing old.
		stop := d.watching("")
		d.commitDoc("doc:new", "1")
		if got := keysOf(stop()); !strings.HasPrefix(got, "doc:new@") {
			t.Errorf("a watch from now on shows %q", got)
		}
		d.get("/v1/history/doc:1").want(200)
		j.err.Store(nil)
		if got := d.get("/v1/events").want(200); got.broken || strings.Count(got.raw, `"event":"written"`) != 21 {
			t.Errorf("readable again: %s", got.raw)
		}
	})
}

// On the wire the answer lacks its end, so that a program that knows no event "end" sees
// that it is not whole.
func TestUnreadableHistoryBreaksTheTransferOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, j, _ := newUnreadable(t)
		for _, cause := range []error{nil, syscall.EIO} {
			if cause != nil {
				j.fail(5, cause)
			}
			conn := d.listen()()
			if _, err := io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			switch {
			case cause == nil && (err != nil || strings.Contains(string(body), `"event":"end"`)):
				t.Errorf("a whole answer: %v after %s", err, body)
			case cause != nil && (err != io.ErrUnexpectedEOF || !strings.Contains(string(body), `"code":"history_unreadable"`)):
				t.Errorf("one that is not: %v after %s", err, body)
			}
		}
	})
}

// An answer is broken off when the server fails in the middle of it.
func TestPanicBreaksTheAnswerOff(t *testing.T) {
	d := newDoor(t)
	d.server.shard = journalShard{d.server.shard, func(shard.Follower) error { panic("an invariant is broken") }}
	if got := d.get("/v1/events").want(200); !got.broken {
		t.Errorf("it looks whole: %q", got.raw)
	}
}

// journalShard is a shard with only the journal read otherwise.
type journalShard struct {
	Shard
	follow func(shard.Follower) error
}

func (s journalShard) Follow(_ context.Context, f shard.Follower) error { return s.follow(f) }

// A waiter for an effect to be settled learns it also after the journal could not be read.
func TestSettlingOutlivesUnreadableJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		real, failures := d.server.shard, 0
		s := newSettling(nil, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.shard = journalShard{real, func(f shard.Follower) error {
			if failures++; failures == 1 {
				return &shard.UnreadableError{Index: f.From, Err: syscall.EIO}
			}
			return real.Follow(ctx, f)
		}}
		d.server.settling = s
		id := d.post("/v1/effects", `{"agent":"ann","ttl_ms":3600000,`+charge+`}`).want(200).str("effect.id")
		began := time.Now()
		waiting := d.start(d.request("POST", "/v1/effects", `{"agent":"ben","wait_ms":50000,`+charge+`}`))
		pass(time.Second)
		d.post("/v1/effects/"+id+"/done", `{"result":1}`).want(200)
		(<-waiting).want(200)
		if took := time.Since(began); took > 2*time.Second || failures != 2 {
			t.Errorf("it was told after %v, and the journal was followed %d times", took, failures)
		}
		cancel()
	})
}

// Tenants with names that begin alike see nothing of each other's events and documents.
func TestEventsOfTenantsWithLikeNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		names := []string{"acme", "acme2", "acme-eu", "acm"}
		d := newDoor(t)
		streams := map[string]<-chan *reply{}
		ctx, cancel := context.WithCancel(t.Context())
		for _, name := range names {
			for _, path := range []string{"/v1/events?follow=true", "/v1/watch"} {
				streams[name+" "+path] = d.start(d.request("GET", path, "", "Interlock-Namespace", name).WithContext(ctx))
			}
		}
		synctest.Wait()
		for _, read := range []string{`"absent"`, `"present"`, `"present"`} {
			for _, name := range names {
				d.post(
					"/v1/commits",
					`{"agent":"<`+name+`>","reads":[{"key":"doc:<`+name+`>",`+read+`:true}],"writes":[{"key":"doc:<`+name+
						`>","put":1}]}`,
					"Interlock-Namespace", name,
				).want(200)
			}
		}
		synctest.Wait()
		cancel()
		check := func(name, what, raw string) {
			for _, other := range names {
				n := strings.Count(raw, "doc:\\u003c"+other+"\\u003e") + strings.Count(raw, "doc:<"+other+">")
				if want := map[bool]int{true: 3}[other == name]; n != want {
					t.Errorf("%s: %s shows %d writes of %s, want %d: %s", name, what, n, other, want, raw)
				}
			}
		}
		for what, stream := range streams {
			name, path, _ := strings.Cut(what, " ")
			check(name, path, (<-stream).raw)
		}
		for _, name := range names {
			check(name, "the journal", d.get("/v1/events", "Interlock-Namespace", name).raw)
		}
	})
}

// A reader of a quiet namespace learns with each keep-alive how far it has come, so that it can go
// on there when what it saw last is long forgotten.
func TestQuietReaderKeepsItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		ctx, cancel := context.WithCancel(t.Context())
		stream := d.start(d.request(
			"GET", "/v1/events", "", "Accept", "text/event-stream", "Interlock-Namespace", "quiet",
		).WithContext(ctx))
		synctest.Wait()
		for i := range 40 {
			d.post("/v1/commits", fmt.Sprintf(`{"writes":[{"key":"doc:%d","put":1}]}`, i)).want(200)
		}
		newest := d.server.shard.At().Index
		pass(keepAliveEvery)
		cancel()
		got := (<-stream).raw
		if !strings.HasSuffix(got, "id: "+newest.String()+"\n\n") || strings.Contains(got, "doc:") {
			t.Errorf("at index %d it has %q", newest, got)
		}
	})
}
