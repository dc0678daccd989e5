package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// claimOrWait claims an effect. If another one is about to do it, it waits for up to
// wait until that is settled, and claims again: then it gets the result, or the claim
// when it was not done.
func (c *call) claimOrWait(cmd *engine.ClaimEffect, wait time.Duration) (eff engine.Effect, at interlock.At, err error) {
	claim := func() (over bool) {
		again := *cmd // the engine owns a command once it is submitted
		eff, at, err = c.s.shard.Do(c.r.Context(), &again)
		c.replayed(&eff)
		return err != nil || eff.Outcome != engine.Refused || eff.Code != interlock.CodeEffectClaimed || eff.Effect == nil
	}
	if claim() || wait <= 0 {
		return eff, at, err
	}
	c.allow(wait)
	changed, leave := c.s.settling.enter(c.namespace, eff.Effect.Digest)
	defer leave()
	timeout, death := time.NewTimer(wait), time.NewTimer(wait)
	defer timeout.Stop()
	defer death.Stop()
	// The first claim in the loop sees what happened before enter; what happens later
	// wakes us.
	for !claim() {
		death.Stop()
		if left := eff.Effect.ExpiresIn; left > 0 {
			death.Reset(left) // a claim that nothing keeps alive dies without an event
		}
		select {
		case <-changed:
		case <-death.C:
		case <-timeout.C:
			return eff, at, nil
		case <-c.s.draining:
			return eff, at, nil
		case <-c.r.Context().Done():
			return eff, at, c.r.Context().Err()
		}
	}
	return eff, at, err
}

// settling wakes those who wait for an effect to be settled. It follows the journal
// once for all of them, and only while somebody waits. The events do not say which
// effect is settled, nor that a claim died with its lease or its session; so after
// those that may have settled one it looks at all that are waited for, and however
// many such events there are, there is one look at a time.
type settling struct {
	shard Shard

	mu      sync.Mutex
	waiting map[interlock.Namespace]map[[32]byte]map[chan struct{}]struct{}
	touched map[interlock.Namespace]bool // where one may have been settled
	stop    context.CancelFunc           // ends the following; nil when nobody waits
}

func newSettling(s Shard) *settling {
	return &settling{
		shard:   s,
		waiting: map[interlock.Namespace]map[[32]byte]map[chan struct{}]struct{}{},
		touched: map[interlock.Namespace]bool{},
	}
}

// enter makes changed receive a value when an effect is not claimed any more, from now
// on.
func (s *settling) enter(ns interlock.Namespace, digest [32]byte) (changed <-chan struct{}, leave func()) {
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[ns] == nil {
		s.waiting[ns] = map[[32]byte]map[chan struct{}]struct{}{}
	}
	if s.waiting[ns][digest] == nil {
		s.waiting[ns][digest] = map[chan struct{}]struct{}{}
	}
	s.waiting[ns][digest][wake] = struct{}{}
	if s.stop == nil {
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		kick := make(chan struct{}, 1)
		go s.follow(ctx, s.shard.At().Index+1, kick)
		go s.look(ctx, kick)
	}
	return wake, func() { s.leave(ns, digest, wake) }
}

func (s *settling) leave(ns interlock.Namespace, digest [32]byte, wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.waiting[ns][digest], wake); len(s.waiting[ns][digest]) == 0 {
		delete(s.waiting[ns], digest)
	}
	if len(s.waiting[ns]) == 0 {
		delete(s.waiting, ns)
	}
	if len(s.waiting) == 0 {
		s.stop()
		s.stop = nil
	}
}

// follow reads the journal from an index on, and says where to look. When it falls
// behind what is kept it goes on from the newest. When the shard ends, those who wait
// find that out by themselves.
func (s *settling) follow(ctx context.Context, from interlock.Index, kick chan<- struct{}) {
	for {
		err := s.shard.Follow(ctx, from, func(_ interlock.Index, _ interlock.Epoch, entry []byte) error {
			return engine.DecodeEntry(entry, func(ev *engine.Event) error {
				switch ev.Kind {
				case engine.EvEffect, engine.EvEnded, engine.EvClosed, engine.EvSessionEnded:
					s.touch(ev.Namespace, kick)
				}
				return nil
			})
		})
		from = s.shard.At().Index + 1
		s.touchAll(kick)
		if !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}) {
			return
		}
	}
}

func (s *settling) touch(ns interlock.Namespace, kick chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[ns] != nil {
		s.touched[ns] = true
		signal(kick)
	}
}

func (s *settling) touchAll(kick chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ns := range s.waiting {
		s.touched[ns] = true
	}
	signal(kick)
}

// look looks at what is waited for where one may have been settled, and wakes those
// who waited for what is.
func (s *settling) look(ctx context.Context, kick <-chan struct{}) {
	for {
		select {
		case <-kick:
		case <-ctx.Done():
			return
		}
		for ns, digests := range s.toLookAt() {
			var over [][32]byte
			_, err := s.shard.Read(ctx, ns, func(e *engine.Engine, _ engine.Time) {
				for _, digest := range digests {
					if x, known := e.Effect(ns, digest); !known || x.State != interlock.EffectClaimed {
						over = append(over, digest)
					}
				}
			})
			if err != nil {
				over = digests // they ask, and are told
			}
			s.wake(ns, over)
		}
	}
}

// toLookAt gives what is waited for where one may have been settled since it was asked
// last.
func (s *settling) toLookAt() map[interlock.Namespace][][32]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[interlock.Namespace][][32]byte{}
	for ns := range s.touched {
		for digest := range s.waiting[ns] {
			list[ns] = append(list[ns], digest)
		}
	}
	clear(s.touched)
	return list
}

func (s *settling) wake(ns interlock.Namespace, digests [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, digest := range digests {
		for wake := range s.waiting[ns][digest] {
			signal(wake)
		}
	}
}

// signal leaves a value in a channel, unless one lies there still.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
