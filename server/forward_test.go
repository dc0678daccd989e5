package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// member is a server in front of two shards. It owns one of them.
type member struct {
	http, grpc string
	sessions   *door // at grpc
	owns       int
	apis       *server.Server
	streams    *server.Streams
	others     [2]atomic.Pointer[member] // the owners of the shards, as this server believes
	lost       atomic.Bool               // it owns nothing any more
	silent     atomic.Bool               // the others have not answered it for long
	forward    *server.Forwarder
}

func (m *member) Locate(ns interlock.Namespace) server.Location {
	return m.Locations()[placement.Shard(string(ns), 2)]
}

func (m *member) Locations() []server.Location {
	list := make([]server.Location, 2)
	for s := range list {
		list[s].Shard = s
		switch owner := m.others[s].Load(); {
		case s == m.owns && !m.lost.Load():
			list[s].Server, list[s].Streams = m.apis, m.streams
		case owner != nil && owner != m:
			list[s].Active = server.Active{HTTP: owner.http, GRPC: owner.grpc}
			if m.silent.Load() {
				list[s].Unreached = time.Now().Add(-time.Minute)
			}
		}
	}
	return list
}

func (m *member) Peers() []server.Peer {
	return []server.Peer{{ID: "a", Active: server.Active{HTTP: m.http, GRPC: m.grpc}, Version: "1", Weight: 1}}
}

// serveMembers starts two servers over two shards, with sockets of the loopback.
func serveMembers(
	t *testing.T, credentials *server.Credentials, change ...func(*http.Server),
) (members [2]*member) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	for i := range members {
		m := &member{owns: i}
		j, err := (&memjournal.Store{}).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		owned, err := shard.Open(t.Context(), shard.Config{Journal: j, Number: i, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		cfg := server.Config{Shard: owned, Logger: quiet, Credentials: credentials}
		if m.apis, err = server.New(cfg); err != nil {
			t.Fatal(err)
		}
		m.streams = server.NewStreams(m.apis, server.StreamConfig{})
		m.forward = server.NewForwarder(nil, nil)
		cfg.Forward = m.forward
		router, err := server.NewRouter(cfg, m)
		if err != nil {
			t.Fatal(err)
		}
		web := listen(t)
		m.sessions = &door{Listener: listen(t), came: make(chan *visit, 100)}
		m.http, m.grpc = "http://"+web.Addr().String(), m.sessions.Addr().String()
		served := router.HTTPServer()
		for _, c := range change {
			c(served)
		}
		streams := server.NewStreams(router, server.StreamConfig{}).Server()
		go served.Serve(web)
		go streams.Serve(m.sessions)
		t.Cleanup(func() {
			router.Drain()
			m.apis.Drain()
			_ = served.Close()
			streams.Stop()
			_ = owned.Close(context.Background())
			cfg.Forward.Close()
		})
		members[i] = m
	}
	for i, m := range members {
		m.others[1-i].Store(members[1-i])
	}
	return members
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// door is a listener that announces its connections, before the server sees them.
type door struct {
	net.Listener
	came chan *visit
	shut atomic.Bool // connections wait until they are admitted
}

// visit is a connection of a door.
type visit struct {
	net.Conn
	once     sync.Once
	admitted chan struct{}
	left     chan struct{} // closed with the connection
}

func (d *door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visit{Conn: conn, admitted: make(chan struct{}), left: make(chan struct{})}
	d.came <- v
	if d.shut.Load() {
		<-v.admitted
	}
	return v, nil
}

func (v *visit) Close() error {
	v.once.Do(func() { close(v.left) })
	return v.Conn.Close()
}

// visitor returns the next connection of a door.
func (d *door) visitor(t *testing.T) *visit {
	t.Helper()
	select {
	case v := <-d.came:
		return v
	case <-time.After(busy.Patience()):
		t.Fatal("there is no further connection")
		return nil
	}
}

// leaves waits for the end of a connection.
func (v *visit) leaves(t *testing.T) {
	t.Helper()
	select {
	case <-v.left:
	case <-time.After(busy.Patience()):
		t.Fatalf("the connection from %s stays", v.RemoteAddr())
	}
}

// namespaceOf returns a namespace of a shard.
func namespaceOf(shard int) string {
	for i := 0; ; i++ {
		if ns := fmt.Sprint("tenant-", i); placement.Shard(ns, 2) == shard {
			return ns
		}
	}
}

// got is an answer.
type got struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

func (m *member) call(t *testing.T, method, path, namespace, body string, header ...string) got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, m.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Interlock-Namespace", namespace)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	g := got{status: answer.StatusCode, header: answer.Header, text: string(text)}
	_ = json.Unmarshal(text, &g.body)
	return g
}

const acquire = `{"agent":"a","claims":[{"key":"account:1"}],"ttl_ms":60000}`

// Both servers answer for both shards. A forwarded answer names the owner, and is the owner's in all else.
func TestForward(t *testing.T) {
	members := serveMembers(t, nil)
	for s := range members {
		ns, owner, other := namespaceOf(s), members[s], members[1-s]
		a := other.call(t, "POST", "/v1/leases", ns, acquire, "Idempotency-Key", "one")
		if a.status != 200 || a.header.Get("Interlock-Owner") != owner.http {
			t.Fatalf("acquire by way of the other server: %+v", a)
		}
		b := owner.call(t, "POST", "/v1/leases", ns, acquire, "Idempotency-Key", "one")
		if b.status != 200 || b.header.Get("Interlock-Owner") != "" || b.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the same request at the owner: %+v", b)
		}
		if c := other.call(t, "POST", "/v1/leases", ns, acquire); c.status != 409 || c.body["code"] != "held" {
			t.Errorf("a refusal that was forwarded: %+v", c)
		}
		if got := a.body["at"].(map[string]any)["shard"]; got != float64(s) {
			t.Errorf("the answer is of shard %v, want %d", got, s)
		}
	}
}

