package shard

import (
	"context"
	"errors"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// seekWithin is how many entries Seek leaves to its caller: fewer are read as fast as they are
// divided once more.
const seekWithin = 4096

var errSought = errors.New("shard: the entry was found")

// Seek returns an index that lies before all entries from a time on, and at most seekWithin entries
// before the first one that is as late. Entries of one namespace are in the order of their times, and
// those of different ones nearly: a caller leaves a margin. It halves the journal again and again, and
// reads one entry for each half.
func (s *Shard) Seek(ctx context.Context, t engine.Time) (interlock.Index, error) {
	low, high := s.journal.First(), s.At().Index+1
	for high > low && high-low > seekWithin {
		middle := low + (high-low)/2
		at, index, err := s.timeAt(ctx, middle, high)
		switch {
		case errors.Is(err, journal.ErrTrimmed): // the beginning was cut off meanwhile
			low = max(low, s.journal.First())
		case err != nil:
			return 0, err
		case index >= high || at >= t:
			high = middle
		default:
			low = index
		}
	}
	return min(low, high), nil
}

// timeAt returns the time and the index of the first whole entry from an index on; end if there is
// none before that.
func (s *Shard) timeAt(
	ctx context.Context, from, end interlock.Index,
) (at engine.Time, index interlock.Index, err error) {
	pieces := Joiner{Midway: true}
	index = end
	err = s.journal.Read(ctx, from, func(e journal.Entry) error {
		if e.Index >= end {
			return errSought
		}
		entry, err := pieces.Join(e)
		if err != nil || entry == nil {
			return err
		}
		err = record.DecodeEntry(entry, func(ev *record.Event) error {
			at, index = ev.At, e.Index
			return errSought
		})
		return err
	})
	if errors.Is(err, errSought) {
		err = nil
	}
	return at, index, err
}
