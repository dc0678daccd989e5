package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

// callFile is a file of calls, as a guard opens it.
func callFile(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// copyFile copies what a guard that is killed at this moment leaves.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A guard dies while the API is at a call. The next one lets the same holder go on, and
// no later one before the timeout of that call has passed.
func TestCallsOutliveTheGuard(t *testing.T) {
	const quick = `"routes": [{"methods": ["DELETE"], "path": "/accounts/{id:int}", "key": "account:{id}", "demand": "lease", "timeout_ms": 300},`
	r := newRig(t, strings.Replace(routes, `"routes": [`, quick, 1))
	dir := t.TempDir()
	first, copied := filepath.Join(dir, "first"), filepath.Join(dir, "copied")
	r.options.Calls = callFile(t, first)
	r.start()
	arrived, rest := make(chan struct{}), make(chan struct{})
	r.api.answers(func(http.ResponseWriter, *http.Request) { close(arrived); <-rest })
	holder := r.acquire("a", "account:1")
	front, done := r.front, make(chan error, 1)
	go func() {
		q, _ := http.NewRequestWithContext(t.Context(), "POST", front.URL+"/accounts/1/fees", nil)
		q.Header.Set(headerLease, holder.id)
		res, err := front.Client().Do(q)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		done <- err
	}()
	<-arrived
	r.api.calls()
	r.api.answers(nil)
	copyFile(t, first, copied)

	// The call that is under way may take a minute.
	r.options.Calls = callFile(t, copied)
	r.start()
	r.wants(r.call("DELETE", "/accounts/1", "", headerLease, holder.id), 200, "", true)
	other := r.acquire("c", "account:2")
	r.wants(r.call("DELETE", "/accounts/2", "", headerLease, other.id), 200, "", true)
	r.release(holder)
	next := r.acquire("b", "account:1")
	r.wants(r.call("DELETE", "/accounts/1", "", headerLease, next.id), 503, "unreachable", false)
	// Nor does it go when that guard is killed and started as well.
	again := filepath.Join(dir, "again")
	copyFile(t, copied, again)
	r.options.Calls = callFile(t, again)
	r.start()
	r.wants(r.call("DELETE", "/accounts/1", "", headerLease, next.id), 503, "unreachable", false)

	// When it has ended, nothing is held.
	close(rest)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	front.Close()
	r.options.Calls = callFile(t, first)
	r.start()
	r.wants(r.call("DELETE", "/accounts/1", "", headerLease, next.id), 200, "", true)
}

// The key is free when the timeout of the call has passed, and its slot is, too.
func TestHeldKeyIsFreed(t *testing.T) {
	r := newRig(t, routes)
	l, _, err := openLedger(callFile(t, filepath.Join(t.TempDir(), "calls")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.begin(openCall{Key: "account:1", Fence: 1, Timeout: 50}); err != nil {
		t.Fatal(err)
	}
	r.options.Calls = l.file
	lease := r.acquire("a", "account:9", "account:1")
	r.release(lease)
	lease = r.acquire("b", "account:1")
	r.start()
	r.wants(r.call("POST", "/accounts/1/fees", "", headerLease, lease.id), 200, "", true)
	r.front.Close() // a call is noted as ended after its answer
	if _, open, err := openLedger(l.file); err != nil || len(open) != 0 {
		t.Errorf("open calls: %v (%v), want none", open, err)
	}
}

// Slots are used again, hold the longest key, and a file of something else is refused.
func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	l, _, err := openLedger(callFile(t, path))
	if err != nil {
		t.Fatal(err)
	}
	long := openCall{Key: interlock.Key(strings.Repeat("\x01", interlock.MaxKeyBytes)), Fence: 1<<64 - 1, Timeout: 1}
	for range 3 {
		a, errA := l.begin(long)
		b, errB := l.begin(openCall{Key: "b", Fence: 2, Timeout: 2})
		if err := errors.Join(errA, errB, l.end(a)); err != nil || a+b != 1 {
			t.Fatalf("slots %d and %d: %v", a, b, err)
		}
		again, open, err := openLedger(l.file)
		if err != nil || len(open) != 1 || open[0].Key != "b" || open[0].Fence != 2 || len(again.free) != 1 {
			t.Fatalf("read %+v: %v", open, err)
		}
		if err := l.end(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"x", `+{"key":"a","fence":"1","timeout_ms":5}`, "+{}\n", "{\"routes\": []}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openLedger(callFile(t, path)); err == nil {
			t.Errorf("%q is taken for calls of a guard", text)
		}
	}
}
