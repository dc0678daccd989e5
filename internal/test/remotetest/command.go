package remotetest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// command is a process of the command line with all servers as its target.
type command struct {
	testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner // of its standard output
	errs  strings.Builder
}

// begin starts one, which is ended with the test.
func begin(t testing.TB, servers []*Instance, args ...string) *command {
	t.Helper()
	path := launchtest.Binary(t)
	c := &command{TB: t, cmd: exec.Command(path, args...)}
	c.cmd.Env = append(os.Environ(), "INTERLOCK_URL="+urlsOf(servers), "INTERLOCK_GRPC="+grpcsOf(servers))
	c.cmd.Stderr = &c.errs
	c.cmd.SysProcAttr = launch.Attributes()
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		if t.Failed() {
			t.Logf("interlock %s:\n%s", strings.Join(args, " "), c.errs.String())
		}
	})
	return c
}

func urlsOf(servers []*Instance) string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = "http://" + s.http
	}
	return strings.Join(list, ",")
}

func grpcsOf(servers []*Instance) string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.grpc
	}
	return strings.Join(list, ",")
}

// prints reads the next line of the output.
func (c *command) prints() string {
	c.Helper()
	if !c.lines.Scan() {
		c.Fatalf("%v: its output has ended", c.cmd.Args)
	}
	return c.lines.Text()
}

// MustCall makes a call that a server carries out.
func (s *Instance) MustCall(method, path, body string, v any) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := plain.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode >= 300 {
		s.Fatalf("%s %s: %d %s, %v", method, path, got.StatusCode, text, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		s.Fatal(err)
	}
}

// held is a key with its holders.
type held struct {
	Holders []struct {
		Fence        string
		HeartbeatAge int64 `json:"heartbeat_age_ms"`
	}
}

// CommandsOutliveTheirServer checks that commands which know both servers outlive the death of the active
// one, and its standstill with open connections: a command under a lease of 10 s, the attempt of a worker at a task,
// and a guard.
func CommandsOutliveTheirServer(t *testing.T, e Engine) {
	t.Run("Killed", func(t *testing.T) { commandsOutlive(t, e.URL("killed"), (*Instance).Kill) })
	t.Run("Paused", func(t *testing.T) {
		commandsOutlive(t, e.URL("paused"), func(s *Instance) { s.signal(launch.Stop) })
	})
}

func commandsOutlive(t *testing.T, at string, takeAway func(*Instance)) {
	active, standby := serveTwo(t, at, at)
	both := []*Instance{active, standby}
	var task struct{ Task struct{ ID, State string } }
	var lease struct{ Lease struct{ ID, Fence string } }
	active.MustCall(http.MethodPut, "/v1/queues/fees", `{}`, &struct{}{})
	active.MustCall(
		http.MethodPost, "/v1/tasks", `{"queue": "fees", "payload": 1, "claims": [{"key": "fee:1"}]}`, &task,
	)
	active.MustCall(http.MethodPost, "/v1/leases", `{"ttl_ms": 120000, "claims": [{"key": "guarded"}]}`, &lease)

	// The command shows the list that it inherits, and ends when it reads a line.
	run := begin(
		t, both, "run", "account:1", "--ttl", "10s", "--", "sh", "-c", `echo "$INTERLOCK_URL"; read line; echo "$line"`,
	)
	if urls := run.prints(); urls != urlsOf(both) {
		t.Errorf("the command inherits %s", urls)
	}
	done, running := filepath.Join(t.TempDir(), "done"), filepath.Join(t.TempDir(), "running")
	begin(
		t, []*Instance{standby, active}, "task", "work", "fees", "--ttl", "10s", "--", "sh", "-c",
		`echo x >>"$0"; while ! [ -e "$1" ]; do sleep 0.1; done; echo '{"charged": true}'`, running, done,
	)
	busy.Wait(t, "the worker to begin", func() bool { _, err := os.Stat(running); return err == nil })
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "charged")
	}))
	defer guarded.Close()
	config := filepath.Join(t.TempDir(), "guard.json")
	routes := `{"routes": [{"methods": ["POST"], "path": "/a", "key": "guarded", "demand": "lease"}]}`
	if err := os.WriteFile(config, []byte(routes), 0o600); err != nil {
		t.Fatal(err)
	}
	guard := begin(t, both, "guard", "http", "--config", config, "--upstream", guarded.URL, "--listen", "127.0.0.1:0")
	_, address, _ := strings.Cut(guard.prints(), "ready http=")
	through := func() (status int, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Interlock-Lease", lease.Lease.ID)
		got, err := plain.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		body, _ := io.ReadAll(got.Body)
		return got.StatusCode, string(body)
	}
	if status, text := through(); status != 200 {
		t.Fatalf("the guard before: %d %s", status, text)
	}
	var before held
	active.MustCall(http.MethodGet, "/v1/keys/account:1", "", &before)

	takeAway(active)
	died := time.Now()
	if status, text := through(); status != 200 { // it waits until the standby has taken over
		t.Errorf("the guard during the fail-over: %d %s", status, text)
	}
	t.Logf("a call through the guard took %v", time.Since(died).Round(time.Millisecond))
	standby.Becomes("ready")
	for _, key := range []string{"account:1", "fee:1"} {
		var now held
		busy.Wait(t, "heartbeats for "+key+" after the ttl", func() bool {
			now = held{}
			standby.MustCall(http.MethodGet, "/v1/keys/"+key, "", &now)
			return time.Since(died) > 12*time.Second && len(now.Holders) == 1 && now.Holders[0].HeartbeatAge < 4000
		})
		if key == "account:1" && now.Holders[0].Fence != before.Holders[0].Fence {
			t.Errorf("fence %s, and before %s", now.Holders[0].Fence, before.Holders[0].Fence)
		}
	}
	if _, err := io.WriteString(run.in, "finished\n"); err != nil {
		t.Fatal(err)
	}
	if line := run.prints(); line != "finished" {
		t.Errorf("the command printed %s", line)
	}
	if err := run.cmd.Wait(); err != nil {
		t.Errorf("interlock run: %v", err)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	standby.MustCall(http.MethodGet, "/v1/tasks/"+task.Task.ID+"?wait_ms=20000", "", &task)
	if attempts, err := os.ReadFile(running); task.Task.State != "done" || string(attempts) != "x\n" {
		t.Errorf("the task is %s after %d attempts, %v", task.Task.State, len(attempts)/2, err)
	}
	var free held
	standby.MustCall(http.MethodGet, "/v1/keys/account:1", "", &free)
	if len(free.Holders) != 0 {
		t.Errorf("the key is still held: %+v", free.Holders)
	}
}
