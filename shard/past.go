package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// The bounds of one question about the past.
const (
	pastWithin = 2 * time.Second // for its replay
	pastBytes  = 512 << 20       // about, of the state
	pastKept   = 4               // states that are kept for the next questions
)

// Past answers queries about earlier states of any number of shards. A state is replayed into a second
// engine: from the newest snapshot at or below its index, and the entries behind that. So it shows what was
// journaled, and nothing else: not the last heartbeats, nor the connections.
//
// One question is answered at a time, within pastWithin and pastBytes, so that the past costs the present at
// most one processor and a bounded amount of memory. The last states stay, for questions about the same
// moment. Past must never let a query see a state of another index than its answer names.
type Past struct {
	turn chan struct{} // holds a value while no question is answered
	kept []pastState   // the last one is the newest
	room int           // for states
	time time.Duration // for a replay
}

// pastState is a state of a shard.
type pastState struct {
	of     *Shard
	index  interlock.Index
	now    engine.Time
	engine *engine.Engine
	bytes  int
}

// Moment is the state after an index as of a time, or as of the time of its last entry if that is later.
type Moment struct {
	Index interlock.Index
	Time  engine.Time
}

// NewPast makes one without states.
func NewPast() *Past {
	p := &Past{turn: make(chan struct{}, 1), room: pastBytes, time: pastWithin}
	p.turn <- struct{}{}
	return p
}

// Unbounded makes one without bounds of time and memory, for a process that answers nothing else.
func Unbounded() *Past {
	p := NewPast()
	p.room, p.time = math.MaxInt, 24*time.Hour
	return p
}

// A state of the past may be beyond the bounds of a question, or be forgotten.
var (
	ErrTooLarge = errors.New("shard: the state has more than fits into the memory for questions about the past")
	ErrTooLong  = fmt.Errorf("shard: the replay takes longer than %s", pastWithin)
	ErrTooOld   = errors.New("shard: the journal has no way to that state any more")
)

// LookBack is Survey as of an index, which is at least 1 and at most that of At: look sees the state after
// it. look receives the time of that state: now, or the time of its last entry if that is later.
// ErrTooOld means that no snapshot leads to the index any more.
func (s *Shard) LookBack(
	ctx context.Context, p *Past, index interlock.Index, now engine.Time,
	look func(*engine.Engine, engine.Time) (done bool),
) (at interlock.At, err error) {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return at, ctx.Err()
	}
	x, err := p.state(ctx, pastState{of: s, index: index, now: now}, p.room)
	if err != nil {
		return at, err
	}
	for !look(x.engine, x.engine.Now()) {
		if err := ctx.Err(); err != nil {
			return at, err
		}
	}
	return interlock.At{Shard: s.number, Epoch: s.epoch, Index: index}, nil
}

// Compare is LookBack at two states at once. Both together take as much memory as one of LookBack, and each has its
// time. at is that of the second one; failed is the index of the state that an error is about.
func (s *Shard) Compare(
	ctx context.Context, p *Past, first, second Moment, look func(first, second *engine.Engine) (done bool),
) (at interlock.At, failed interlock.Index, err error) {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return at, 0, ctx.Err()
	}
	x, err := p.state(ctx, pastState{of: s, index: first.Index, now: first.Time}, p.room)
	if err != nil {
		return at, first.Index, err
	}
	y, err := p.state(ctx, pastState{of: s, index: second.Index, now: second.Time}, p.room-x.bytes)
	if err != nil {
		return at, second.Index, err
	}
	for !look(x.engine, y.engine) {
		if err := ctx.Err(); err != nil {
			return at, 0, err
		}
	}
	return interlock.At{Shard: s.number, Epoch: s.epoch, Index: second.Index}, 0, nil
}

