package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

var (
	worldSeeds = flag.Int("worlds", 60, "the number of simulated worlds of conversations")
	worldFirst = flag.Uint64("world", 1, "the seed of the first one")
)

// world is agents that hold conversations with one server, in fake time, while answers get lost, calls are cancelled,
// and conversations, processes and the server begin anew. The model of an agent is what it has read: it knows of the
// leases that answers granted to it, and of those that news and look showed it.
//
//   - What an agent knows to hold, it holds: nothing is returned that it has read of, unless an answer tells it.
//   - look shows what the server has.
//   - No two agents know to hold one key.
//   - A lease that its agent does not know of ends, or an answer tells of it, although its conversation goes on.
type world struct {
	*rig
	*rand.Rand
	agents []*worldAgent
	cut    atomic.Bool // the server's API does not answer the door
	unread map[context.Context]func()
	mu     sync.Mutex
	log    []string
}

// worldAgent is one agent.
type worldAgent struct {
	w       *world
	name    string
	kind    string // stdio, sessions (revisions up to 2025-11-25) or plain (newer ones)
	session string // Mcp-Session-Id
	ids     int
	busy    atomic.Bool
	knows   map[string]string // its leases by their keys
	tickets []string
	proc    *worldProcess
	downAt  time.Time
}

// worldProcess is a process of an agent.
type worldProcess struct {
	in      *io.PipeWriter
	out     *io.PipeReader
	cut     atomic.Bool // its requests do not reach the server
	mu      sync.Mutex
	waiting map[string]chan json.RawMessage
	done    chan struct{}
}

const worldKeys = 3

func TestWorlds(t *testing.T) {
	for seed := *worldFirst; seed < *worldFirst+uint64(*worldSeeds); seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) { inBubble(t, func(r *rig) { playWorld(r, seed) }) })
		if !ok {
			t.Fatalf("seed %d: go test ./mcp -run TestWorlds -worlds 1 -world %d", seed, seed)
		}
	}
}

func playWorld(r *rig, seed uint64) {
	w := &world{rig: r, Rand: rand.New(rand.NewPCG(seed, 41)), unread: map[context.Context]func(){}}
	r.handler.Close()
	w.open()
	r.ends = append(r.ends, func() {
		for _, a := range w.agents {
			if a.proc != nil {
				a.stop(false)
			}
		}
	})
	for _, kind := range []string{"plain", "sessions", "sessions", "stdio"} {
		a := &worldAgent{w: w, name: fmt.Sprintf("%s-%d", kind, len(w.agents)), kind: kind, knows: map[string]string{}}
		w.agents = append(w.agents, a)
		a.begin()
	}
	for range 60 {
		w.step()
		pass(time.Duration(w.IntN(1500)) * time.Millisecond)
		w.check()
	}
	pass(time.Minute) // all calls end
	// The conversations go on, without a word about leases.
	for range 14 {
		for _, a := range w.agents {
			if a.proc == nil && a.kind == "stdio" {
				a.begin()
			}
			a.call("look", arguments{"keys": []string{"other"}}, "read", 0)
		}
		pass(30 * time.Second)
		w.check()
	}
	truth := w.truth()
	for _, a := range w.agents {
		for key := range truth[a.name] {
			if a.knows[key] == "" {
				w.fail("%s holds %s, does not know of it, and its conversation keeps it alive", a.name, key)
			}
		}
	}
}

// open opens the door over HTTP.
func (w *world) open() {
	inner := w.rig
	w.handler = NewHandler(HandlerConfig{
		API: http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
			if w.cut.Load() {
				http.Error(out, "no", http.StatusServiceUnavailable)
				return
			}
			inner.api.ServeHTTP(out, q)
		}),
		Unread: func(ctx context.Context, lost func()) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if at, ok := ctx.Value(unreadKey{}).(*func()); ok {
				*at = lost
			}
		},
	})
}

type unreadKey struct{}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// notes returns how many there are.
func (w *world) notes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.log)
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Fatalf(format+"\n%s", append(args, strings.Join(w.log[max(0, len(w.log)-100):], "\n"))...)
}

// step lets one thing happen.
func (w *world) step() {
	a := w.agents[w.IntN(len(w.agents))]
	switch n := w.IntN(100); {
	case n < 4:
		w.restart(w.IntN(2) == 0)
		return
	case a.busy.Load():
		return
	case a.proc == nil && a.kind == "stdio":
		a.begin()
		return
	case n < 14:
		a.again()
		return
	}
	tool, in := "acquire", arguments{
		"keys": []string{fmt.Sprint("k", w.IntN(worldKeys))}, "wait_s": w.IntN(4), "if_held": "wait",
	}
	switch n := w.IntN(10); {
	case n < 3 && len(a.knows) > 0:
		key := slices.Sorted(maps.Keys(a.knows))[0]
		tool, in = "release", arguments{"lease": a.knows[key]}
	case n < 4 && len(a.tickets) > 0:
		tool, in = "wait", arguments{"ticket": a.tickets[len(a.tickets)-1], "wait_s": w.IntN(4)}
	case n < 5:
		tool, in = "look", arguments{}
	}
	fate := []string{"read", "read", "read", "cancelled", "lost"}[w.IntN(5)]
	if tool == "release" || tool == "look" {
		fate = "read"
	}
	after := time.Duration(w.IntN(3)) * time.Duration(w.IntN(1200)) * time.Millisecond
	a.busy.Store(true)
	w.busy.Go(func() { a.call(tool, in, fate, after) })
}

