package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

func TestHolderGetsThrough(t *testing.T) {
	r := newRig(t, routes)
	l := r.acquire("billing-7", "account:12345")
	a := r.call("POST", "/accounts/12345/fees?dry=no", "35.00",
		headerLease, l.id, headerFence, l.fence,
		"Authorization", "Bearer mine", "Cookie", "session=mine", "X-HTTP-Method-Override", "DELETE",
		"Interlock-Agent", "root", "Interlock_Fence", "999", "X-Real_IP", "10.0.0.1", "Accept", "text/plain")
	if a.status != 200 || a.body != "done" {
		t.Fatalf("%+v", a)
	}
	calls := r.api.calls()
	if len(calls) != 1 {
		t.Fatalf("the API saw %v", calls)
	}
	c := calls[0]
	if c.method != "POST" || c.host != r.api.Listener.Addr().String() || c.uri != "/v2/accounts/12345/fees?dry=no" ||
		c.body != "35.00" {
		t.Errorf("the API saw %s %s%s %q", c.method, c.host, c.uri, c.body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + secret, "Interlock-Fence": l.fence, "Interlock-Key": "account:12345",
		"Interlock-Agent": "billing-7",
		"Accept":          "text/plain", "Interlock-Lease": "", "Cookie": "", "X-Http-Method-Override": "",
		"Interlock_fence": "", "X-Real_ip": "",
	} {
		if got := strings.Join(c.header.Values(name), ","); got != want {
			t.Errorf("the API saw %s: %q, want %q", name, got, want)
		}
	}

	r.front.Close() // waits until the call is recorded
	var record Record
	if err := json.Unmarshal([]byte(r.log.text()), &record); err != nil {
		t.Fatalf("%v in %s", err, r.log.text())
	}
	if record.Agent != "billing-7" || record.Key != "account:12345" || record.Fence == 0 || record.Status != 200 ||
		record.Code != "" ||
		record.Method != "POST" || record.Path != "/accounts/12345/fees" || record.Time.IsZero() {
		t.Errorf("recorded %s", r.log.text())
	}
	if strings.Contains(r.log.text(), l.id) || strings.Contains(r.log.text(), secret) {
		t.Errorf("the record shows a secret: %s", r.log.text())
	}
}

// The late agent is refused wherever its lease stands, its successor is not.
func TestZombieIsRefused(t *testing.T) {
	r := newRig(t, routes)
	zombie := r.acquire("billing-7", "account:1")
	r.wants(r.call("POST", "/accounts/1/fees", "1", headerLease, zombie.id), 200, "", true)
	r.release(zombie)
	r.wants(r.call("POST", "/accounts/1/fees", "1", headerLease, zombie.id), 410, "released", false)
	next := r.acquire("support-2", "account:1")
	r.wants(
		r.call("POST", "/accounts/1/fees", "1", headerLease, zombie.id, headerFence, zombie.fence), 410, "released", false,
	)
	// It cannot pass as the other with a fence that every agent may see.
	r.wants(
		r.call("POST", "/accounts/1/fees", "1", headerLease, zombie.id, headerFence, next.fence), 410, "released", false,
	)
	r.wants(r.call("POST", "/accounts/1/fees", "1", headerLease, next.id, headerFence, zombie.fence), 409, "fenced", false)
	r.wants(r.call("POST", "/accounts/1/fees", "1", headerLease, next.id, headerFence, next.fence), 200, "", true)

	r.ask("/v1/revocations", map[string]any{"key": "account:1", "fence": next.fence, "reason": "test"})
	third := r.acquireWaiting("fraud-1", "account:1")
	r.wants(r.call("POST", "/accounts/1/fees", "1", headerLease, next.id), 410, "revoked", false)
	r.wants(r.call("POST", "/accounts/1/fees", "1", headerLease, third.id), 200, "", true)
}

// acquireWaiting waits for a grace to end.
func (r *rig) acquireWaiting(agent, key string) lease {
	r.t.Helper()
	return r.ask(
		"/v1/leases", map[string]any{"agent": agent, "claims": []map[string]string{{"key": key}}, "wait_ms": 30000},
	)
}

func TestWhatIsDemanded(t *testing.T) {
	r := newRig(t, routes)
	account := r.acquire("a", "account:1")
	repo := r.acquire("b", "repo:web")
	reader := r.ask("/v1/leases", map[string]any{"claims": []map[string]string{{"key": "account:3", "mode": "shared"}}})
	for _, tt := range []struct {
		name         string
		method, path string
		headers      []string
		status       int
		code         string
	}{
		{"open", "GET", "/accounts/1", nil, 200, ""},
		{"open, only asked about", "HEAD", "/accounts/1", nil, 200, ""},
		{"no lease", "POST", "/accounts/1/fees", nil, 428, "lease_required"},
		{"no id", "POST", "/accounts/1/fees", []string{headerLease, "l_1"}, 400, "invalid_id"},
		{
			"two leases", "POST", "/accounts/1/fees",
			[]string{headerLease, account.id, headerLease, repo.id},
			400,
			"invalid_request",
		},
		{"no fence", "POST", "/accounts/1/fees", []string{headerLease, account.id, headerFence, "x"}, 400, "invalid_request"},
		{
			"fence zero", "POST", "/accounts/1/fees",
			[]string{headerLease, account.id, headerFence, "0"},
			400,
			"invalid_request",
		},
		{
			"never given out", "POST", "/accounts/1/fees",
			[]string{headerLease, "l_00000000000000000000000000000000"},
			404,
			"unknown_lease",
		},
		{"of another key", "POST", "/accounts/2/fees", []string{headerLease, account.id}, 409, "fenced"},
		{"only shared", "POST", "/accounts/3/fees", []string{headerLease, reader.id}, 409, "fenced"},
		{"below what is held", "PUT", "/files/web/src/auth.ts", []string{headerLease, repo.id}, 200, ""},
		{"beside what is held", "PUT", "/files/web2/src/auth.ts", []string{headerLease, repo.id}, 409, "fenced"},
		{"no key", "PUT", "/files/web/%20", []string{headerLease, repo.id}, 400, "invalid_key"},
		{"no such path", "POST", "/transfers", []string{headerLease, account.id}, 403, "forbidden"},
		{"the root", "GET", "/", nil, 403, "forbidden"},
		{"another method", "DELETE", "/accounts/1", nil, 405, "method_not_allowed"},
		{"trace", "TRACE", "/accounts/1", nil, 400, "unsupported"},
		{
			"another protocol", "GET", "/accounts/1",
			[]string{"Connection", "Upgrade", "Upgrade", "websocket"},
			400,
			"unsupported",
		},
		{"a page", "GET", "/accounts/1", []string{"Origin", "http://evil.example"}, 403, "foreign_host"},
		{"a page's picture", "GET", "/accounts/1", []string{"Sec-Fetch-Site", "cross-site"}, 403, "foreign_host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.t = t
			r.wants(r.call(tt.method, tt.path, "", tt.headers...), tt.status, tt.code, tt.status == 200)
		})
	}
	t.Run("another name", func(t *testing.T) {
		q, err := http.NewRequestWithContext(t.Context(), "GET", r.front.URL+"/accounts/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = "evil.example"
		res, err := r.front.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 403 || res.Header.Get(headerRefused) != "foreign_host" {
			t.Error(res.Status)
		}
	})
}

// When it cannot be known, nothing goes through, and the answer states it.
func TestFailsClosed(t *testing.T) {
	r := newRig(t, routes)
	l := r.acquire("a", "account:1")
	r.api.CloseClientConnections()
	r.api.Close()
	a := r.call("POST", "/accounts/1/fees", "", headerLease, l.id)
	r.wants(a, 502, "unreachable", false)
	if strings.Contains(a.body, r.api.Listener.Addr().String()) {
		t.Errorf("the answer shows where the API is: %s", a.body)
	}
	r.interlock.CloseClientConnections()
	r.interlock.Close()
	r.wants(r.call("POST", "/accounts/1/fees", "", headerLease, l.id), 503, "unreachable", false)
	r.front.Close()
	if strings.Contains(r.log.text(), l.id) || !strings.Contains(r.log.text(), `"code":"unreachable"`) {
		t.Errorf("the record shows a lease: %s", r.log.text())
	}
}

func TestAnswerOfTheAPI(t *testing.T) {
	r := newRig(t, routes)
	l := r.acquire("a", "account:1")

	// Its answer is forwarded, without headers that would let the caller bypass the proxy.
	r.api.answers(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Set-Cookie", "session=root")
		w.Header().Set("X-Echo", q.Header.Get("Authorization"))
		w.Header().Set("X-Plain", "yes")
		w.Header().Set(headerRefused, "held")
		w.WriteHeader(http.StatusTeapot)
	})
	a := r.call("POST", "/accounts/1/fees", "", headerLease, l.id)
	r.wants(a, http.StatusTeapot, "", true)
	if a.header.Get("Set-Cookie") != "" || a.header.Get("X-Echo") != "" || a.header.Get("X-Plain") != "yes" {
		t.Errorf("the caller got %v", a.header)
	}

	// An answer that breaks off is no refusal.
	r.api.answers(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	r.wants(r.call("POST", "/accounts/1/fees", "", headerLease, l.id), 502, "outcome_unknown", true)

	// Streams go on as they come.
	rest := make(chan struct{})
	r.api.answers(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		<-rest
		_, _ = io.WriteString(w, "two\n")
	})
	res, err := r.front.Client().Get(r.front.URL + "/accounts/1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 4)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "one\n" {
		t.Errorf("%q %v", first, err)
	}
	close(rest)
	if more, err := io.ReadAll(res.Body); err != nil || string(more) != "two\n" {
		t.Errorf("%q %v", more, err)
	}
}