// A forwarded call is not forwarded again, and one for an unknown owner is refused: with the owner, as far as it is
// known.
func TestForwardOnce(t *testing.T) {
	members := serveMembers(t, nil)
	ns := namespaceOf(0)
	a := members[1].call(t, "GET", "/v1/keys/account:1", ns, "", "Interlock-Hops", "1")
	if a.status != 503 || a.body["code"] != "not_owner" ||
		a.body["active"].(map[string]any)["http"] != members[0].http {
		t.Fatalf("a second hop: %+v", a)
	}
	members[0].lost.Store(true) // each believes that the other one owns the shard
	members[0].others[0].Store(members[1])
	if a = members[1].call(t, "GET", "/v1/keys/account:1", ns, ""); a.status != 503 || a.body["code"] != "not_owner" {
		t.Errorf("by way of a stale table: %+v", a)
	}
	members[1].others[0].Store(nil)
	if a = members[1].call(t, "GET", "/v1/keys/account:1", ns, ""); a.status != 503 || a.body["active"] != nil {
		t.Errorf("without an owner: %+v", a)
	}
	if a = members[1].call(t, "GET", "/readyz", ns, ""); a.status != 503 {
		t.Errorf("a server that knows no owner of a shard is ready: %+v", a)
	}
	if a = members[1].call(t, "GET", "/readyz?role=active", ns, ""); a.status != 200 {
		t.Errorf("a server that owns a shard is not ready to be active: %+v", a)
	}
}

// An owner that is gone is reported as such. A change that it may have carried out is of unknown outcome.
func TestForwardToAbsentOwner(t *testing.T) {
	members := serveMembers(t, nil)
	ns, web := namespaceOf(0), listen(t)
	gone := &member{http: "http://" + web.Addr().String()}
	members[1].others[0].Store(gone)
	go func() {
		for {
			conn, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_ = conn.Close() // it has read the request, and breaks off
		}
	}()
	if a := members[1].call(t, "POST", "/v1/leases", ns, acquire); a.status != 503 || a.body["code"] != "outcome_unknown" {
		t.Errorf("an owner that breaks off: %+v", a)
	}
	if a := members[1].call(t, "GET", "/v1/keys/a", ns, ""); a.status != 503 || a.body["code"] != "not_owner" {
		t.Errorf("a look at an owner that breaks off: %+v", a)
	}
	_ = web.Close()
	if a := members[1].call(t, "POST", "/v1/leases", ns, acquire); a.status != 503 || a.body["code"] != "not_owner" {
		t.Errorf("an owner that is away: %+v", a)
	}
}

// A wait is forwarded with all the time it needs, and a stream of events line by line.
func TestForwardWaits(t *testing.T) {
	members := serveMembers(t, nil)
	ns := namespaceOf(0)
	first := members[0].call(t, "POST", "/v1/leases", ns, acquire)
	lease := first.body["lease"].(map[string]any)["id"].(string)
	waited := make(chan got, 1)
	go func() {
		waited <- members[1].call(t, "POST", "/v1/leases", ns,
			`{"agent":"b","claims":[{"key":"account:1"}],"on_conflict":"wait","wait_ms":20000}`)
	}()
	r, err := http.NewRequestWithContext(t.Context(), "GET", members[1].http+"/v1/events?follow=true&from=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Interlock-Namespace", ns)
	events, err := http.DefaultClient.Do(r)
	if err != nil || events.StatusCode != 200 {
		t.Fatalf("events: %v, %v", events, err)
	}
	defer events.Body.Close()
	seen := ""
	for buf := make([]byte, 4096); !strings.Contains(seen, `"queued"`); {
		n, err := events.Body.Read(buf)
		if err != nil {
			t.Fatalf("events end with %v after %s", err, seen)
		}
		seen += string(buf[:n])
	}
	if a := members[1].call(t, "POST", "/v1/leases/"+lease+"/release", ns, "{}"); a.status != 200 {
		t.Fatalf("release: %+v", a)
	}
	if a := <-waited; a.status != 200 || a.body["outcome"] != "granted" {
		t.Errorf("the wait: %+v", a)
	}
}

