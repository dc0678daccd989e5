package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/server"
)

// hold is a server that accepts, reads, and answers nothing. came has a signal for each connection that has sent
// something.
func hold(t *testing.T) (addr string, came chan struct{}) {
	l := listen(t)
	came = make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if n, _ := conn.Read(make([]byte, 1<<16)); n > 0 {
					came <- struct{}{}
				}
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), came
}

// A call by way of another server has an end, however the link to its owner is cut; and what the caller reads then is
// true, and does not lead back.
func TestForwardedCallsEnd(t *testing.T) {
	moved := func(m, owner *member) { m.others[1].Store(owner) }
	silent := func(m, _ *member) { m.silent.Store(true) }
	free := func(m, _ *member) { m.others[1].Store(nil) }
	const unknown = interlock.CodeOutcomeUnknown
	for _, c := range []struct {
		name, method string
		refusing     bool // the owner refuses connections
		before, then func(m, owner *member)
		status       int
		code         interlock.Code
	}{
		{"a change is held, and its shard has another owner", "POST", false, nil, moved, 503, unknown},
		{"a read is held, and its shard has another owner", "GET", false, nil, moved, 200, ""},
		{"a change is held for the time of the owner's engine", "POST", false, nil, silent, 503, unknown},
		{"a read is held for the time of the owner's engine", "GET", false, nil, silent, 503, interlock.CodeNotOwner},
		{"the seat is free", "POST", false, nil, free, 503, unknown},
		{"a read, and the seat is free", "GET", false, nil, free, 503, interlock.CodeNotOwner},
		{"a change is refused", "POST", true, nil, nil, 503, interlock.CodeNotOwner},
		{"a read is refused", "GET", true, nil, nil, 503, interlock.CodeNotOwner},
		{"the owner is known to be silent", "POST", false, silent, nil, 503, interlock.CodeNotOwner},
	} {
		t.Run(c.name, func(t *testing.T) {
			members := serveMembers(t, nil)
			m := members[0]
			addr, came := hold(t)
			if c.refusing {
				l := listen(t)
				addr = l.Addr().String()
				l.Close()
			}
			m.others[1].Store(&member{http: "http://" + addr, grpc: addr})
			if c.before != nil {
				c.before(m, members[1])
			}
			if c.then != nil {
				go func() {
					<-came
					c.then(m, members[1])
					m.forward.Follow(m.Locations())
				}()
			}
			path, body := "/v1/keys", ""
			if c.method == "POST" {
				path, body = "/v1/leases", `{"claims":[{"key":"k"}],"wait_ms":60000}`
			}
			r, err := http.NewRequestWithContext(t.Context(), c.method, m.http+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Interlock-Namespace", namespaceOf(1))
			r.Header.Set("Content-Type", "application/json")
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			var answer struct {
				Code   interlock.Code  `json:"code"`
				Active json.RawMessage `json:"active"`
			}
			if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != c.status || answer.Code != c.code {
				t.Errorf("%d %s, want %d %s", got.StatusCode, answer.Code, c.status, c.code)
			}
			if answer.Active != nil {
				t.Errorf("the refusal names %s as active", answer.Active)
			}
			if c.status == 200 && got.Header.Get("Interlock-Owner") != members[1].http {
				t.Errorf("answered by %q", got.Header.Get("Interlock-Owner"))
			}
		})
	}
}

// A relayed stream ends when its owner is no owner any more, and a server is not ready without it.
func TestRelaysEnd(t *testing.T) {
	members := serveMembers(t, nil)
	m := members[0]
	if status := readiness(t, m); status != 200 {
		t.Errorf("before: /readyz is %d", status)
	}
	cfg := client.Config{Addrs: []string{m.grpc}, Namespace: interlock.Namespace(namespaceOf(1))}
	c, err := client.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	m.others[1].Store(nil)
	m.forward.Follow(m.Locations())
	m.others[1].Store(members[1])
	if _, err := c.Acquire(t.Context(), client.Request{Keys: []interlock.Key{"k"}}); err != nil {
		t.Errorf("after the relay was cut: %v", err)
	}
	m.silent.Store(true)
	if status := readiness(t, m); status != 503 {
		t.Errorf("an owner does not answer: /readyz is %d", status)
	}
	_, err = client.Dial(t.Context(), cfg)
	if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeNotOwner {
		t.Errorf("a stream to a silent owner: %v", err)
	}
}

func readiness(t *testing.T, m *member) int {
	t.Helper()
	got, err := http.Get(m.http + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	return got.StatusCode
}

// A probe is answered by a server, and ends if a line accepts and holds.
func TestProbe(t *testing.T) {
	members := serveMembers(t, nil)
	held, _ := hold(t)
	closed := listen(t)
	closed.Close()
	f := server.NewForwarder(nil, nil)
	web := strings.TrimPrefix(members[0].http, "http://")
	woken := make(chan struct{}, 1)
	members[0].forward.Woken = func() { woken <- struct{}{} }
	if err := f.Wake(t.Context(), server.Active{HTTP: "http://" + web}); err != nil || len(woken) != 1 {
		t.Errorf("a server was not woken: %v", err)
	}
	for _, c := range []struct {
		name, http, grpc string
		answers          bool
	}{
		{"a server", web, members[0].grpc, true},
		{"no session port", web, closed.Addr().String(), false},
		{"no HTTP", closed.Addr().String(), members[0].grpc, false},
		{"held", held, members[0].grpc, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := f.Probe(ctx, server.Active{HTTP: "http://" + c.http, GRPC: c.grpc})
		cancel()
		if (err == nil) != c.answers {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, isNet := errors.AsType[net.Error](err); err != nil && !isNet {
			t.Errorf("%s: %v is no error of the network", c.name, err)
		}
	}
}