func TestRecordsAreBounded(t *testing.T) {
	r := newRig(t, routes)
	r.wants(r.call("GET", "/"+strings.Repeat("x", 10*maxRecorded), ""), 403, "forbidden", false)
	r.front.Close()
	var record Record
	if err := json.Unmarshal([]byte(r.log.text()), &record); err != nil || len(record.Path) > maxRecorded+10 ||
		record.Code != "forbidden" {
		t.Errorf("%v: recorded %d bytes of path", err, len(record.Path))
	}
}

func TestBounds(t *testing.T) {
	r := newRig(
		t,
		strings.Replace(routes, `"max_body_bytes": 1000`, `"max_body_bytes": 1000, "max_calls": 1, "timeout_ms": 60000`, 1),
	)
	l := r.acquire("a", "account:1")
	r.wants(r.call("POST", "/accounts/1/fees", strings.Repeat("x", 1000), headerLease, l.id), 200, "", true)
	r.wants(r.call("POST", "/accounts/1/fees", strings.Repeat("x", 1001), headerLease, l.id), 413, "body_too_large", false)

	// One call too many.
	arrived, rest := make(chan struct{}), make(chan struct{})
	r.api.answers(func(http.ResponseWriter, *http.Request) { close(arrived); <-rest })
	first := make(chan answer)
	go func() { first <- r.call("GET", "/accounts/1", "") }()
	<-arrived
	if a := r.call("GET", "/accounts/1", ""); a.status != 503 || a.code != "overloaded" ||
		a.header.Get("Retry-After") != "1" {
		t.Errorf("%+v", a)
	}
	close(rest)
	r.wants(<-first, 200, "", true)
}

