package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/shard"
)

// door is the HTTP door over a real shard. Its journal is in memory and outlives it. Calls go
// through the handler without a network, so that it can be used within a synctest bubble, where
// hours pass at once.
type door struct {
	testing.TB
	store   *memjournal.Store
	shard   *shard.Shard
	obs     *Observer
	server  *Server
	handler http.Handler
	seen    *sightings        // of the parts of openapi.json; nil when they are not counted
	loose   bool              // answers are not compared to openapi.json
	notes   map[string]string // what a test remembers
	log     slog.Handler      // of the server; nil discards it

	// wrap, when it is set, changes the journal that the next open takes.
	wrap func(journal.Journal) journal.Journal
}

// newDoor opens a door; change may change its configuration.
func newDoor(t testing.TB, change ...func(*Config)) *door {
	t.Helper()
	d := &door{TB: t, store: new(memjournal.Store)}
	d.open(change...)
	return d
}

func (d *door) open(change ...func(*Config)) {
	d.Helper()
	own, err := d.store.Open(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	var j journal.Journal = own
	if d.wrap != nil {
		j = d.wrap(own)
	}
	if d.log == nil {
		d.log = slog.DiscardHandler
	}
	d.obs = NewObserver(nil, nil)
	if d.shard, err = shard.Open(d.Context(), shard.Config{Journal: j, Observer: d.obs, SnapshotBytes: -1}); err != nil {
		d.Fatal(err)
	}
	s := d.shard
	d.Cleanup(func() { _ = s.Close(context.Background()) })
	cfg := Config{Shard: d.shard, Observer: d.obs, Logger: slog.New(d.log)}
	for _, c := range change {
		c(&cfg)
	}
	if d.server, err = New(cfg); err != nil {
		d.Fatal(err)
	}
	d.handler = d.server.HTTPHandler()
}

// reopen is a restart: the shard is closed and opened over the same journal.
func (d *door) reopen(change ...func(*Config)) {
	d.Helper()
	if err := d.shard.Close(d.Context()); err != nil {
		d.Fatal(err)
	}
	d.open(change...)
}

// reply is the answer to a request.
type reply struct {
	testing.TB
	what   string
	status int
	header http.Header
	raw    string
	body   map[string]any
	broken bool // it was broken off
}

// request makes one. headers are pairs of name and value; Host is one of them.
func (d *door) request(method, path, body string, headers ...string) *http.Request {
	d.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, content)
	r.Host = "localhost:7420"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			r.Host = headers[i+1]
		case "Content-Type":
			r.Header.Set(headers[i], headers[i+1])
		default:
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	return r
}

func (d *door) send(r *http.Request) *reply {
	d.Helper()
	w := httptest.NewRecorder()
	broken := breaksOff(func() { d.handler.ServeHTTP(w, r) })
	out := &reply{
		TB: d.TB, what: r.Method + " " + r.URL.String(), status: w.Code, header: w.Header(), raw: w.Body.String(),
		broken: broken,
	}
	if kind := w.Header().Get("Content-Type"); kind == "application/json" || kind == "application/problem+json" {
		dec := json.NewDecoder(strings.NewReader(out.raw))
		dec.UseNumber()
		if err := dec.Decode(&out.body); err != nil {
			d.Fatalf("%s: %v in %q", out.what, err, out.raw)
		}
		if cursor, ok := out.body["cursor"].(string); ok && url.QueryEscape(cursor) != cursor {
			d.Errorf("%s: the cursor %q cannot stand in an address as it is", out.what, cursor)
		}
		if advice, ok := out.body["advice"].(map[string]any); ok && out.status >= 400 {
			out.retryAfter(advice)
		}
	}
	// openapi.json has the full form of an answer; TestBrief compares the brief one with it.
	if brief := w.Header().Get("Preference-Applied") != ""; !d.loose && !brief {
		if err := compare(r, w.Result(), out.raw, d.seen); err != nil {
			d.Fatalf("%s answers %d %s, which is not what openapi.json says: %v", out.what, out.status, out.raw, err)
		}
	}
	return out
}

// retryAfter checks that the header's time is not before the advice's, and not a second later.
func (r *reply) retryAfter(advice map[string]any) {
	r.Helper()
	number, _ := advice["retry_after_ms"].(json.Number)
	wait, _ := number.Int64()
	seconds, _ := strconv.ParseInt(r.header.Get("Retry-After"), 10, 64)
	if seconds*1000 < wait || (seconds-1)*1000 >= max(wait, 1) {
		r.Errorf("%s: the header Retry-After is %d, and the advice %d ms", r.what, seconds, wait)
	}
}

// breaksOff reports whether a handler breaks its answer off.
func breaksOff(serve func()) (broken bool) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			broken = true
		default:
			panic(v)
		}
	}()
	serve()
	return false
}

func (d *door) get(path string, headers ...string) *reply {
	d.Helper()
	return d.send(d.request("GET", path, "", headers...))
}

func (d *door) post(path, body string, headers ...string) *reply {
	d.Helper()
	return d.send(d.request("POST", path, body, headers...))
}

func (d *door) delete(path string, headers ...string) *reply {
	d.Helper()
	return d.send(d.request("DELETE", path, "", headers...))
}

// start sends a call from a goroutine of its own.
func (d *door) start(r *http.Request) <-chan *reply {
	ch := make(chan *reply, 1)
	go func() { ch <- d.send(r) }()
	return ch
}

// want checks the status, and the code if one is given.
func (r *reply) want(status int, code ...string) *reply {
	r.Helper()
	if r.status != status || len(code) > 0 && r.str("code") != code[0] {
		r.Fatalf("%s: %d %s, want %d %v", r.what, r.status, r.raw, status, code)
	}
	return r
}

// at finds a value by its path, such as "lease.holder.agent" or "holders.0.fence".
func (r *reply) at(path string) any {
	r.Helper()
	var v any = r.body
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func (r *reply) str(path string) string {
	r.Helper()
	s, _ := r.at(path).(string)
	return s
}

func (r *reply) num(path string) int64 {
	r.Helper()
	n, ok := r.at(path).(json.Number)
	if !ok {
		r.Fatalf("%s: %s is %v in %s", r.what, path, r.at(path), r.raw)
	}
	v, err := n.Int64()
	if err != nil {
		r.Fatal(err)
	}
	return v
}

// is checks that a value is this text.
func (r *reply) is(path, want string) *reply {
	r.Helper()
	if got := r.str(path); got != want {
		r.Fatalf("%s: %s is %q, want %q, in %s", r.what, path, got, want, r.raw)
	}
	return r
}

// says checks that a text contains some words.
func (r *reply) says(path string, words ...string) *reply {
	r.Helper()
	text := r.str(path)
	for _, w := range words {
		if !strings.Contains(text, w) {
			r.Fatalf("%s: %s is %q, which lacks %q", r.what, path, text, w)
		}
	}
	return r
}

// acquire takes a key for an agent without a session.
func (d *door) acquire(agent, key string) (lease string) {
	d.Helper()
	return d.post("/v1/leases", fmt.Sprintf(`{"agent":%q,"claims":[{"key":%q}]}`, agent, key)).want(200).str("lease.id")
}

// session opens one.
func (d *door) session(agent string) (id string) {
	d.Helper()
	return d.post("/v1/sessions", fmt.Sprintf(`{"agent":%q}`, agent)).want(200).str("session.id")
}

// inBubble runs a test where time passes only when all goroutines wait.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// pass lets time go by in a bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func contains(s, part string) bool { return strings.Contains(s, part) }