// A client of package client that reaches one server has leases of the other one's shard.
func TestRelay(t *testing.T) {
	members := serveMembers(t, nil)
	ns := namespaceOf(0)
	c, err := client.Dial(t.Context(), client.Config{
		Addrs: []string{members[1].grpc}, Namespace: interlock.Namespace(ns), Agent: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	l, err := c.Acquire(t.Context(), client.Request{Keys: []interlock.Key{"account:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := members[0].call(t, "GET", "/v1/keys/account:1", ns, ""); a.body["state"] != "held" {
		t.Errorf("the key at the owner: %+v", a)
	}
	if err := l.Release(t.Context(), client.Outcome{}); err != nil {
		t.Error(err)
	}
}

// A stream is relayed once: a server without the shard refuses one that another server relays.
func TestRelayOnce(t *testing.T) {
	members := serveMembers(t, nil)
	members[0].lost.Store(true)
	members[0].others[0].Store(members[1])
	_, err := client.Dial(busy.Context(t), client.Config{
		Addrs: []string{members[1].grpc}, Namespace: interlock.Namespace(namespaceOf(0)), Agent: "a",
	})
	if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeNotOwner {
		t.Errorf("a stream over two relays: %v", err)
	}
	if n := len(members[1].sessions.came); n != 1 {
		t.Errorf("%d streams came to the first server, want that of the client", n)
	}
}

// The keys of fences and the figures are those of all shards.
func TestRouterCollects(t *testing.T) {
	members := serveMembers(t, nil)
	keys := func(m *member, header ...string) int {
		a := m.call(t, "GET", "/v1/fences/keys", "default", "", header...)
		list, _ := a.body["keys"].([]any)
		return len(list)
	}
	if n := keys(members[0]); n != 2 {
		t.Errorf("there are %d keys, want one of each shard", n)
	}
	if n := keys(members[0], "Interlock-Hops", "1"); n != 1 {
		t.Errorf("another server gets %d keys, want those of the own shard", n)
	}
	members[0].others[1].Store(nil)
	if a := members[0].call(t, "GET", "/v1/fences/keys", "default", ""); a.status != 503 {
		t.Errorf("a set that lacks the keys of a shard: %+v", a)
	}
	members[1].call(t, "GET", "/v1/keys/a", namespaceOf(0), "")
	text := members[1].call(t, "GET", "/metrics", "default", "").text
	for _, want := range []string{
		`interlock_leases{shard="1"} 0`, `interlock_forwarded_total{api="http"} 1`, "interlock_build_info{",
		"interlock_relayed_streams 0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, `shard="0"`) {
		t.Error("the metrics show a shard of another server")
	}
}

// A body that does not arrive ends the call at each server: at the owner, and at the one that forwards. One that has
// arrived leaves the call its time.
func TestForwardedHalfBodies(t *testing.T) {
	members := serveMembers(t, nil, func(s *http.Server) { s.ReadTimeout = 300 * time.Millisecond })
	head := "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nInterlock-Namespace: " +
		namespaceOf(1) + "\r\n"
	for name, half := range map[string]string{
		"announced":            "Content-Length: 900000\r\n\r\n{",
		"announced, no byte":   "Content-Length: 20\r\n\r\n",
		"chunked":              "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
		"chunked, no chunk":    "Transfer-Encoding: chunked\r\n\r\n",
		"chunked, without end": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
	} {
		for i, m := range members {
			conn, err := net.Dial("tcp", strings.TrimPrefix(m.http, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(busy.Patience()))
			if _, err := io.WriteString(conn, head+half); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
				t.Errorf("%s, at server %d: %v, %.60q", name, i, err, answer)
			}
		}
	}
	held := `{"claims":[{"key":"k:1"}]}`
	for range 2 { // the second one waits in line, for longer than a body may take
		conn, err := net.Dial("tcp", strings.TrimPrefix(members[0].http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(busy.Patience()))
		_, err = fmt.Fprintf(conn, "%sConnection: close\r\nContent-Length: %d\r\n\r\n%s", head, len(held), held)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 20") {
			t.Errorf("%v, %q", err, answer)
		}
		held = `{"claims":[{"key":"k:1"}],"on_conflict":"wait","wait_ms":900}`
	}
}