// restart restarts the server. crashed means that what the door begins then reaches nothing.
func (w *world) restart(crashed bool) {
	w.note("the server restarts, crashed %t", crashed)
	w.cut.Store(crashed)
	w.handler.Close()
	for _, a := range w.agents {
		if a.proc != nil {
			a.proc.cut.Store(true)
		}
	}
	pass(0)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && slices.ContainsFunc(
		w.agents, func(a *worldAgent) bool { return a.busy.Load() && a.kind != "stdio" },
	); {
		pass(time.Second)
	}
	w.api.Close()
	w.api.Open(w)
	w.cut.Store(false)
	for _, a := range w.agents {
		if a.proc != nil {
			a.proc.cut.Store(false)
		}
	}
	w.open()
}

// begin begins a conversation.
func (a *worldAgent) begin() {
	a.w.note("%s begins", a.name)
	switch a.kind {
	case "stdio":
		a.start()
	case "plain":
		return
	}
	a.session = ""
	if _, err := a.send("initialize", map[string]any{
		"protocolVersion": oldRevision, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "w", "version": "1"},
	}, "read", 0); err != nil {
		a.w.fail("%s: initialize: %v", a.name, err)
	}
}

// again lets a client restart: a process is killed, or ends; others begin another conversation.
func (a *worldAgent) again() {
	if a.kind != "stdio" {
		a.begin()
		return
	}
	killed := a.w.IntN(2) == 0
	a.w.note("%s ends, killed %t", a.name, killed)
	a.stop(killed)
	if !killed {
		clear(a.knows)
	}
	a.downAt = time.Now()
}

// start starts the process of an agent.
func (a *worldAgent) start() {
	if !a.downAt.IsZero() && time.Since(a.downAt) > processTTL-time.Second {
		clear(a.knows) // it is down for too long
	}
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	p := &worldProcess{in: inWrite, out: outRead, waiting: map[string]chan json.RawMessage{}, done: make(chan struct{})}
	a.proc, a.tickets = p, nil
	direct := api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "127.0.0.1"}}, Transport: cutTransport{p, agent.Local(
			http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) { a.w.api.ServeHTTP(out, q) }),
		)},
	})
	w := a.w
	w.busy.Go(func() {
		defer close(p.done)
		cfg := StdioConfig{API: direct, Agent: a.name, Key: a.name, Resume: !a.downAt.IsZero()}
		_ = ServeStdio(w.Context(), cfg, inRead, outWrite)
		_ = outWrite.Close()
	})
	w.busy.Go(func() {
		lines := bufio.NewScanner(outRead)
		for lines.Scan() {
			var m struct{ ID json.RawMessage }
			_ = json.Unmarshal(lines.Bytes(), &m)
			p.mu.Lock()
			if to := p.waiting[string(m.ID)]; to != nil {
				to <- bytes.Clone(lines.Bytes())
			}
			p.mu.Unlock()
		}
	})
}

// stop ends the process. One that is killed does nothing more.
func (a *worldAgent) stop(killed bool) {
	p := a.proc
	p.cut.Store(killed)
	_ = p.in.Close()
	_ = p.out.Close()
	<-p.done
	a.proc = nil
}

// cutTransport is a network that can be cut.
type cutTransport struct {
	p    *worldProcess
	next http.RoundTripper
}

func (c cutTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.p.cut.Load() {
		return nil, errors.New("cut")
	}
	return c.next.RoundTrip(r)
}

// call calls a tool. What the agent does not read, it does not know.
func (a *worldAgent) call(tool string, in arguments, fate string, after time.Duration) {
	defer a.busy.Store(false)
	text, err := a.send("tools/call", map[string]any{"name": tool, "arguments": in}, fate, after)
	if a.w.notes() < 80 || !strings.Contains(fmt.Sprint(in), "other") {
		a.w.note("%s: %s %v: %s after %v: %s %v", a.name, tool, in, fate, after, structured(text), err)
	}
	var m struct {
		Result struct {
			StructuredContent answer `json:"structuredContent"`
		}
	}
	if err != nil || fate != "read" || json.Unmarshal(text, &m) != nil {
		return
	}
	got := m.Result.StructuredContent
	for _, line := range got.News {
		if m := regexp.MustCompile(`you hold (\S+) by lease (\w+)`).FindStringSubmatch(line); m != nil {
			a.knows[m[1]] = m[2]
		}
		gone := regexp.MustCompile(`^(?:Your lease on )?(\S+) was (?:given back|released),`)
		if m := gone.FindStringSubmatch(line); m != nil {
			delete(a.knows, m[1])
		}
	}
	switch {
	case got.Outcome == "granted":
		key := regexp.MustCompile(`hold (k\d)`).FindStringSubmatch(got.Message)[1]
		a.knows[key] = got.Lease
		a.tickets = nil
	case got.Outcome == "queued":
		a.tickets = append(a.tickets, got.Ticket)
	case tool == "release":
		maps.DeleteFunc(a.knows, func(_, lease string) bool { return lease == in["lease"] })
	case tool == "look" && len(in) == 0:
		clear(a.knows)
		said := map[string]bool{}
		for _, row := range got.Rows {
			if key, turn := strings.CutSuffix(row, ", it is your turn"); turn {
				key, _, _ = strings.Cut(key, ":")
				said[key] = true
			}
			if m := regexp.MustCompile(`^(\S+): lease (\w+),`).FindStringSubmatch(row); m != nil {
				a.knows[m[1]], said[m[1]] = m[2], true
			}
		}
		if truth := a.w.truth()[a.name]; !maps.Equal(truth, said) {
			a.w.fail("look of %s shows %v, the server %v", a.name, got.Rows, truth)
		}
	}
}

