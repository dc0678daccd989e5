package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/interlockdev/interlock/internal/bench"
)

func redsyncCrew(_ context.Context, addr string, n int) (*bench.Crew, error) {
	c := goRedis(addr, n)
	crew := &bench.Crew{Agents: make([]bench.Agent, n), Close: func() { _ = c.Close() }}
	a := redsyncAgent{redsync.New(goredis.NewPool(c))}
	for i := range n {
		crew.Agents[i] = a
	}
	return crew, nil
}

type redsyncAgent struct{ *redsync.Redsync }

type redsyncLock struct{ *redsync.Mutex }

// Acquire implements bench.Agent. It pauses as redsync does by itself, but never stops trying.
func (a redsyncAgent) Acquire(ctx context.Context, key string, queued func()) (bench.Lock, error) {
	m := a.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt), redsync.WithRetryDelayFunc(func(int) time.Duration {
		if queued != nil {
			queued()
			queued = nil
		}
		return 50*time.Millisecond + rand.N(200*time.Millisecond)
	}))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncLock{m}, nil
}

// Try implements bench.Agent.
func (a redsyncAgent) Try(ctx context.Context, key string) (bench.Lock, error) {
	m := a.NewMutex(key, redsync.WithExpiry(ttl))
	err := m.TryLockContext(ctx)
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken || errors.Is(err, redsync.ErrFailed) {
		return nil, bench.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return redsyncLock{m}, nil
}

// Release implements bench.Lock.
func (l redsyncLock) Release(ctx context.Context) error {
	held, err := l.UnlockContext(ctx)
	if err == nil && !held {
		err = errLost
	}
	return err
}
