package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/interlockdev/interlock/internal/bench"
)

// rueidislockCrew are agents with a locker for all of them, which sends what many ask for
// in one pipeline and wakes them itself, or with one each, as programs of their own have.
func rueidislockCrew(own bool) func(context.Context, string, int) (*bench.Crew, error) {
	return func(_ context.Context, addr string, n int) (*bench.Crew, error) {
		lockers := make([]rueidislock.Locker, 1)
		if own {
			lockers = make([]rueidislock.Locker, n)
		}
		crew := &bench.Crew{Agents: make([]bench.Agent, n), Close: func() {
			for _, l := range lockers {
				if l != nil {
					l.Close()
				}
			}
		}}
		err := each(len(lockers), func(i int) (err error) {
			lockers[i], err = newLocker(addr)
			return err
		})
		if err != nil {
			crew.Close()
			return nil, err
		}
		for i := range n {
			crew.Agents[i] = rueidislockAgent{lockers[i%len(lockers)]}
		}
		return crew, nil
	}
}

func newLocker(addr string) (rueidislock.Locker, error) {
	return rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		ClientBuilder:  newWitness,
		KeyMajority:    1, // there is one Redis
		KeyValidity:    ttl,
		ExtendInterval: ttl / 3,
		TryNextAfter:   ttl, // a loaded server shall not be taken for a lost one
		NoLoopTracking: true,
	})
}

// witness is a client that reports when a script has answered with nothing: that is how a
// locker learns that the lock is held.
type witness struct{ rueidis.Client }

func newWitness(option rueidis.ClientOption) (rueidis.Client, error) {
	c, err := rueidis.NewClient(option)
	if err != nil {
		return nil, err
	}
	return witness{c}, nil
}

// queuedKey is the context key of the function to report to.
type queuedKey struct{}

// Do implements rueidis.Client.
func (w witness) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	res := w.Client.Do(ctx, cmd)
	if queued, ok := ctx.Value(queuedKey{}).(func()); ok && rueidis.IsRedisNil(res.Error()) {
		queued()
	}
	return res
}

type rueidislockAgent struct{ rueidislock.Locker }

// rueidislockLock deletes the key and returns after the reply. The result of the deletion is
// not reported.
type rueidislockLock struct {
	held    context.Context
	release context.CancelFunc
}

// Acquire implements bench.Agent.
func (a rueidislockAgent) Acquire(ctx context.Context, key string, queued func()) (bench.Lock, error) {
	if queued != nil {
		ctx = context.WithValue(ctx, queuedKey{}, once(queued))
	}
	for {
		lock, err := outlive(
			ctx, forgotten,
			func(ctx context.Context) (context.Context, context.CancelFunc, error) { return a.WithContext(ctx, key) },
		)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.Canceled) {
			return lock, err
		}
	}
}

// forgotten is how long an agent waits before it asks again. rueidislock (1.0.79) sometimes
// drops the gate of an agent after a failed try: the goroutine that cleans up after the try may
// run before the failure is counted. That agent is then never woken.
const forgotten = time.Second

// outlive takes a lock that lasts when ctx ends, which calls off the taking alone, as does
// the limit: to rueidislock a lock lives no longer than the context it was asked for with.
func outlive(
	ctx context.Context, limit time.Duration, take func(context.Context) (context.Context, context.CancelFunc, error),
) (bench.Lock, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	timer := time.AfterFunc(limit, cancel)
	held, release, err := take(own)
	stop()
	timer.Stop()
	if err == nil && own.Err() != nil {
		release()
		err = own.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return rueidislockLock{held, func() { release(); cancel() }}, nil
}

// once lets the first call through. There is one at a time.
func once(f func()) func() {
	return func() {
		if f != nil {
			f()
			f = nil
		}
	}
}

// Try implements bench.Agent.
func (a rueidislockAgent) Try(ctx context.Context, key string) (bench.Lock, error) {
	lock, err := outlive(ctx, ttl, func(ctx context.Context) (context.Context, context.CancelFunc, error) {
		return a.TryWithContext(ctx, key)
	})
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return nil, bench.ErrHeld
	}
	return lock, err
}

// Release implements bench.Lock.
func (l rueidislockLock) Release(context.Context) error {
	if l.held.Err() != nil {
		return errLost
	}
	l.release()
	return nil
}