// state returns a kept state, or replays it within some memory.
func (p *Past) state(ctx context.Context, x pastState, room int) (pastState, error) {
	if i := slices.IndexFunc(p.kept, func(k pastState) bool {
		return k.of == x.of && k.index == x.index && k.now == x.now
	}); i >= 0 {
		x = p.kept[i]
		p.kept = append(slices.Delete(p.kept, i, i+1), x)
		return x, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.time, ErrTooLong)
	defer cancel()
	r, err := replay(ctx, until{x.of.journal, x.index}, engine.New(x.of.options...), x.index, x.within(room), nil)
	if err != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, ErrTooLong):
			err = cause
		case errors.Is(err, journal.ErrTrimmed):
			err = fmt.Errorf("%w: %w", ErrTooOld, err)
		}
		return x, err
	}
	if r.at != x.index {
		return x, fmt.Errorf("shard: the journal ends at entry %d, before %d", r.at, x.index)
	}
	x.engine = r.engine
	x.engine.LookBack(x.now)
	p.keep(&x)
	return x, nil
}

// keep keeps a state, and drops the oldest ones that have no place beside it.
func (p *Past) keep(x *pastState) {
	bytes := x.bytes
	for _, k := range p.kept {
		bytes += k.bytes
	}
	for len(p.kept) > 0 && (len(p.kept) == pastKept || bytes > p.room) {
		bytes -= p.kept[0].bytes
		p.kept = slices.Delete(p.kept, 0, 1)
	}
	p.kept = append(p.kept, *x)
}

// within returns stages that end with the bounds of a question.
func (x *pastState) within(room int) stages {
	const between = 32 // portions
	return func(ctx context.Context, read func(context.Context, handOver) error, into *engine.Engine) error {
		measure := func() error {
			c := into.Counts()
			x.bytes = (c.Keys+c.Leases+c.Waiters+c.Sessions+c.Documents)*objectBytes + c.StateBytes
			if x.bytes > room {
				return ErrTooLarge
			}
			return nil
		}
		n := 0
		err := read(ctx, func(portion *portion) (*portion, error) {
			if err := ctx.Err(); err != nil {
				return portion, err
			}
			err := portion.fold(into)
			portion.clear()
			if n++; err == nil && n%between == 0 {
				err = measure()
			}
			return portion, err
		})
		if err == nil {
			err = measure()
		}
		return err
	}
}

// objectBytes is about how much memory a key, a session or a request takes with all that belongs to it.
const objectBytes = 1 << 10

// until is the part of a journal up to an index.
type until struct {
	journal.Journal
	index interlock.Index
}

func (u until) Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error) {
	return u.SnapshotAt(ctx, u.index)
}

// Oldest returns the oldest index that Past can answer about.
func (s *Shard) Oldest(ctx context.Context) (interlock.Index, error) {
	first := s.journal.First()
	if first == 1 {
		return 1, nil
	}
	oldest, upTo := interlock.Index(0), ^interlock.Index(0)
	for {
		at, r, err := s.journal.SnapshotAt(ctx, upTo)
		if err == nil && r != nil {
			err = r.Close()
		}
		if err != nil {
			return 0, err
		}
		if at == 0 || at+1 < first {
			return oldest, nil
		}
		oldest, upTo = at, at-1
	}
}

// IndexAt returns the index of the last entry up to a time. The times of entries of different namespaces
// may be out of order by margin. It returns 0 if all entries that are kept are later.
func (s *Shard) IndexAt(ctx context.Context, t engine.Time, margin time.Duration) (last interlock.Index, err error) {
	from, err := s.Seek(ctx, t.Add(-margin))
	if err != nil {
		return 0, err
	}
	end := s.At().Index
	pieces := Joiner{Midway: true}
	err = s.journal.Read(ctx, max(from, s.journal.First()), func(e journal.Entry) error {
		if e.Index > end {
			return errSought
		}
		entry, err := pieces.Join(e)
		if err != nil || entry == nil {
			return err
		}
		return record.DecodeEntry(entry, func(ev *record.Event) error {
			switch {
			case ev.At > t.Add(margin):
				return errSought
			case ev.At <= t:
				last = e.Index
			}
			return nil
		})
	})
	if errors.Is(err, errSought) {
		err = nil
	}
	return last, err
}
