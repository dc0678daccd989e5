package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// claimOrWait claims an effect. If another one is about to do it, it waits for up to
// wait until that is settled, and claims again: then it gets the result, or the claim
// when it was not done.
func (c *call) claimOrWait(
	cmd *engine.ClaimEffect, wait time.Duration,
) (eff engine.Effect, at interlock.At, err error) {
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
		case <-c.s.Draining():
			return eff, at, nil
		case <-c.r.Context().Done():
			return eff, at, c.r.Context().Err()
		}
	}
	return eff, at, err
}

// effectWatch wakes the waiters for an effect to be settled. It follows the journal once for each
// namespace with waiters, and only as long. The events do not contain which effect is settled, nor
// that a claim died with its lease or its session; so after those that may have settled one it
// looks at all that are waited for, and however many such events there are, there is one look at a
// time.
type effectWatch struct {
	shard Shard
	log   *slog.Logger

	mu    sync.Mutex
	rooms map[interlock.Namespace]*waitingRoom
}

// waitingRoom is where the callers of one namespace wait.
type waitingRoom struct {
	waiting map[[32]byte]map[chan struct{}]struct{}
	stop    context.CancelFunc // ends the following
}

func newSettling(s Shard, log *slog.Logger) *effectWatch {
	return &effectWatch{shard: s, log: log, rooms: map[interlock.Namespace]*waitingRoom{}}
}

// enter makes changed receive a value when an effect is not claimed any more, from now
// on.
func (s *effectWatch) enter(ns interlock.Namespace, digest [32]byte) (changed <-chan struct{}, leave func()) {
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.rooms[ns]
	if room == nil {
		room = &waitingRoom{waiting: map[[32]byte]map[chan struct{}]struct{}{}}
		s.rooms[ns] = room
		var ctx context.Context
		ctx, room.stop = context.WithCancel(context.Background())
		go s.follow(ctx, ns, room, s.shard.At().Index+1)
	}
	if room.waiting[digest] == nil {
		room.waiting[digest] = map[chan struct{}]struct{}{}
	}
	room.waiting[digest][wake] = struct{}{}
	return wake, func() { s.leave(ns, room, digest, wake) }
}

func (s *effectWatch) leave(ns interlock.Namespace, room *waitingRoom, digest [32]byte, wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(room.waiting[digest], wake); len(room.waiting[digest]) == 0 {
		delete(room.waiting, digest)
	}
	if len(room.waiting) == 0 {
		room.stop()
		delete(s.rooms, ns)
	}
}

// follow reads the journal from an index on, and looks when something may have been settled.
// When it falls behind the kept entries, or the journal cannot be read, it continues from the
// newest entry, which is in memory. When the shard ends, the waiters find that out by
// themselves.
func (s *effectWatch) follow(ctx context.Context, ns interlock.Namespace, room *waitingRoom, from interlock.Index) {
	touched := false
	for {
		err := s.shard.Follow(ctx, shard.Follower{
			Namespace: ns, From: from,
			Visit: func(_ interlock.Index, _ interlock.Epoch, events []record.Event) error {
				for i := range events {
					switch events[i].Kind {
					case record.EffectChanged, record.Ended, record.Closed, record.SessionEnded:
						touched = true
					}
				}
				return nil
			},
			Reached: func(interlock.Index) error {
				if touched {
					touched = false
					s.look(ctx, ns, room)
				}
				return nil
			},
		})
		if ctx.Err() != nil {
			return
		}
		from = s.shard.At().Index + 1
		s.look(ctx, ns, room)
		unreadable, isRead := errors.AsType[*shard.UnreadableError](err)
		switch {
		case isRead:
			s.log.Error("the journal could not be read for waits on effects", "error", unreadable)
		case !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}):
			return
		}
	}
}

// look queries the awaited effects in a namespace, and wakes the waiters for those that are
// settled.
func (s *effectWatch) look(ctx context.Context, ns interlock.Namespace, room *waitingRoom) {
	digests := s.waitedFor(room)
	var over [][32]byte
	_, err := s.shard.Read(ctx, ns, func(e *engine.Engine, _ engine.Time) {
		for _, digest := range digests {
			if x, known := e.Effect(ns, digest); !known || x.State != interlock.EffectClaimed {
				over = append(over, digest)
			}
		}
	})
	if err != nil {
		over = digests // they ask, and get the refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, digest := range over {
		for wake := range room.waiting[digest] {
			signal(wake)
		}
	}
}

func (s *effectWatch) waitedFor(room *waitingRoom) (list [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for digest := range room.waiting {
		list = append(list, digest)
	}
	return list
}

// signal leaves a value in a channel, unless one lies there still.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
