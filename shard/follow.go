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
// are left out. An entry that is stored as pieces is visited once, as a whole and
// with the index of its last piece; who begins behind its first piece gets the next
// one.
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
	pieces := Joiner{Midway: true}
	take := func(e journal.Entry) error {
		if err := s.ended(ctx); err != nil {
			return err
		}
		entry, err := pieces.Join(e)
		next = e.Index + 1
		if entry == nil {
			return err
		}
		return visit(e.Index, e.Epoch, entry)
	}
	for {
		if err := s.await(ctx, next); err != nil {
			return err
		}
		if next == 0 {
			next = s.journal.First()
		}
		began := next
		if b := s.followers.newest(next); b != nil {
			if err := b.visit(next, s.epoch, take); err != nil {
				return err
			}
			continue
		}
		err := s.journal.Read(ctx, next, take)
		switch {
		case errors.Is(err, journal.ErrTrimmed):
			if from == 0 && pieces.Midway {
				next = 0 // it was truncated before anything was visited
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

	batches []*batch // in order and without gaps; none when nobody follows
	bytes   int
}

// newestBytes bounds the entries that are kept in memory for followers.
const newestBytes = 4 << 20

// batch is the entries of one append. It is never changed, so it is read without
// a lock.
type batch struct {
	first interlock.Index
	data  []byte
	ends  []int // where each entry ends in data
}

func (b *batch) next() interlock.Index { return b.first + interlock.Index(len(b.ends)) }

// visit visits the entries from index from on.
func (b *batch) visit(from interlock.Index, epoch interlock.Epoch, visit func(journal.Entry) error) error {
	i := int(from - b.first)
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	for ; i < len(b.ends); i++ {
		end := b.ends[i]
		if err := visit(journal.Entry{Index: b.first + interlock.Index(i), Epoch: epoch, Data: b.data[start:end:end]}); err != nil {
			return err
		}
		start = end
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
	f.batches, f.bytes = nil, 0
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

// grow makes known what has become durable of the group, before any answer of that
// state leaves: the steps that are whole, and in memory the entries from number from
// on. A follower that sees the new index also finds the entries in memory.
func (s *Shard) grow(g *group, from int) {
	f := &s.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.whole > 0 {
		s.durable.Store(uint64(g.index(g.whole - 1)))
	}
	if f.grown != nil {
		close(f.grown)
		f.grown = nil
	}
	if f.count == 0 {
		return
	}
	begin := g.at(from)
	b := &batch{
		first: g.first + interlock.Index(from),
		data:  bytes.Clone(g.out.Entry[begin:g.at(g.written)]),
		ends:  slices.Clone(g.ends[from:g.written]),
	}
	for i := range b.ends {
		b.ends[i] -= begin
	}
	f.batches = append(f.batches, b)
	f.bytes += len(b.data)
	for f.bytes > newestBytes && len(f.batches) > 1 {
		f.bytes -= len(f.batches[0].data)
		f.batches[0] = nil
		f.batches = f.batches[1:]
	}
}

// newest gives the batch with the entry at index, or nil when it is not kept.
func (f *followers) newest(index interlock.Index) *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := sort.Search(len(f.batches), func(i int) bool { return f.batches[i].next() > index })
	if i == len(f.batches) || f.batches[i].first > index {
		return nil
	}
	return f.batches[i]
}
