package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Follow calls visit for each entry of the journal from index from on (0: from
// the oldest kept), in order and each once, and then for new ones as they become
// durable, until ctx ends, visit fails, or the shard ends. It reads from the
// journal at the visitor's pace and holds nothing back for it, so a slow visitor
// costs nobody anything; one that falls behind what is kept gets
// CodeHistoryTrimmed. The entry is valid during the call only. Records that open
// an epoch hold no events and are left out.
func (s *Shard) Follow(ctx context.Context, from interlock.Index,
	visit func(index interlock.Index, epoch interlock.Epoch, entry []byte) error,
) error {
	if !s.followers.enter() {
		return closedFor(nil)
	}
	defer s.followers.leave()

	next := from
	for {
		if err := s.await(ctx, next); err != nil {
			return err
		}
		if next == 0 {
			next = s.journal.First()
		}
		began := next
		err := s.journal.Read(ctx, next, func(e journal.Entry) error {
			if err := s.ended(ctx); err != nil {
				return err
			}
			next = e.Index + 1
			if len(e.Data) == 0 {
				return nil
			}
			return visit(e.Index, e.Epoch, e.Data)
		})
		switch {
		case errors.Is(err, journal.ErrTrimmed):
			if from == 0 && next == began {
				next = 0 // it was truncated between First and Read
				continue
			}
			return &interlock.Error{
				Code:    interlock.CodeHistoryTrimmed,
				Message: fmt.Sprintf("entry %d is no longer kept; the oldest is %d: begin there", next, s.First()),
			}
		case err != nil:
			return err
		case next == began:
			return fmt.Errorf("shard: invariant broken: the journal has no entry %d, and %d is durable", next, s.At().Index)
		}
	}
}

// await returns when the entry at index is durable.
func (s *Shard) await(ctx context.Context, index interlock.Index) error {
	for {
		if err := s.ended(ctx); err != nil {
			return err
		}
		grown := s.followers.listen()
		if s.At().Index >= index {
			return nil
		}
		select {
		case <-grown:
		case <-s.stopping:
		case <-s.failed:
		case <-ctx.Done():
		}
	}
}

// ended says why a follower must stop.
func (s *Shard) ended(ctx context.Context) error {
	select {
	case <-s.stopping:
		return closedFor(nil)
	case <-s.failed:
		return closedFor(s.err)
	default:
		return ctx.Err()
	}
}

// followers counts who follows, and wakes them.
type followers struct {
	mu     sync.Mutex
	grown  chan struct{} // closed when there is more; nil when nobody listens
	closed bool
	group  sync.WaitGroup
}

func (f *followers) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.group.Add(1)
	return true
}

func (f *followers) leave() { f.group.Done() }

// wait returns when nobody follows any more, and nobody can begin to.
func (f *followers) wait() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.group.Wait()
}

// listen gives a channel that is closed at the next grow.
func (f *followers) listen() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.grown == nil {
		f.grown = make(chan struct{})
	}
	return f.grown
}

func (f *followers) grow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.grown != nil {
		close(f.grown)
		f.grown = nil
	}
}