// A body without a declared length is cut off. The API gets its part of it at some time later.
func TestBoundOfStreams(t *testing.T) {
	r := newRig(t, routes)
	l := r.acquire("a", "account:1")
	q, err := http.NewRequestWithContext(
		t.Context(), "POST", r.front.URL+"/accounts/1/fees", io.MultiReader(strings.NewReader(strings.Repeat("x", 5000))),
	)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set(headerLease, l.id)
	res, err := r.front.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("answered %d", res.StatusCode)
	}
	r.front.Close()
	r.api.Close() // waits until it has it
	for _, c := range r.api.calls() {
		if len(c.body) > 1000 {
			t.Errorf("the API got %d bytes", len(c.body))
		}
	}
}

func TestTimeout(t *testing.T) {
	r := newRig(t, strings.Replace(routes, `"max_body_bytes": 1000`, `"timeout_ms": 50`, 1))
	l := r.acquire("a", "account:1")
	r.api.answers(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	r.wants(r.call("POST", "/accounts/1/fees", "", headerLease, l.id), 504, "outcome_unknown", true)
}

// holdUp lets the API take its time with calls under a fence: arrived is closed when
// the first is there, and it is answered when rest is closed. Another call that
// comes before that is an error.
func (r *rig) holdUp(fence string) (arrived, rest chan struct{}) {
	arrived, rest = make(chan struct{}), make(chan struct{})
	r.api.answers(func(_ http.ResponseWriter, q *http.Request) {
		if q.Header.Get(headerFence) == fence {
			close(arrived)
			<-rest
			return
		}
		select {
		case <-rest:
		default:
			r.t.Error("a call under another fence came while one was under way")
		}
	})
	return arrived, rest
}

// wait returns when a call under a fence waits for its turn at account:1, or had it.
func (r *rig) wait(fence string) {
	for {
		r.proxy.turns.mu.Lock()
		o := r.proxy.turns.keys["account:1"]
		there := o != nil && fmt.Sprint(o.highest) == fence
		r.proxy.turns.mu.Unlock()
		if there {
			return
		}
		runtime.Gosched()
	}
}

// The next holder's call waits until the API has done with the one before, also when
// its caller has left.
func TestNextHolderWaits(t *testing.T) {
	r := newRig(t, routes)
	first := r.acquire("a", "account:1")
	arrived, rest := r.holdUp(first.fence)
	ctx, leave := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, "POST", r.front.URL+"/accounts/1/fees", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set(headerLease, first.id)
	left := make(chan error)
	go func() {
		_, err := r.front.Client().Do(q)
		left <- err
	}()
	<-arrived
	leave()
	if err := <-left; err == nil {
		t.Error("the caller did not leave")
	}
	r.release(first)
	next := r.acquire("b", "account:1")
	done := make(chan answer)
	go func() { done <- r.call("POST", "/accounts/1/fees", "", headerLease, next.id) }()
	r.wait(next.fence)
	close(rest)
	if a := <-done; a.status != 200 {
		t.Errorf("%+v", a)
	}
	calls := r.api.calls()
	if len(calls) != 2 || calls[0].header.Get(headerFence) != first.fence ||
		calls[1].header.Get(headerFence) != next.fence {
		t.Errorf("the API saw %v", calls)
	}
}

// A caller that loses its lease while it waits for its turn does not get it.
func TestLostWhileWaiting(t *testing.T) {
	r := newRig(t, routes)
	first := r.acquire("a", "account:1")
	arrived, rest := r.holdUp(first.fence)
	done := make(chan answer, 2)
	go func() { done <- r.call("POST", "/accounts/1/fees", "", headerLease, first.id) }()
	<-arrived
	r.release(first)
	next := r.acquire("b", "account:1")
	go func() { done <- r.call("POST", "/accounts/1/fees", "", headerLease, next.id) }()
	r.wait(next.fence)
	r.release(next)
	close(rest)
	one, other := <-done, <-done
	if one.status+other.status != 200+410 || one.code+other.code != "released" {
		t.Errorf("%+v and %+v", one, other)
	}
	if calls := r.api.calls(); len(calls) != 1 {
		t.Errorf("the API saw %v", calls)
	}
}

// Calls that wait at one key leave room for those at others.
func TestWaitingIsBounded(t *testing.T) {
	r := newRig(t, strings.Replace(routes, `"max_body_bytes": 1000`, `"max_body_bytes": 1000, "max_calls": 4`, 1))
	first, other := r.acquire("a", "account:1"), r.acquire("c", "account:2")
	arrived, rest := make(chan struct{}), make(chan struct{})
	r.api.answers(func(_ http.ResponseWriter, q *http.Request) {
		if q.Header.Get(headerFence) == first.fence {
			close(arrived)
			<-rest
		}
	})
	done := make(chan answer, 2)
	go func() { done <- r.call("POST", "/accounts/1/fees", "", headerLease, first.id) }()
	<-arrived
	r.release(first)
	next := r.acquire("b", "account:1")
	go func() { done <- r.call("POST", "/accounts/1/fees", "", headerLease, next.id) }()
	r.wait(next.fence)
	if a := r.call("POST", "/accounts/1/fees", "", headerLease, next.id); a.status != 503 || a.code != "overloaded" ||
		a.header.Get("Retry-After") != "1" {
		t.Errorf("%+v", a)
	}
	if a := r.call("POST", "/accounts/2/fees", "", headerLease, other.id); a.status != 200 {
		t.Errorf("%+v", a)
	}
	close(rest)
	for range 2 {
		if a := <-done; a.status != 200 {
			t.Errorf("%+v", a)
		}
	}
}
