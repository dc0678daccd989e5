package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Follow calls visit for each entry of the journal from index from on (0: from
// the oldest kept), in order and each once, and then for new ones as they become
// durable, until ctx ends, visit fails, or the shard ends. It goes at the
// visitor's pace and holds nothing back for it, so a slow visitor costs nobody
// anything; one that falls behind what is kept gets CodeHistoryTrimmed. The entry
// is valid during the call only. Records that open an epoch hold no events and
// are left out.
//
// Old entries are read from the journal. The newest are also kept in memory for
// as long as anybody follows, because a journal may have to read much to find its
// end.
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
		if p := s.followers.newest(next); p != nil {
			if err := p.visit(&next, func(entry []byte) error {
				if err := s.ended(ctx); err != nil {
					return err
				}
				return visit(next, s.epoch, entry)
			}); err != nil {
				return err
			}
			continue
		}
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

// followers counts who follows, wakes them, and keeps the newest entries for
// them.
type followers struct {
	mu     sync.Mutex
	grown  chan struct{} // closed when there is more; nil when nobody listens
	count  int
	closed bool
	idle   chan struct{} // closed when count is 0 after closed; nil before wait

	pieces []*piece // in order and without gaps; none when nobody follows
	bytes  int
}

// newestBytes bounds the entries that are kept in memory for followers.
const newestBytes = 4 << 20

// piece is the entries of one append. It is never changed, so it is read without
// a lock.
type piece struct {
	first interlock.Index
	data  []byte
	ends  []int
}

func (p *piece) next() interlock.Index { return p.first + interlock.Index(len(p.ends)) }

// visit visits the entries from index next on, and counts next up after each.
func (p *piece) visit(next *interlock.Index, visit func(entry []byte) error) error {
	for *next < p.next() {
		i := int(*next - p.first)
		start := 0
		if i > 0 {
			start = p.ends[i-1]
		}
		if err := visit(p.data[start:p.ends[i]:p.ends[i]]); err != nil {
			return err
		}
		*next++
	}
	return nil
}

func (f *followers) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.count++
	return true
}

func (f *followers) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count--
	if f.count > 0 {
		return
	}
	f.pieces, f.bytes = nil, 0
	if f.closed {
		close(f.idle)
	}
}

// wait returns when nobody follows any more, and nobody can begin to. It is
// called once.
func (f *followers) wait() {
	f.mu.Lock()
	f.closed, f.idle = true, make(chan struct{})
	if f.count == 0 {
		close(f.idle)
	}
	f.mu.Unlock()
	<-f.idle
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

// grow makes the group's entries known as durable, before any answer of that state
// leaves. A follower that sees the new index also finds the entries in memory.
func (s *Shard) grow(g *group) {
	f := &s.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	s.durable.Store(uint64(g.next() - 1))
	if f.grown != nil {
		close(f.grown)
		f.grown = nil
	}
	if f.count == 0 {
		return
	}
	p := &piece{first: g.first, data: bytes.Clone(g.out.Entry), ends: slices.Clone(g.ends)}
	f.pieces = append(f.pieces, p)
	f.bytes += len(p.data)
	for f.bytes > newestBytes && len(f.pieces) > 1 {
		f.bytes -= len(f.pieces[0].data)
		f.pieces[0] = nil
		f.pieces = f.pieces[1:]
	}
}

// newest gives the piece with the entry at index, or nil when it is not kept.
func (f *followers) newest(index interlock.Index) *piece {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := sort.Search(len(f.pieces), func(i int) bool { return f.pieces[i].next() > index })
	if i == len(f.pieces) || f.pieces[i].first > index {
		return nil
	}
	return f.pieces[i]
}
