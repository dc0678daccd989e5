//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// The guard is killed while the API is at a call. Its holder releases the lease, and the next
// holder's call does not reach the API through the next guard meanwhile.
func TestGuardHTTPKilled(t *testing.T) {
	url := "http://" + launchtest.Start(t, launch.Config{DataDir: t.TempDir()}).HTTP
	var calls atomic.Int64
	arrived, rest := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) == 1 {
			close(arrived)
			<-rest
		}
	}))
	defer api.Close()
	defer close(rest)
	config := filepath.Join(t.TempDir(), "guard.json")
	if err := os.WriteFile(config, []byte(`{"routes": [
		{"methods": ["POST"], "path": "/a", "key": "a", "demand": "lease"},
		{"methods": ["PUT"], "path": "/a", "key": "a", "demand": "lease", "timeout_ms": 300}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	post := func(path, body string) (id string) {
		t.Helper()
		res, err := http.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var answer struct{ Lease struct{ ID string } }
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
		}
		return answer.Lease.ID
	}
	start := func() (guard *proc, address string) {
		t.Helper()
		guard = startProc(
			t, append(cleanEnvironment(), "INTERLOCK_URL="+url), "guard", "http", "--config", config, "--upstream", api.URL,
			"--listen", "127.0.0.1:0",
		)
		_, address, found := strings.Cut(guard.expect("ready http="), "ready http=")
		if !found {
			t.Fatal("the guard is not ready")
		}
		return guard, "http://" + address
	}
	call := func(method, guard, lease string) (status int, text string, err error) {
		q, err := http.NewRequestWithContext(t.Context(), method, guard+"/a", nil)
		if err != nil {
			return 0, "", err
		}
		q.Header.Set("Interlock-Lease", lease)
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body), err
	}

	first, address := start()
	second := startProc(
		t, append(cleanEnvironment(), "INTERLOCK_URL="+url), "guard", "http", "--config", config, "--upstream", api.URL,
		"--listen", "127.0.0.1:0",
	)
	if out := second.ends(cli.ExitUsage); !strings.Contains(
		out, "another guard uses it: each needs one of its own: --calls FILE",
	) {
		t.Errorf("a second guard: %s", out)
	}
	const claim = `", "claims": [{"key": "a"}]}`
	holder := post("/v1/leases", `{"agent": "holder`+claim)
	broken := make(chan error, 1)
	go func() {
		_, _, err := call("POST", address, holder)
		broken <- err
	}()
	<-arrived
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-broken; err == nil {
		t.Error("the call through the killed guard was answered")
	}
	post("/v1/leases/"+holder+"/release", "{}")
	next := post("/v1/leases", `{"agent": "next`+claim)
	_, address = start()
	if status, text, err := call("PUT", address, next); err != nil || status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "did not end in time") {
		t.Errorf("the next holder's call: %d %v %s", status, err, text)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the API got %d calls, want the first alone", n)
	}
}
