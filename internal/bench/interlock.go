package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/launch"
)

// Transport is a way into Interlock.
type Transport string

// The transports.
const (
	Stream      Transport = "stream"      // all agents are flows of one session, on one connection
	Connections Transport = "connections" // each agent has a session and a connection of its own
	GRPC        Transport = "grpc"        // as Stream, on a gRPC stream
	HTTP        Transport = "http"        // each agent has a connection of its own, and sends JSON
)

// Transports are all of them.
var Transports = []Transport{Stream, Connections, GRPC, HTTP}

// Address is where a server is, and our identity at it.
type Address struct {
	HTTP       string // host:port
	GRPC       string
	TLS        *tls.Config // nil: plain text
	Credential string
	Namespace  interlock.Namespace
}

// Interlock is the target that is this program. Every answer of it is durable.
type Interlock struct {
	Transport Transport

	// Binary is started as a server for each site, with its journal in a directory that
	// is removed afterwards.
	Binary string

	// Journal is the URL of a journal that the server is to have instead, in an engine. It is not removed.
	Journal string

	// Running is a server to be used instead; nil: none.
	Running *Address
}

// Name implements Target.
func (t Interlock) Name() string {
	if engine, _, over := strings.Cut(t.Journal, ":"); over {
		return "interlock " + string(t.Transport) + " over " + engine
	}
	return "interlock " + string(t.Transport)
}

// Open implements Target.
func (t Interlock) Open(ctx context.Context) (Site, error) {
	s := &interlockSite{transport: t.Transport, binary: t.Binary, journal: t.Journal, shards: 1} // as a directory has
	if t.Running != nil {
		s.at = *t.Running
	}
	s.scrapes = &http.Transport{TLSClientConfig: s.at.TLS}
	if t.Running != nil {
		return s, nil
	}
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	s.dir = dir
	if err := s.launch(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// interlockSite is a server, and the transport that is used.
type interlockSite struct {
	transport Transport
	at        Address
	binary    string
	journal   string         // of our own server, in an engine
	shards    int            // of that journal, if it is new
	dir       string         // of our own server's journal
	server    *launch.Server // nil: not ours, or not running

	scrapes *http.Transport // to read its metrics

	mu      sync.Mutex       // guards the fields below
	clients []*client.Client // that live
}

func (s *interlockSite) launch(ctx context.Context) (err error) {
	cfg := launch.Config{
		Binary: s.binary, DataDir: s.dir, Journal: s.journal,
		// Safety limits must not be what is measured.
		Args: []string{"--log-level", "warn", "--max-streams", fmt.Sprint(interlock.MaxSessions)},
	}
	if s.journal != "" {
		cfg.Args = append(cfg.Args, "--shards", fmt.Sprint(s.shards))
	}
	s.server, err = launch.Start(ctx, cfg)
	if err == nil {
		s.at = Address{HTTP: s.server.HTTP, GRPC: s.server.GRPC}
	}
	return err
}

// Close implements Site. Nothing of a server of our own is to be kept, so it is killed. One over an engine is
// stopped in order, or the next one would wait until its seat is free.
func (s *interlockSite) Close() error {
	s.scrapes.CloseIdleConnections()
	if s.dir != "" {
		defer s.cutOff()
	}
	switch {
	case s.server == nil:
	case s.journal != "":
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := s.server.Stop(ctx); err != nil {
			s.server.Kill()
		}
	default:
		s.server.Kill()
	}
	if s.dir != "" {
		return os.RemoveAll(s.dir)
	}
	return nil
}

// stopTime is how long a server may take to stop.
const stopTime = 20 * time.Second

// Crew implements Site.
func (s *interlockSite) Crew(ctx context.Context, n int) (*Crew, error) {
	switch s.transport {
	case Stream, GRPC:
		return s.streamCrew(ctx, n)
	case Connections:
		return s.connectionCrew(ctx, n)
	case HTTP:
		return s.httpCrew(ctx, n)
	}
	return nil, fmt.Errorf("no transport is called %q", s.transport)
}

// End implements Restarter.
func (s *interlockSite) End(ctx context.Context, kill bool) error {
	if s.server == nil {
		return errors.New("a server that is not ours is not stopped")
	}
	server := s.server
	s.server = nil
	var err error
	if kill {
		server.Kill()
	} else {
		err = server.Stop(ctx)
	}
	s.cutOff()
	return err
}

// cutOff ends clients of a server that has ended. Their sessions live on in its journal.
func (s *interlockSite) cutOff() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		_ = c.Close(gone) // it is not confirmed
	}
	s.clients = nil
}

// Start implements Restarter.
func (s *interlockSite) Start(ctx context.Context) error {
	if err := s.launch(ctx); err != nil {
		return err
	}
	crew, err := s.Crew(ctx, 1)
	if err != nil {
		return err
	}
	defer crew.Close()
	lock, err := crew.Agents[0].Acquire(ctx, "bench:first", nil)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// Settle implements Site: asking for metrics makes garbage and changes nothing, so that is done
// until the server has collected it twice. Then the memory that lived when Settle was called is
// known, and nothing else is left. Allocations while the collector is at work count as in use,
// so few requests are sent then.
func (s *interlockSite) Settle(ctx context.Context) (Usage, error) {
	m, err := s.metrics(ctx)
	for enough := m[collections] + 2; err == nil && m[collections] < enough; {
		if m[pauses] > 2*m[collections] {
			time.Sleep(collecting)
		}
		m, err = s.metrics(ctx)
	}
	return m.usage(), err
}

// collecting is between two looks at whether the collector has come to its end.
const collecting = 50 * time.Millisecond
