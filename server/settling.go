package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// claimOrWait claims an effect. If another one does it at the moment, it waits for up
// to wait until that is settled, and claims again: then it gets the result, or the
// claim when it was not done. No answer is asked for twice unless something happened
// that may have settled it.
func (c *call) claimOrWait(cmd *engine.ClaimEffect, wait time.Duration) (eff engine.Effect, at interlock.At, err error) {
	claim := func() bool {
		again := *cmd // the engine owns a command once it is submitted
		eff, at, err = c.s.shard.Do(c.r.Context(), &again)
		return err != nil || eff.Outcome != engine.Refused || eff.Code != interlock.CodeEffectClaimed || eff.Effect == nil
	}
	over := claim()
	if err == nil {
		c.s.obs.Answered(cmd, &eff)
	}
	if over || wait <= 0 {
		return eff, at, err
	}
	c.allow(wait)
	changed, leave := c.s.settling.enter(c.namespace)
	defer leave()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		// What happened before enter is seen by this look, what happens later wakes us.
		known, err := c.isClaimed(eff.Effect.Digest)
		if err != nil {
			return eff, at, err
		}
		if known == nil {
			if claim() {
				return eff, at, err
			}
			known = eff.Effect
		}
		// A claim that nobody keeps alive dies without an event.
		death := (<-chan time.Time)(nil)
		if known.ExpiresIn > 0 {
			timer := time.NewTimer(known.ExpiresIn + time.Millisecond)
			defer timer.Stop()
			death = timer.C
		}
		select {
		case <-changed:
		case <-death:
		case <-timeout.C:
			return eff, at, nil
		case <-c.s.draining:
			return eff, at, nil
		case <-c.s.shard.Failed():
			return eff, at, nil
		case <-c.r.Context().Done():
			return eff, at, c.r.Context().Err()
		}
	}
}

// isClaimed gives an effect if somebody is about to do it still.
func (c *call) isClaimed(digest [32]byte) (known *interlock.Effect, err error) {
	_, err = c.s.shard.Read(c.r.Context(), c.namespace, func(e *engine.Engine, _ engine.Time) {
		if x, ok := e.Effect(c.namespace, digest); ok && x.State == interlock.EffectClaimed {
			known = &x
		}
	})
	return known, err
}

// settling wakes those who wait for an effect to be settled, when one of their
// namespace was, or when a lease or a session ended with which a claim may have died.
// It follows the journal once for all of them, and only while somebody waits.
type settling struct {
	follow func(context.Context, interlock.Index, func(interlock.Index, interlock.Epoch, []byte) error) error
	at     func() interlock.At

	mu      sync.Mutex
	waiting map[interlock.Namespace]map[chan struct{}]struct{}
	stop    context.CancelFunc // of the follower; nil when there is none
}

func newSettling(s Shard) *settling {
	return &settling{follow: s.Follow, at: s.At, waiting: map[interlock.Namespace]map[chan struct{}]struct{}{}}
}

// enter makes changed receive a value after each change from now on; several may come
// as one.
func (s *settling) enter(ns interlock.Namespace) (changed <-chan struct{}, leave func()) {
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[ns] == nil {
		s.waiting[ns] = map[chan struct{}]struct{}{}
	}
	s.waiting[ns][wake] = struct{}{}
	if s.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		s.stop = stop
		go s.run(ctx, s.at().Index+1)
	}
	return wake, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.waiting[ns], wake); len(s.waiting[ns]) == 0 {
			delete(s.waiting, ns)
		}
		if len(s.waiting) == 0 && s.stop != nil {
			s.stop()
			s.stop = nil
		}
	}
}

// run follows the journal from an index on until nobody waits any more, or the shard
// ends. If it falls behind what is kept, everybody looks for himself, and it goes on
// from the newest.
func (s *settling) run(ctx context.Context, from interlock.Index) {
	for {
		err := s.follow(ctx, from, func(_ interlock.Index, _ interlock.Epoch, entry []byte) error {
			return engine.DecodeEntry(entry, func(ev *engine.Event) error {
				switch ev.Kind {
				case engine.EvEffect, engine.EvEnded, engine.EvSessionEnded:
					s.wake(ev.Namespace)
				}
				return nil
			})
		})
		from = s.at().Index + 1
		s.wakeAll()
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if ctx.Err() == nil {
				s.stop()
				s.stop = nil
			}
			return
		}
	}
}

func (s *settling) wake(ns interlock.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeEach(ns)
}

func (s *settling) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ns := range s.waiting {
		s.wakeEach(ns)
	}
}

func (s *settling) wakeEach(ns interlock.Namespace) {
	for wake := range s.waiting[ns] {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}
