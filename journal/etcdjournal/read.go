package etcdjournal

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// pageBytes is about how much is read at once.
const pageBytes = 4 << 20

// page is how many appends are read at once: few at first, and then as many as pageBytes
// holds, by the mean of the page before.
type page int64

func (p *page) learn(appends, bytes int) {
	*p = page(min(max(1, pageBytes*appends/max(1, bytes)), 1000))
}

// appends reads frames from the one that holds index from, at most limit of them and
// none that begins after index to.
func (s *Store) appends(
	ctx context.Context, from, to interlock.Index, limit page,
) (list []frame, bytes int, err error) {
	var got *clientv3.GetResponse
	err = s.read(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Get(ctx, s.logKey(from), clientv3.WithRange(s.logEnd()), clientv3.WithLimit(int64(limit)))
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("%w: reading the log from index %d: %w", journal.ErrFailed, from, err)
	}
	for _, kv := range got.Kvs {
		last, err := s.logIndex(kv.Key)
		if err != nil {
			return nil, 0, err
		}
		f, err := decodeFrame(string(kv.Key), last, kv.Value)
		if err != nil {
			return nil, 0, err
		}
		if f.first > to {
			break
		}
		list = append(list, f)
		bytes += len(kv.Value)
	}
	return list, bytes, nil
}

// oldest is the first index that is kept.
func (s *Store) oldest(ctx context.Context) (interlock.Index, error) {
	list, _, err := s.appends(ctx, 0, ^interlock.Index(0), 1)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, s.damaged("log/", "there are no entries")
	}
	return list[0].first, nil
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
	for next := from; next <= tail.index; {
		list, bytes, err := j.store.appends(ctx, next, tail.index, limit)
		if damage, ok := errors.AsType[*journal.DamageError](err); ok && before != nil {
			damage.Index = before.last()
		}
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return j.missing(ctx, next, tail.index)
		}
		for i := range list {
			f := &list[i]
			if err := j.continues(ctx, f, before, next); err != nil {
				return err
			}
			if f.last() == tail.index && f.crc != tail.chain {
				return &journal.DamageError{
					File: f.key, Offset: 4, Index: f.first - 1, Reason: "it is not the last append that was acknowledged",
				}
			}
			if err := f.visit(next, visit); err != nil {
				return err
			}
			before, next = f, f.last()+1
		}
		limit.learn(len(list), bytes)
	}
	return nil
}

// continues checks that a frame stands where index next is to be found.
func (j *Journal) continues(ctx context.Context, f, before *frame, next interlock.Index) error {
	if f.first > next {
		return j.missing(ctx, next, f.last())
	}
	bad := func(offset int64, reason string) error {
		return &journal.DamageError{File: f.key, Offset: offset, Index: next - 1, Reason: reason}
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
func (j *Journal) missing(ctx context.Context, index, seen interlock.Index) error {
	first, err := j.store.oldest(ctx)
	switch {
	case err != nil:
		return err
	case first > index:
		return fmt.Errorf("%w: index %d, the first is %d", journal.ErrTrimmed, index, first)
	}
	return &journal.DamageError{
		File: j.store.logKey(seen), Index: index - 1, Reason: fmt.Sprintf("entry %d is missing before it", uint64(index)),
	}
}
