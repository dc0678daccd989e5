package main

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlockdev/interlock/internal/bench"
)

// ttl is the time to live of locks where an agent can choose it.
const ttl = 30 * time.Second

// setNXCrew are agents that use Redis by hand, as its documentation tells: SET NX to take
// a lock, a script that compares and deletes to release it, and trying again.
func setNXCrew(pause func() time.Duration) func(context.Context, string, int) (*bench.Crew, error) {
	return func(ctx context.Context, addr string, n int) (*bench.Crew, error) {
		c := goRedis(addr, n)
		if err := compareAndExpire.Load(ctx, c).Err(); err != nil { // a pipeline cannot send it when it is missing
			_ = c.Close()
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		var keepers sync.WaitGroup
		crew := &bench.Crew{Agents: make([]bench.Agent, n), Close: func() {
			cancel()
			keepers.Wait()
			_ = c.Close()
		}}
		for i := range n {
			a := &setNXAgent{c: c, held: map[string]string{}}
			keepers.Go(func() { a.keep(ctx) })
			crew.Agents[i] = bench.PollingAgent{Agent: a, Pause: pause}
		}
		return crew, nil
	}
}

type setNXAgent struct {
	c *redis.Client

	mu   sync.Mutex
	held map[string]string // the token for each held key
}

type setNXLock struct {
	a          *setNXAgent
	key, token string
}

var (
	compareAndDelete = redis.NewScript(
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`,
	)
	compareAndExpire = redis.NewScript(
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`,
	)
)

// Acquire implements bench.Agent for what bench.PollingAgent does not use.
func (a *setNXAgent) Acquire(ctx context.Context, key string, _ func()) (bench.Lock, error) {
	return a.Try(ctx, key)
}

// Try implements bench.Agent.
func (a *setNXAgent) Try(ctx context.Context, key string) (bench.Lock, error) {
	token := rand.Text()
	err := a.c.SetArgs(ctx, key, token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return nil, bench.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held[key] = token
	return &setNXLock{a, key, token}, nil
}

// Release implements bench.Lock.
func (l *setNXLock) Release(ctx context.Context) error {
	l.a.mu.Lock()
	delete(l.a.held, l.key)
	l.a.mu.Unlock()
	n, err := compareAndDelete.Run(ctx, l.a.c, []string{l.key}, l.token).Int()
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// errLost reports that a lock had ended before it was released.
var errLost = errors.New("the lock was not held any more")

// keep makes what the agent holds last, all in one pipeline.
func (a *setNXAgent) keep(ctx context.Context) {
	again := time.NewTicker(ttl / 3)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		_, _ = a.c.Pipelined(ctx, func(p redis.Pipeliner) error { // a lock that this fails for is missed at its release
			a.mu.Lock()
			defer a.mu.Unlock()
			for key, token := range a.held {
				compareAndExpire.EvalSha(ctx, p, []string{key}, token, ttl.Milliseconds())
			}
			return nil
		})
	}
}
