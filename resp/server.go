package resp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock/resp/script"
	"github.com/interlockdev/interlock/server"
)

// Config holds the settings of a door. Only API is required.
type Config struct {
	// API returns the server that answers now.
	API func() *server.Server
	// Dial connects to the door of another server, to which connections about its keys are relayed. nil means
	// that they are refused.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// TLS has connections encrypted; nil means that they are not.
	TLS *tls.Config
	// Strip is cut off the beginning of every key that has it: with "lock:" the key lock:account:1 is
	// account:1 at all other doors.
	Strip string
	// Test lets any client delete the keys of others, as test suites do between their tests: see testing.go.
	Test bool
	// Version is shown by INFO and HELLO.
	Version string
	// Log receives what goes wrong; nil means slog.Default.
	Log *slog.Logger
	// Greeting is how long TLS and a command that has begun may take, and Patience how long a client may
	// leave an answer unread; 0 means 10 s and 30 s.
	Greeting, Patience time.Duration
}

// Server is the door. Its methods may be called by any number of goroutines.
type Server struct {
	cfg     Config
	grants  *grants
	scripts scripts
	started time.Time
	lastID  atomic.Int64
	ctx     context.Context // ends when connections are cut
	cancel  context.CancelFunc

	draining atomic.Bool // is set under mu
	cuts     sync.Mutex  // is held while keys are taken out of a lease
	lanes    sync.Pool   // of *client, for commands that are carried out at the same time

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*client]struct{}
	noLocks   map[string]bool // with Config.Test
	told      complaints
	serving   sync.WaitGroup
}

// NewServer returns a door. Nothing listens yet.
func NewServer(cfg Config) *Server {
	cfg.Greeting, cfg.Patience = cmp.Or(cfg.Greeting, 10*time.Second), cmp.Or(cfg.Patience, 30*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{
		cfg: cfg, grants: newGrants(), started: time.Now(), listeners: map[net.Listener]struct{}{},
		conns: map[*client]struct{}{}, scripts: scripts{known: map[string]*script.Program{}}, noLocks: map[string]bool{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		if err == nil {
			pause = 0
			if c := s.enter(conn); c != nil {
				go c.serve()
			}
			continue
		}
		if s.draining.Load() {
			return nil
		}
		if temporary, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](err); !ok || !temporary.Temporary() {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second) // too many open files: others will be closed
		time.Sleep(pause)
	}
}

// enter takes a connection in, unless the door is closed.
func (s *Server) enter(conn net.Conn) *client {
	c := &client{door: s, raw: conn, conn: conn, id: s.lastID.Add(1), w: writer{version: 2}, ctx: s.ctx}
	if s.cfg.TLS != nil {
		c.conn = tls.Server(conn, s.cfg.TLS)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		_ = conn.Close()
		return nil
	}
	s.conns[c] = struct{}{}
	s.serving.Add(1)
	return c
}

// leave forgets a connection that has ended.
func (s *Server) leave(c *client) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.serving.Done()
}

// Shutdown closes the listeners and the idle connections, waits for the commands that are carried out,
// and cuts them off when ctx ends.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.draining.Store(true)
	for l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // for a reader that waits for a command
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.mu.Lock()
		for c := range s.conns {
			_ = c.raw.Close()
		}
		s.mu.Unlock()
		s.cancel()
		<-done
	}
	s.grants.stop()
	s.cancel()
}
