//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// queued is a rig with a queue that retries failed tasks at once.
func queued(t *testing.T) *rig {
	r := newRig(t)
	r.must("queue", "set", "q", "--backoff", "1ms", "--grace", "300ms")
	return r
}

// submit submits a task and returns its id.
func (r *rig) submit(args ...string) string {
	r.t.Helper()
	id, _, _ := strings.Cut(r.must(append([]string{"task", "create", "q"}, args...)...), "\n")
	return strings.TrimSpace(id)
}

// A worker that is killed is noticed by its silence: the next one gets its task as attempt 2, under
// a higher fence, and later reports of the dead one do not count.
func TestWorkerKilled(t *testing.T) {
	r := queued(t)
	id := r.submit("--key", "account:1")
	first := r.start(
		"task", "work", "q", "--agent", "first", "--ttl", "5s", "--", "sh", "-c",
		`echo "has $INTERLOCK_ATTEMPT $INTERLOCK_FENCE $INTERLOCK_LEASE" >&2; read x; exec sleep 1000`,
	)
	var attempt, fence, nextFence int
	var lease string
	if _, err := fmt.Sscanf(first.expect("has "), "has %d %d %s", &attempt, &fence, &lease); err != nil {
		t.Fatal(err)
	}
	first.signal(syscall.SIGKILL)
	first.ends(cli.ExitSignal + int(syscall.SIGKILL))

	second := r.start(
		"task", "work", "q", "--agent", "second", "--", "sh", "-c",
		`echo "has $INTERLOCK_ATTEMPT $INTERLOCK_FENCE" >&2; echo by second`,
	)
	if _, err := fmt.Sscanf(second.expect("has "), "has %d %d", &attempt, &nextFence); err != nil {
		t.Fatal(err)
	}
	if attempt != 2 || nextFence <= fence {
		t.Errorf("attempt %d under fence %d after fence %d", attempt, nextFence, fence)
	}
	second.expect("done")
	second.signal(syscall.SIGTERM)
	second.ends(0)
	if out, code := r.do("task", "ack", "by first", "--lease", lease); code != cli.ExitLost {
		t.Errorf("the late acknowledgement: exit code %d\n%s", code, out)
	}
	if out := r.must("task", "wait", id); out != "by second\n" {
		t.Errorf("the result is %q", out)
	}
	if out := r.must("task", "get", id); !strings.Contains(out, "session_expired") || !strings.Contains(out, "first") {
		t.Errorf("it does not tell of the first attempt:\n%s", out)
	}
}

// A lease that is lost ends the command and all of its group, and nothing is said of
// the task any more.
func TestWorkerLosesItsLease(t *testing.T) {
	for _, tt := range []struct{ name, script, says string }{
		{
			"a command that tidies up", `trap 'echo tidied up >&2; exit 0' TERM; echo ready >&2; sleep 1000 & wait`,
			"tidied up",
		},
		{"one whose children ignore it", `sh -c 'trap "" TERM; echo ready >&2; sleep 1000' & wait`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := queued(t)
			r.submit("--key", "account:1")
			p := r.start("task", "work", "q", "--ttl", "5s", "--", "sh", "-c", tt.script)
			p.expect("ready")
			r.must("queue", "pause", "q")
			r.must("lease", "revoke", "account:1", "-y", "--reason", "stuck since noon")
			if tt.says != "" {
				p.expect(tt.says)
			}
			if line := p.expect(" lost"); !strings.Contains(line, "stuck since noon") {
				t.Errorf("it says %q", line)
			}
			p.signal(syscall.SIGTERM)
			p.ends(0)
		})
	}
}

// A worker that is to stop takes nothing new and lets its command end.
func TestWorkerDrains(t *testing.T) {
	r := queued(t)
	gate := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	one := r.submit()
	p := r.start("task", "work", "q", "--", "sh", "-c", fmt.Sprintf("echo ready >&2; read x < %s; echo done $x", gate))
	p.expect("ready")
	p.signal(syscall.SIGTERM)
	two := r.submit()
	if err := os.WriteFile(gate, []byte("well\n"), 0); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	if out := r.must("task", "wait", one); out != "done well\n" {
		t.Errorf("the first: %q", out)
	}
	if out := r.must("task", "get", two); !strings.Contains(out, "waits for a worker") {
		t.Errorf("the second:\n%s", out)
	}
}

