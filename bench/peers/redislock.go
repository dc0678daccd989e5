package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"github.com/interlockdev/interlock/internal/bench"
)

func redislockCrew(_ context.Context, addr string, n int) (*bench.Crew, error) {
	c := goRedis(addr, n)
	crew := &bench.Crew{Agents: make([]bench.Agent, n), Close: func() { _ = c.Close() }}
	for i := range n {
		crew.Agents[i] = redislockAgent{redislock.New(c)}
	}
	return crew, nil
}

type redislockAgent struct{ *redislock.Client }

// Acquire implements bench.Agent. It tries again after 10 ms: redislock requires a strategy.
func (a redislockAgent) Acquire(ctx context.Context, key string, queued func()) (bench.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour) // without one it stops trying after the ttl
	defer cancel()
	again := &redislockPause{redislock.LinearBackoff(fixedPause), queued}
	return redislockTaken(a.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: again}))
}

// Try implements bench.Agent.
func (a redislockAgent) Try(ctx context.Context, key string) (bench.Lock, error) {
	return redislockTaken(a.Obtain(ctx, key, ttl, nil))
}

func redislockTaken(l *redislock.Lock, err error) (bench.Lock, error) {
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, bench.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// redislockPause is asked for a pause when a try has failed.
type redislockPause struct {
	redislock.RetryStrategy
	queued func()
}

func (p *redislockPause) NextBackoff() time.Duration {
	if p.queued != nil {
		p.queued()
		p.queued = nil
	}
	return p.RetryStrategy.NextBackoff()
}
