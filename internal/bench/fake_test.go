package bench

import (
	"context"
	"slices"
	"sync"
)

// fakeTarget is a service in this process that hands its keys to the waiter that waits longest,
// or shortest.
type fakeTarget struct {
	name   string
	lastIn bool // the last to come is next
}

func (t fakeTarget) Name() string { return t.name }

func (t fakeTarget) Open(context.Context) (Site, error) {
	return &fakeSite{lastIn: t.lastIn, held: map[string]bool{}}, nil
}

type fakeSite struct {
	lastIn bool

	mu    sync.Mutex
	held  map[string]bool
	lines []fakeWaiter
}

type fakeWaiter struct {
	key  string
	turn chan struct{}
}

func (s *fakeSite) Crew(_ context.Context, n int) (*Crew, error) {
	return &Crew{Agents: slices.Repeat([]Agent{fakeAgent{s}}, n), Close: func() {}}, nil
}

func (s *fakeSite) Usage(context.Context) (Usage, error) { return Usage{}, nil }

func (s *fakeSite) Settle(context.Context) (Usage, error) { return Usage{}, nil }

func (s *fakeSite) Close() error { return nil }

type fakeAgent struct{ s *fakeSite }

func (a fakeAgent) Acquire(ctx context.Context, key string, queued func()) (Lock, error) {
	a.s.mu.Lock()
	if !a.s.held[key] {
		a.s.held[key] = true
		a.s.mu.Unlock()
		return fakeLock{a.s, key}, nil
	}
	w := fakeWaiter{key, make(chan struct{})}
	a.s.lines = append(a.s.lines, w)
	if queued != nil {
		queued()
	}
	a.s.mu.Unlock()
	select {
	case <-w.turn:
		return fakeLock{a.s, key}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (a fakeAgent) Try(_ context.Context, key string) (Lock, error) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.s.held[key] {
		return nil, ErrHeld
	}
	a.s.held[key] = true
	return fakeLock{a.s, key}, nil
}

type fakeLock struct {
	s   *fakeSite
	key string
}

func (l fakeLock) Release(context.Context) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	next := slices.IndexFunc(l.s.lines, func(w fakeWaiter) bool { return w.key == l.key })
	if next < 0 {
		l.s.held[l.key] = false
		return nil
	}
	if l.s.lastIn {
		next = len(l.s.lines) - 1
	}
	close(l.s.lines[next].turn)
	l.s.lines = slices.Delete(l.s.lines, next, next+1)
	return nil
}
