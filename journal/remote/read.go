package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// pageBytes is about how much is read at once.
const pageBytes = 4 << 20

// page is how many appends are read at once: few at first, and then as many as pageBytes
// holds, by the mean of the page before.
type page int

func (p *page) learn(list []frame) {
	bytes := 0
	for i := range list {
		bytes += frameHeader + len(list[i].body)
	}
	*p = page(min(max(1, pageBytes*len(list)/max(1, bytes)), 1000))
}

// frames reads appends from the one that holds index from, at most limit of them and
// none that begins after index to.
func (s *Store) frames(ctx context.Context, from, to interlock.Index, limit page) (list []frame, err error) {
	var got []Frame
	err = s.read(ctx, func(ctx context.Context) (err error) {
		got, err = s.driver.Frames(ctx, from, int(limit))
		return err
	})
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged {
		return nil, err
	}
	if err != nil {
		return nil, failed(fmt.Sprintf("reading the log from index %d", from), err)
	}
	for i := range got {
		f, err := decodeFrame(&got[i])
		if err != nil {
			return nil, err
		}
		if f.first > to {
			break
		}
		list = append(list, f)
	}
	return list, nil
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	j.mu.Lock()
	closed, first, tail := j.closed, j.first, j.tail
	j.mu.Unlock()
	switch {
	case closed:
		return fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	case from < first:
		return fmt.Errorf("%w: index %d, the first is %d", journal.ErrTrimmed, from, first)
	}
	limit := page(16)
	var before *frame
	for next := from; next <= tail.Index; {
		list, err := j.store.frames(ctx, next, tail.Index, limit)
		if damage, ok := errors.AsType[*journal.DamageError](err); ok && before != nil {
			damage.Index = before.last()
		}
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return j.missing(ctx, next, j.store.driver.Place("log/"))
		}
		for i := range list {
			f := &list[i]
			if err := j.continues(ctx, f, before, next); err != nil {
				return err
			}
			if f.last() == tail.Index && f.crc != tail.Chain {
				return &journal.DamageError{
					File: f.name, Offset: 4, Index: f.first - 1, Reason: "it is not the last append that was acknowledged",
				}
			}
			if err := f.visit(next, visit); err != nil {
				return err
			}
			before, next = f, f.last()+1
		}
		limit.learn(list)
	}
	return nil
}

// continues checks that a frame stands where index next is to be found.
func (j *Journal) continues(ctx context.Context, f, before *frame, next interlock.Index) error {
	if f.first > next {
		return j.missing(ctx, next, f.name)
	}
	bad := func(offset int64, reason string) error {
		return &journal.DamageError{File: f.name, Offset: offset, Index: next - 1, Reason: reason}
	}
	if before == nil {
		return nil
	}
	switch {
	case f.first != next:
		return bad(8, "its entries are there already")
	case f.prev != before.crc:
		return bad(28, "it does not continue the append before it")
	case f.epoch < before.epoch:
		return bad(16, "its epoch is older than that of the append before it")
	}
	return nil
}

// missing returns why an entry is not there: it was truncated, by a later owner or beside the
// reader, or lost.
func (j *Journal) missing(ctx context.Context, index interlock.Index, place string) error {
	first, err := j.store.oldest(ctx)
	switch {
	case err != nil:
		return err
	case first > index:
		return fmt.Errorf("%w: index %d, the first is %d", journal.ErrTrimmed, index, first)
	}
	return &journal.DamageError{
		File: place, Index: index - 1, Reason: fmt.Sprintf("entry %d is missing before it", uint64(index)),
	}
}