// One that takes too long, or gets a second signal, returns its tasks.
func TestWorkerIsHurried(t *testing.T) {
	for _, tt := range []struct {
		name  string
		args  []string
		again bool
	}{{"by time", []string{"--drain", "100ms"}, false}, {"by a second signal", nil, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := queued(t)
			id := r.submit()
			p := r.start(append(
				append([]string{"task", "work", "q"}, tt.args...), "--", "sh", "-c", "echo ready >&2; exec sleep 1000",
			)...)
			p.expect("ready")
			p.signal(syscall.SIGTERM)
			p.expect("no new tasks are taken")
			if tt.again {
				p.signal(syscall.SIGTERM)
			}
			if out := p.ends(0); !strings.Contains(out, "the worker was stopped") {
				t.Errorf("it said:\n%s", out)
			}
			if out := r.must("task", "get", id); !strings.Contains(out, "waits for a worker") {
				t.Errorf("the task is not given back:\n%s", out)
			}
		})
	}
}

// A server that comes back within the ttl finds its workers at work, and those that
// are idle ask again.
func TestWorkerSurvivesARestart(t *testing.T) {
	r := queued(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	id := r.submit("--key", "account:1")
	p := r.start("task", "work", "q", "--concurrency", "2", "--", "sh", "-c", fmt.Sprintf(
		`echo "$INTERLOCK_KEYS is ready" >&2; test account:2 = "$INTERLOCK_KEYS" || read x < %s; echo well`, gate,
	))
	p.expect("account:1 is ready")
	r.server.Kill()
	r.restart()
	r.submit("--key", "account:2")
	p.expect("account:2 is ready")
	if err := os.WriteFile(gate, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if out := r.must("task", "wait", id); out != "well\n" {
		t.Errorf("the result is %q", out)
	}
	if out := r.must("task", "get", id); !strings.Contains(out, "in attempt 1") {
		t.Errorf("it was not the first attempt:\n%s", out)
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

// The outcome of a command that ended while the server was away is reported once it is back: no
// other worker gets the task as long as the worker's session lives.
func TestWorkerTellsAfterARestart(t *testing.T) {
	for _, tt := range []struct{ name, end, stands string }{
		{"success", "echo well", "in attempt 1"},
		{"failure", `test "$INTERLOCK_ATTEMPT" = 2 && echo well`, "in attempt 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := queued(t)
			gate := filepath.Join(t.TempDir(), "gate")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			id := r.submit("--key", "account:1")
			p := r.start(
				"task", "work", "q", "--", "sh", "-c",
				fmt.Sprintf(`echo ready >&2; test "$INTERLOCK_ATTEMPT" = 2 || read x < %s; %s`, gate, tt.end),
			)
			p.expect("ready")
			r.server.Kill()
			if err := os.WriteFile(gate, []byte("\n"), 0); err != nil {
				t.Fatal(err)
			}
			p.expect("the outcome is reported when the server is back")
			r.restart()
			if out := r.must("task", "wait", "--wait", "10m", id); out != "well\n" {
				t.Errorf("the result is %q", out)
			}
			if out := r.must("task", "get", id); !strings.Contains(out, tt.stands) {
				t.Errorf("want %q:\n%s", tt.stands, out)
			}
			p.signal(syscall.SIGTERM)
			p.ends(0)
		})
	}
}

// A worker that is to stop while the server is away does not wait for it.
func TestWorkerStopsWithoutItsServer(t *testing.T) {
	r := queued(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	r.submit()
	p := r.start("task", "work", "q", "--drain", "1s", "--", "sh", "-c", fmt.Sprintf("echo ready >&2; read x < %s", gate))
	p.expect("ready")
	r.server.Kill()
	if err := os.WriteFile(gate, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	p.expect("the outcome is reported when the server is back")
	p.signal(syscall.SIGTERM)
	p.expect(" lost")
	p.ends(0)
}

// A task is handed out once more when its assignment was not received: the worker's session would
// keep it for ever.
func TestWorkerHearsOfALostHandout(t *testing.T) {
	r := queued(t)
	id := r.submit("--key", "account:1")
	var lost atomic.Bool
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		out := q.Clone(q.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", r.server.HTTP, ""
		res, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil ||
			strings.HasSuffix(q.URL.Path, "/pull") && bytes.Contains(body, []byte(id)) && lost.CompareAndSwap(false, true) {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(body)
	}))
	defer door.Close()
	p := startProc(t, append(r.env, "INTERLOCK_URL="+door.URL), "task", "work", "q", "--", "echo", "well")
	if out := r.must("task", "wait", "--wait", "10m", id); out != "well\n" {
		t.Errorf("the result is %q", out)
	}
	if out := r.must("task", "get", id); !strings.Contains(out, "in attempt 1") || !lost.Load() {
		t.Errorf("the answer was lost: %t\n%s", lost.Load(), out)
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
}
