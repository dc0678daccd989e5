package scenariotest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// Servers are the servers of one scenario.
type Servers interface {
	// Addrs returns the addresses of each as they are now.
	Addrs() []Addr
	// Active waits until one of them is active, and returns its index.
	Active() int
	// Kill kills the active one, and returns its index.
	Kill() int
	// Start starts the one that was killed, over its journal.
	Start()
}

// Addr is the addresses of one server. RESP is empty if it does not answer programs for Redis.
type Addr struct{ HTTP, GRPC, RESP string }

// single is a server with its journal in a folder.
type single struct {
	*testing.T
	cfg launch.Config

	mu     sync.Mutex
	server *launch.Server
}

// Single starts one server with its journal in a folder of its own.
func Single(t *testing.T) Servers {
	s := &single{T: t, cfg: launch.Config{
		DataDir: t.TempDir(), Args: []string{"--resp", "127.0.0.1:0", "--resp-strip", stripped},
	}}
	s.Start()
	return s
}

func (s *single) Start() {
	server := launchtest.Start(s.T, s.cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
}

func (s *single) Addrs() []Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []Addr{{s.server.HTTP, s.server.GRPC, s.server.RESP}}
}

func (s *single) Active() int { return 0 }

func (s *single) Kill() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Kill()
	return 0
}

// stage is the servers of one scenario, behind their proxies.
type stage struct {
	*testing.T
	servers Servers
	faults  faults
	control *httptest.Server
	// The proxies, one for each server.
	http, stream, redis []*gate

	mu     sync.Mutex
	runner *os.Process
}

func newStage(t *testing.T, servers Servers) *stage {
	s := &stage{T: t, servers: servers}
	for i, addr := range servers.Addrs() {
		s.http = append(s.http, newGate(t, (&forwarder{&s.faults, func() string { return servers.Addrs()[i].HTTP }}).serve))
		s.stream = append(s.stream, newGate(t, (&pipe{&s.faults, func() string { return servers.Addrs()[i].GRPC }}).serve))
		if addr.RESP != "" {
			s.redis = append(s.redis, newGate(t, (&pipe{&s.faults, func() string { return servers.Addrs()[i].RESP }}).serve))
		}
	}
	s.faults.kill = s.kill
	s.control = httptest.NewServer(s)
	t.Cleanup(s.control.Close)
	t.Cleanup(func() { s.faults.silence(false) })
	return s
}

// gates are all proxies.
func (s *stage) gates() []*gate { return slices.Concat(s.http, s.stream, s.redis) }

// kill kills the active server. Connections to it break, and new ones are refused.
func (s *stage) kill() {
	i := s.servers.Kill()
	for _, gates := range [][]*gate{s.http, s.stream, s.redis} {
		if i < len(gates) {
			gates[i].shut()
		}
	}
}

// start starts it again.
func (s *stage) start() {
	s.servers.Start()
	for _, g := range s.gates() {
		g.listen()
	}
}

// dead returns an address where nothing listens, or with hollow one where each connection is closed at once.
func (s *stage) dead(hollow bool) string {
	if hollow {
		return newGate(s.T, func(net.Conn) {}).addr
	}
	return busy.Ports(s, 1)[0]
}

// command prepares the runner of a library with its arguments.
func (s *stage) command(ctx context.Context, l *Library, first first, args ...string) *exec.Cmd {
	gates, scheme := s.http, "http://"
	if l.streams {
		gates, scheme = s.stream, ""
	}
	var urls []string
	if first.DeadFirst || first.HollowFirst {
		urls = append(urls, scheme+s.dead(first.HollowFirst))
	}
	for _, g := range gates {
		urls = append(urls, scheme+g.addr)
	}
	argv := append(l.command(s.T), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(
		append(os.Environ(), l.env...), "INTERLOCK_URL="+strings.Join(urls, ","), "INTERLOCK_CONTROL="+s.control.URL,
	)
	cmd.SysProcAttr = launch.Attributes()
	return cmd
}

// play lets the runner of a library carry out a scenario.
func (s *stage) play(ctx context.Context, l *Library, file string) error {
	x, err := readScenario(file)
	if err != nil {
		return err
	}
	var out strings.Builder
	cmd := s.command(ctx, l, x.first, file)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	s.mu.Lock()
	s.runner = cmd.Process
	s.mu.Unlock()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, out.String())
	}
	return nil
}

// suspend stops the process of the runner, as the lid of a laptop does, until a key has as many holders and waiters as
// ordered.
func (s *stage) suspend(ctx context.Context, until *occupancy) error {
	s.mu.Lock()
	runner := s.runner
	s.mu.Unlock()
	if err := runner.Signal(launch.Stop); err != nil {
		return err
	}
	return errors.Join(s.await(ctx, until), runner.Signal(launch.Continue))
}
