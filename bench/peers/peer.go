package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/interlockdev/interlock/internal/bench"
)

// A peer is a service by one of its clients.
type peer struct {
	promise
	scenarios []string // in which it takes part
	most      int      // agents that it is measured with; 0: however many
	service   service
	crew      func(ctx context.Context, addr string, n int) (*bench.Crew, error)
}

// promise is the guarantees of a peer's lock: the facts needed to compare it.
type promise struct {
	Peer    string `json:"peer"`
	Durable string `json:"durable"` // what of an answer survives
	Line    string `json:"line"`    // how the next holder is chosen
	Alive   string `json:"alive"`   // how long a lock is held
}

// A service is a program that can be started.
type service interface {
	// missing names the Debian package without which it cannot be started; "" for none.
	missing() string

	// start starts it with its data in an empty directory.
	start(ctx context.Context, dir string) (*instance, error)
}

// instance is a service that was started.
type instance struct {
	*process
	addr string
	quit os.Signal

	// tell adds to a usage the figures that only the service itself has. settled: after it has
	// freed what it does not need.
	tell func(ctx context.Context, u *bench.Usage, settled bool) error
}

// Name implements bench.Target.
func (p *peer) Name() string { return p.Peer }

// Open implements bench.Target.
func (p *peer) Open(ctx context.Context) (bench.Site, error) {
	dir, err := os.MkdirTemp("", "interlock-peers-")
	if err != nil {
		return nil, err
	}
	r, err := p.service.start(ctx, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.Peer, err), os.RemoveAll(dir))
	}
	return &site{r, p, dir}, nil
}

// site is a service that runs for a peer.
type site struct {
	*instance
	peer *peer
	dir  string
}

// Crew implements bench.Site.
func (s *site) Crew(ctx context.Context, n int) (*bench.Crew, error) {
	return s.peer.crew(ctx, s.addr, n)
}

// Usage implements bench.Site.
func (s *site) Usage(ctx context.Context) (bench.Usage, error) { return s.measure(ctx, false) }

// Settle implements bench.Site.
func (s *site) Settle(ctx context.Context) (bench.Usage, error) { return s.measure(ctx, true) }

func (s *site) measure(ctx context.Context, settled bool) (bench.Usage, error) {
	u, err := s.usage()
	if err == nil && s.tell != nil {
		err = s.tell(ctx, &u, settled)
	}
	return u, err
}

// Close implements bench.Site.
func (s *site) Close() error {
	s.end(s.quit)
	return os.RemoveAll(s.dir)
}

// takesPart reports whether a peer takes part in a scenario with n agents.
func (p *peer) takesPart(scenario string, n int) bool {
	return slices.Contains(p.scenarios, scenario) && (p.most == 0 || n <= p.most)
}

// dialWidth is how many connections are made at a time.
const dialWidth = 32

// each calls do n times, several at a time, and returns all errors.
func each(n int, do func(i int) error) error {
	var (
		all  sync.WaitGroup
		room = make(chan struct{}, dialWidth)
		errs = make([]error, n)
	)
	for i := range n {
		room <- struct{}{}
		all.Go(func() {
			errs[i] = do(i)
			<-room
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
