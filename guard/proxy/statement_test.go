package proxy

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
)

const byStatement = `{
  "routes": [{"methods": ["POST"], "path": "/accounts/{id:int}/fees", "key": "account:{id}", "demand": "statement"}],
  "statements": {}
}`

// sign gets the signed fence of a lease.
func (r *rig) sign(l lease) string {
	r.t.Helper()
	res, err := http.Post(r.interlock.URL+"/v1/leases/"+l.id+"/statement", "application/json", strings.NewReader("{}"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	var answer struct{ Statement string }
	if err := json.Unmarshal(text, &answer); err != nil || answer.Statement == "" {
		r.t.Fatalf("%d %s", res.StatusCode, text)
	}
	return answer.Statement
}

func TestStatements(t *testing.T) {
	r := newRig(t, byStatement)
	const target = "/accounts/1/fees"
	first := r.acquire("billing-7", "account:1")
	shown := r.sign(first)
	r.wants(r.call("POST", target, ""), 428, "lease_required", false)
	r.wants(r.call("POST", target, "", headerLease, first.id), 428, "lease_required", false)
	r.wants(r.call("POST", target, "", headerStatement, shown, headerStatement, shown), 400, "invalid_request", false)
	r.wants(r.call("POST", target, "", headerStatement, shown+"x"), 401, "invalid_statement", false)
	r.wants(r.call("POST", target, "", headerStatement, "x"), 401, "invalid_statement", false)
	r.wants(r.call("POST", "/accounts/2/fees", "", headerStatement, shown), 403, "foreign_fence", false)
	r.wants(r.call("POST", target, "", headerStatement, shown, headerFence, "999"), 409, "fenced", false)
	if a := r.call("POST", target, "", headerStatement, shown, headerFence, first.fence); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	calls := r.api.calls()
	if len(calls) != 1 || calls[0].header.Get(headerFence) != first.fence ||
		calls[0].header.Get(headerAgent) != "billing-7" || calls[0].header.Get(headerStatement) != "" {
		t.Errorf("the API saw %v", calls)
	}

	// It holds without Interlock until its successor was there, and then no more.
	r.release(first)
	next := r.sign(r.acquire("support-2", "account:1"))
	r.interlock.CloseClientConnections()
	r.interlock.Close()
	r.wants(r.call("POST", target, "", headerStatement, shown), 200, "", true)
	r.wants(r.call("POST", target, "", headerStatement, next), 200, "", true)
	r.wants(r.call("POST", target, "", headerStatement, shown), 409, "fenced", false)
	// No caller can make the proxy ask for each unknown key.
	r.wants(r.call("POST", target, "", headerStatement, "x"), 401, "invalid_statement", false)
}

func TestStatementsOfAnotherTime(t *testing.T) {
	ring := signed.NewRing()
	now := time.Now()
	sign := func(at time.Time) string {
		t.Helper()
		text, _, err := ring.Sign(&signed.Statement{
			Namespace: "default", Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}}, Fence: 7,
		}, at, signed.DefaultTTL)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	publish := func(at time.Time) {
		t.Helper()
		set, err := json.Marshal(ring.KeySet(at))
		if err == nil {
			err = os.WriteFile(file, set, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	publish(now)
	s := newStatements(&Statements{Namespace: "default", path: file}, nil)
	s.begun = now
	verify := func(text string, at time.Time, code interlock.Code, words string) {
		t.Helper()
		found, err := s.verify(t.Context(), text, "k", at)
		switch {
		case code == "" && err == nil && found.Fence == 7:
		case code != "" && errors.Is(err, &interlock.Error{Code: code}) && strings.Contains(err.Error(), words):
		default:
			t.Errorf("%v %v, want %s %s", found, err, code, words)
		}
	}
	verify(sign(now.Add(time.Millisecond)), now.Add(time.Second), "", "")
	verify(
		sign(now.Add(-time.Second)), now.Add(time.Second), interlock.CodeInvalidStatement, "before this guard started",
	)
	verify(sign(now), now.Add(signed.DefaultTTL+time.Second), interlock.CodeInvalidStatement, "expired")

	// A new key is looked for, once in a while.
	if _, err := ring.Rotate(now); err != nil {
		t.Fatal(err)
	}
	later := now.Add(between + time.Second)
	verify(sign(later), later, interlock.CodeInvalidStatement, "not in the key set") // the file has not got it
	publish(later)
	verify(sign(later), later, interlock.CodeInvalidStatement, "not in the key set") // asked a moment ago
	later = later.Add(between)
	verify(sign(later), later, "", "")
}
