package remotetest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// Instance is one server process with an address of its own, which it has again after a
// restart.
type Instance struct {
	testing.TB
	http, grpc string
	by         []string // another program that runs it, if any
	path       string   // of its program
	flags      []string // of serve
	log        string
	cmd        *exec.Cmd
	roles      chan string // its standard output: "standby", "ready"
	namespace  string      // of the calls of this test; "" is the default one
	alone      bool        // it forwards no call of this test to another server
}

// Serve starts a server over a journal with one shard, which is stopped at the end of the test.
func Serve(t testing.TB, journal string, flags ...string) *Instance {
	t.Helper()
	ports := busy.Ports(t, 2)
	return ServeAt(t, nil, ports[0], ports[1], append([]string{"--journal", journal, "--shards", "1"}, flags...)...)
}

// serveTwo starts a server that takes the shard, and one that stands by.
func serveTwo(t testing.TB, journal, standing string) (active, standby *Instance) {
	t.Helper()
	active = Serve(t, journal)
	active.Becomes("ready")
	standby = Serve(t, standing)
	standby.Becomes("standby")
	return active, standby
}

// ServeAt starts one at its addresses, by way of another program if one is given.
func ServeAt(t testing.TB, by []string, http, grpc string, flags ...string) *Instance {
	t.Helper()
	path := launchtest.Binary(t)
	s := newInstance(t, by, path, http, grpc, flags)
	s.Start()
	return s
}

// newInstance makes one that is not started yet.
func newInstance(t testing.TB, by []string, path, http, grpc string, flags []string) *Instance {
	s := &Instance{
		TB: t, http: http, grpc: grpc, by: by, path: path, flags: flags, log: filepath.Join(t.TempDir(), "log"),
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(s.log)
			t.Logf("the log of %s:\n%s", s.http, text)
		}
	})
	return s
}

// Start starts the server again.
func (s *Instance) Start() {
	s.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	args := slices.Concat(s.by, []string{s.path, "serve", "--http", s.http, "--grpc", s.grpc}, s.flags)
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Stderr = log
	s.cmd.SysProcAttr = launch.Attributes()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	roles := make(chan string, 64)
	s.roles = roles
	go func() {
		defer close(roles)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			role, _, _ := strings.Cut(lines.Text(), " ")
			roles <- role
		}
	}()
}

// Kill is kill -9.
func (s *Instance) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *Instance) signal(sig os.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

// Ends waits until the server has ended by itself, and returns its exit code.
func (s *Instance) Ends() int {
	s.Helper()
	for range s.roles { // until its output has ended
	}
	_ = s.cmd.Wait()
	code := s.cmd.ProcessState.ExitCode()
	s.cmd = nil
	return code
}

// Becomes waits until the server reports that it has a role.
func (s *Instance) Becomes(role string) {
	s.Helper()
	timer := time.NewTimer(busy.Patience())
	defer timer.Stop()
	for {
		select {
		case now, ok := <-s.roles:
			if !ok {
				s.Fatalf("%s ended before it became %s", s.http, role)
			}
			if now == role {
				return
			}
		case <-timer.C:
			s.Fatalf("%s does not become %s", s.http, role)
		}
	}
}

// answer is as much of an answer as the tests look at.
type answer struct {
	status int
	Role   string
	Code   string
	Active struct{ HTTP, GRPC string }
	Lease  struct {
		ID    string
		Fence string
	}
	At struct{ Epoch string }
}

var plain = &http.Client{Timeout: 20 * time.Second}

func (s *Instance) call(ctx context.Context, method, path, body string) (a answer, err error) {
	status, text, err := s.fetch(ctx, method, path, body)
	if err != nil {
		return a, err
	}
	a.status = status
	return a, json.Unmarshal(text, &a)
}

func (s *Instance) fetch(ctx context.Context, method, path, body string) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.namespace != "" {
		r.Header.Set("Interlock-Namespace", s.namespace)
	}
	if s.alone {
		r.Header.Set("Interlock-Hops", "1")
	}
	got, err := plain.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer got.Body.Close()
	text, err = io.ReadAll(got.Body)
	return got.StatusCode, text, err
}

func (s *Instance) get(path string) answer {
	s.Helper()
	a, err := s.call(s.Context(), http.MethodGet, path, "")
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// Status makes a call and returns the status of its answer; 0 if there was none.
func (s *Instance) Status(method, path string) int {
	a, _ := s.call(s.Context(), method, path, "")
	return a.status
}

// Metric returns the value of a metric without labels, as it is printed.
func (s *Instance) Metric(name string) string {
	s.Helper()
	got, err := plain.Get("http://" + s.http + "/metrics")
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	for lines := bufio.NewScanner(got.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return value
		}
	}
	s.Fatalf("there is no metric %s", name)
	return ""
}

// Logged reports whether the log of the server contains a text.
func (s *Instance) Logged(text string) bool {
	log, err := os.ReadFile(s.log)
	return err == nil && strings.Contains(string(log), text)
}

// dial connects package client to servers.
func dial(t testing.TB, agent string, servers ...*Instance) *client.Client {
	t.Helper()
	cfg := client.Config{Agent: agent}
	for _, s := range servers {
		cfg.Addrs = append(cfg.Addrs, s.grpc)
	}
	cfg.RetryFor = busy.Patience()
	c, err := client.Dial(busy.Context(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(short)
	})
	return c
}
