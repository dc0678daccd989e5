package etcdtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/client"
)

// binary builds the real program, once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "interlock-etcd-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "interlock")
	cmd := exec.Command("go", "build", "-C", "../../..", "-o", path, "./cmd/interlock")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// instance is one server process with an address of its own, which it has again after a
// restart.
type instance struct {
	testing.TB
	http, grpc string
	args       []string
	log        string
	cmd        *exec.Cmd
	roles      chan string // its standard output: "standby", "ready"
}

// serve starts a server over a journal, which is stopped at the end of the test.
func serve(t testing.TB, journal string, flags ...string) *instance {
	t.Helper()
	ports := freePorts(t, 2)
	return serveAt(t, nil, ports[0], ports[1], append([]string{"--journal", journal}, flags...)...)
}

// serveTwo starts a server that takes the shard, and one that stands by.
func serveTwo(t testing.TB, journal, standing string) (active, standby *instance) {
	t.Helper()
	active = serve(t, journal)
	active.becomes("ready")
	standby = serve(t, standing)
	standby.becomes("standby")
	return active, standby
}

// serveAt starts one at its addresses, by way of another program if one is given.
func serveAt(t testing.TB, by []string, http, grpc string, flags ...string) *instance {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &instance{TB: t, http: http, grpc: grpc, log: filepath.Join(t.TempDir(), "log")}
	s.args = slices.Concat(by, []string{path, "serve", "--http", http, "--grpc", grpc}, flags)
	s.start()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			text, _ := os.ReadFile(s.log)
			t.Logf("the log of %s:\n%s", s.http, text)
		}
	})
	return s
}

func (s *instance) start() {
	s.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stderr = log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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

func (s *instance) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *instance) signal(sig os.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

// becomes waits until the server reports that it has a role.
func (s *instance) becomes(role string) {
	s.Helper()
	timer := time.NewTimer(30 * time.Second)
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

func (s *instance) call(ctx context.Context, method, path, body string) (a answer, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := plain.Do(r)
	if err != nil {
		return a, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return a, err
	}
	a.status = got.StatusCode
	return a, json.Unmarshal(text, &a)
}

func (s *instance) get(path string) answer {
	s.Helper()
	a, err := s.call(s.Context(), http.MethodGet, path, "")
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// dial connects package client to servers.
func dial(t testing.TB, agent string, servers ...*instance) *client.Client {
	t.Helper()
	cfg := client.Config{Agent: agent}
	for _, s := range servers {
		cfg.Addrs = append(cfg.Addrs, s.grpc)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cfg.RetryFor = 30 * time.Second
	c, err := client.Dial(ctx, cfg)
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

// url is the journal's at a place, by way of these endpoints or, with none, the
// members themselves.
func (c *cluster) url(name string, endpoints ...string) string {
	if len(endpoints) == 0 {
		endpoints = c.endpoints()
	}
	return "etcd://" + strings.Join(endpoints, ",") + "/" + name
}

// proxy stands before one address and can stop forwarding, in both directions and
// without closing anything: what a cut cable looks like.
type proxy struct {
	addr string
	mu   sync.Mutex
	open *sync.Cond
	cut  bool
}

func newProxy(t testing.TB, host, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	p.open = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		l.Close()
		p.set(false)
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go p.forward(in, to)
		}
	}()
	return p
}

func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.open.Broadcast()
}

// pass waits while the cable is cut.
func (p *proxy) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut {
		p.open.Wait()
	}
}

func (p *proxy) forward(in net.Conn, to string) {
	defer in.Close()
	p.pass()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{}, 2)
	pump := func(dst, src net.Conn) {
		defer func() { done <- struct{}{} }()
		buf := make([]byte, 32<<10)
		for {
			n, err := src.Read(buf)
			p.pass()
			if n > 0 {
				if _, err := dst.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go pump(out, in)
	go pump(in, out)
	<-done
}
