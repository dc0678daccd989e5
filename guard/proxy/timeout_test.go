package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A call without a body that takes too long is answered so, and what comes on the same
// connection later is carried out, not only answered.
func TestConnectionOutlivesTimeout(t *testing.T) {
	r := newRig(t, strings.Replace(routes, `"demand": "open"`, `"demand": "open", "timeout_ms": 50`, 1))
	r.api.answers(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	r.wants(r.call("GET", "/accounts/1", ""), 504, "outcome_unknown", true)
	r.api.answers(nil)
	l := r.acquire("a", "account:1")
	r.wants(r.call("POST", "/accounts/1/fees", "", headerLease, l.id), 200, "", true)
}

// A caller that waits too long for its turn gets an error.
func TestTimeoutWhileWaiting(t *testing.T) {
	r := newRig(t, strings.Replace(routes, `"routes": [`,
		`"routes": [{"methods": ["DELETE"], "path": "/accounts/{id:int}", "key": "account:{id}", "demand": "lease", "timeout_ms": 50},`,
		1))
	arrived, rest := make(chan struct{}), make(chan struct{})
	r.api.answers(func(http.ResponseWriter, *http.Request) { close(arrived); <-rest })
	first := r.acquire("a", "account:1")
	done := make(chan answer)
	go func() { done <- r.call("POST", "/accounts/1/fees", "", headerLease, first.id) }()
	<-arrived
	r.release(first)
	next := r.acquire("b", "account:1")
	if a := r.call("DELETE", "/accounts/1", "", headerLease, next.id); a.status != 503 || a.code != "unreachable" {
		t.Errorf("%+v", a)
	}
	close(rest)
	r.wants(<-done, 200, "", true)
}

// An answer that comes in pieces is taken to its end also when its caller has left: the
// API is at work until then.
func TestAnswerOutlivesItsCaller(t *testing.T) {
	r := newRig(t, routes)
	l := r.acquire("a", "account:1")
	left, ended := make(chan struct{}), make(chan error, 1)
	r.api.answers(func(w http.ResponseWriter, q *http.Request) {
		control := http.NewResponseController(w)
		_, err := io.WriteString(w, "one\n")
		err = errors.Join(err, control.Flush())
		<-left
		piece := strings.Repeat("x", 64<<10)
		for range 200 {
			_, e := io.WriteString(w, piece)
			err = errors.Join(err, e, q.Context().Err())
		}
		ended <- err
	})
	ctx, leave := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, "POST", r.front.URL+"/accounts/1/fees", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set(headerLease, l.id)
	res, err := r.front.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	leave()
	res.Body.Close()
	close(left)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
