package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// Follower is a reader of the events of one namespace.
type Follower struct {
	// Namespace is the one that it reads the events of. It also gets the events of the whole shard,
	// which have no namespace, and never one of another namespace.
	Namespace interlock.Namespace

	// From is the index to begin at. 0 is the oldest that is kept.
	From interlock.Index

	// Visit gets the events of one entry. It must not change them: other followers get
	// the same ones. It may keep what they point to. nil ignores them.
	Visit func(index interlock.Index, epoch interlock.Epoch, events []record.Event) error

	// Visited is called after each Visit, when the events need not be kept any more: a follower
	// that may block does so here. It may be nil.
	Visited func() error

	// Full reports whether Visited may block now. The follower leaves its place at the Desk before that. nil
	// means that Visited may always block.
	Full func() bool

	// Reached reports that everything up to an index was visited: whenever nothing more is there
	// yet, and while nothing is visited at least once per Pulse. nil ignores it.
	Reached func(index interlock.Index) error

	// Pulse is how long Reached is not called at most while nothing is visited. 0 means
	// that time alone is no reason to call it.
	Pulse time.Duration
}

// UnreadableError reports that the journal could not be read while it was followed. The entries
// visited until then are right, and there are more.
type UnreadableError struct {
	// Index is the first entry that could not be read.
	Index interlock.Index
	Err   error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("shard: the journal cannot be read at index %d: %v", uint64(e.Index), e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// Follow calls f.Visit for each entry of the journal with events of f.Namespace, from index f.From
// on, in order and each once, and then for new ones as they become durable, until ctx ends, the
// follower returns an error, or the shard ends. It goes at the follower's pace and nothing waits
// for it. One that falls behind what is kept gets CodeHistoryTrimmed, and an *UnreadableError
// reports that the journal could not be read. Records that open an epoch hold no events. An entry
// that is stored as pieces is visited once, as a whole and with the index of its last piece; a
// follower that begins behind its first piece gets the next one.
//
// A follower that has seen everything sleeps until an entry with events of its namespace is
// durable: what happens in other namespaces costs it nothing (see feed.go). One that is behind
// reads the journal, in turns with all others (see Desk): it has a place but while Visited or Reached is called.
func (s *Shard) Follow(ctx context.Context, f Follower) error {
	fd, ok := s.followers.enter(f.Namespace, s)
	if !ok {
		return closedFor(nil)
	}
	defer s.followers.leave(fd)
	r := &followerReader{
		s: s, f: &f, feed: fd, next: f.From, pieces: Joiner{Midway: true}, rested: time.Now(),
		turns: turns{desk: s.desk, ns: f.Namespace},
	}
	if r.next == 0 {
		r.next = s.journal.First()
	}
	for {
		if err := s.ended(ctx); err != nil {
			return err
		}
		if err := r.advance(ctx); err != nil {
			return err
		}
	}
}

// followerReader is the way of one follower through the journal.
type followerReader struct {
	s      *Shard
	f      *Follower
	feed   *eventFeed
	next   interlock.Index // everything before it was visited
	pieces Joiner          // of the journal
	found  bool            // an entry was read from the journal
	stop   error           // the error of the follower
	rested time.Time       // when the follower was called last
	events []record.Event  // reused
	batch  [64]*feedRecord // reused
	turns  turns           // at reading the journal
}

// advance visits the new entries, or waits until there are some.
func (r *followerReader) advance(ctx context.Context) error {
	records, news, at := r.s.followers.look(r.feed, r.s, r.next, r.batch[:0])
	switch {
	case len(records) > 0:
		return r.recall(ctx, records)
	case news == nil:
		return r.read(ctx)
	}
	if err := r.reached(at); err != nil {
		return err
	}
	return r.wait(ctx, news)
}

// recall visits entries that are in memory.
func (r *followerReader) recall(ctx context.Context, records []*feedRecord) error {
	r.pieces = Joiner{Midway: true} // what is read of the journal later begins anew
	for i, rec := range records {
		records[i] = nil
		if err := r.s.ended(ctx); err != nil {
			return err
		}
		r.next = rec.index + 1
		if rec.first < r.f.From {
			continue // it begins in the middle of the pieces
		}
		events, err := rec.decode()
		if err != nil {
			return &UnreadableError{Index: rec.index, Err: err}
		}
		if err := r.visit(rec.index, r.s.epoch, events); err != nil {
			return err
		}
		if err := r.visited(); err != nil {
			return err
		}
	}
	return nil
}

// read visits the journal, up to its end.
func (r *followerReader) read(ctx context.Context) error {
	began := r.next
	err := r.turns.work(ctx)
	if err != nil {
		return err
	}
	defer r.turns.rest()
	err = r.s.journal.Read(ctx, r.next, func(e journal.Entry) error { return r.take(ctx, e) })
	switch {
	case r.stop != nil:
		return r.stop
	case errors.Is(err, journal.ErrTrimmed):
		if r.f.From == 0 && !r.found {
			r.next = r.s.journal.First() // it was truncated before anything was visited
			return nil
		}
		return &interlock.Error{
			Code: interlock.CodeHistoryTrimmed,
			Message: fmt.Sprintf(
				"entry %d is no longer kept; the oldest is %d: start there", uint64(r.next), uint64(r.s.First()),
			),
		}
	case err != nil:
		if ended := r.s.ended(ctx); ended != nil {
			return ended
		}
		return &UnreadableError{Index: r.next, Err: err}
	case r.next == began:
		return fmt.Errorf(
			"shard: invariant broken: the journal has no entry %d, and %d is durable", uint64(r.next), uint64(r.s.At().Index),
		)
	}
	return nil
}

// take continues with an entry of the journal.
func (r *followerReader) take(ctx context.Context, e journal.Entry) error {
	if err := r.s.ended(ctx); err != nil {
		return err
	}
	if err := r.turns.work(ctx); err != nil {
		return err
	}
	entry, err := r.pieces.Join(e)
	if err != nil {
		return err
	}
	r.next, r.found = e.Index+1, true
	if entry == nil {
		return nil
	}
	r.events = r.events[:0]
	err = record.DecodeEntryOf(entry, r.f.Namespace, func(ev *record.Event) error {
		r.events = append(r.events, *ev)
		return nil
	})
	switch {
	case err != nil:
		r.next = e.Index
		return err
	case len(r.events) > 0:
		err = r.visit(e.Index, e.Epoch, r.events)
		clear(r.events) // documents can be large, and the follower slow
		if err == nil {
			err = r.visited()
		}
		return err
	case r.f.Pulse > 0 && time.Since(r.rested) >= r.f.Pulse:
		return r.reached(e.Index)
	}
	return nil
}

func (r *followerReader) visit(index interlock.Index, epoch interlock.Epoch, events []record.Event) error {
	if r.f.Visit != nil {
		r.stop = r.f.Visit(index, epoch, events)
	}
	return r.stop
}

func (r *followerReader) visited() error {
	if r.f.Visited != nil {
		if r.f.Full == nil || r.f.Full() {
			r.turns.rest()
		}
		r.stop = r.f.Visited()
	}
	r.rested = time.Now()
	return r.stop
}

func (r *followerReader) reached(index interlock.Index) error {
	if r.f.Reached != nil {
		r.turns.rest() // it may send
		r.stop = r.f.Reached(index)
	}
	r.rested = time.Now()
	return r.stop
}

// wait returns when there is an entry for the follower, or after a pulse.
func (r *followerReader) wait(ctx context.Context, n *news) error {
	var pulse <-chan time.Time
	if r.f.Pulse > 0 {
		timer := time.NewTimer(r.f.Pulse)
		defer timer.Stop()
		pulse = timer.C
	}
	select {
	case <-n.came:
		r.next = max(r.next, n.first)
	case <-pulse:
	case <-r.s.stopping:
	case <-r.s.failed:
	case <-ctx.Done():
	}
	return nil
}

// ended returns why a follower must stop.
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