// structured is the end of an answer, for the log.
func structured(text []byte) string {
	_, end, _ := strings.Cut(string(text), "structuredContent")
	return strings.TrimSpace(end)
}

var errNotRead = errors.New("the agent does not read the answer")

// send sends a message. The error is that there is no answer, or none that the agent reads.
func (a *worldAgent) send(method string, params any, fate string, after time.Duration) (json.RawMessage, error) {
	a.ids++
	id := fmt.Sprint(a.ids)
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.ids, "method": method, "params": params})
	cancelled := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
	if a.kind == "stdio" {
		return a.sendLine(body, id, cancelled, fate, after)
	}
	ctx, cancel := context.WithCancel(a.w.Context())
	defer cancel()
	if fate == "read" {
		return a.post(ctx, body, nil)
	}
	done := make(chan struct{})
	var unread func()
	a.w.busy.Go(func() {
		defer close(done)
		_, _ = a.post(ctx, body, &unread)
	})
	<-time.After(after)
	if fate == "cancelled" && a.kind == "sessions" {
		_, _ = a.post(a.w.Context(), []byte(cancelled), nil)
	}
	cancel() // the client closes the connection
	<-done
	a.w.mu.Lock()
	lost := unread
	a.w.mu.Unlock()
	if lost != nil {
		lost()
	}
	return nil, errNotRead
}

// post sends a message over HTTP.
func (a *worldAgent) post(ctx context.Context, body []byte, unread *func()) (json.RawMessage, error) {
	if unread != nil {
		ctx = context.WithValue(ctx, unreadKey{}, unread)
	}
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", oldRevision)
	r.Header.Set(agentHeader, a.name)
	if a.session != "" {
		r.Header.Set(sessionHeader, a.session)
	}
	res, err := agent.Local(a.w.handler).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if session := res.Header.Get(sessionHeader); session != "" {
		a.session = session
	}
	text, err := io.ReadAll(res.Body)
	if i := bytes.Index(text, []byte("data: {")); i >= 0 {
		text = text[i+len("data: "):]
	}
	if err == nil && (res.StatusCode > 299 || ctx.Err() != nil) {
		err = fmt.Errorf("status %d, %v", res.StatusCode, ctx.Err())
	}
	return text, err
}

// sendLine sends a message to the process.
func (a *worldAgent) sendLine(
	body []byte, id, cancelled, fate string, after time.Duration,
) (json.RawMessage, error) {
	p := a.proc
	if p == nil {
		return nil, errNotRead
	}
	answers := make(chan json.RawMessage, 1)
	p.mu.Lock()
	p.waiting[id] = answers
	p.mu.Unlock()
	if _, err := p.in.Write(append(body, '\n')); err != nil {
		return nil, err
	}
	if fate != "read" {
		<-time.After(after)
		_, _ = p.in.Write([]byte(cancelled + "\n"))
		return nil, errNotRead
	}
	select {
	case text := <-answers:
		return text, nil
	case <-p.done:
		return nil, io.EOF
	}
}

// truth is what the server has: the keys of each agent.
func (w *world) truth() map[string]map[string]bool {
	w.Helper()
	r, _ := http.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/v1/leases?limit=1000", nil)
	res, err := agent.Local(w.api.Handler).RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	var list api.LeaseList
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		w.Fatal(err)
	}
	out := map[string]map[string]bool{}
	for _, a := range w.agents {
		out[a.name] = map[string]bool{}
	}
	for _, l := range list.Leases {
		out[l.Agent][string(l.Claims[0].Key)] = true
	}
	return out
}

// check compares what the agents know with the truth.
func (w *world) check() {
	w.Helper()
	truth, knowing := w.truth(), map[string]string{}
	for _, a := range w.agents {
		if a.busy.Load() || a.kind == "stdio" && a.proc == nil {
			continue
		}
		for key := range a.knows {
			if !truth[a.name][key] {
				w.fail("%s knows to hold %s, and does not", a.name, key)
			}
			if other := knowing[key]; other != "" {
				w.fail("%s and %s know to hold %s", a.name, other, key)
			}
			knowing[key] = a.name
		}
	}
}
