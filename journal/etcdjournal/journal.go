package etcdjournal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Journal is one ownership of a store.
type Journal struct {
	store     *Store
	epoch     interlock.Epoch
	epochText string // the value of the key epoch as long as this is the owner
	copied    atomic.Bool
	low       atomic.Bool
	snapshots int // made by this owner; used by SaveSnapshot only

	stop    context.CancelFunc // ends the look-out for space
	watched chan struct{}      // closed when it has ended

	mu     sync.Mutex // guards the fields below; begin adds to calls under it
	tail   position
	first  interlock.Index
	dead   error // why it is not usable any more
	closed bool
	calls  sync.WaitGroup // those that write
}

var _ journal.Journal = (*Journal)(nil)

// Open takes the shard over: the owner before is fenced from here on. The error is
// ErrFenced when another one opened the store at the same moment, and may be tried again
// after any but *DamageError and ErrNewer.
func (s *Store) Open(ctx context.Context) (*Journal, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	j := &Journal{store: s, epoch: h.epoch + 1, watched: make(chan struct{})}
	j.epochText = fmt.Sprintf("%d %s", uint64(j.epoch), rand.Text())
	if err := j.fence(ctx, &h); err != nil {
		return nil, err
	}
	// From here on no other owner appends, so the tail that is read now stays.
	if h, err = s.head(ctx); err != nil {
		return nil, err
	}
	if h.epochText != j.epochText {
		return nil, fencedBy(j.epoch, h.epoch)
	}
	j.copied.Store(h.copied)
	j.tail = h.tail
	if err := j.write(ctx, nil); err != nil {
		return nil, err
	}
	if j.first, err = s.oldest(ctx); err != nil {
		return nil, err
	}
	at, err := s.newest(ctx)
	if err != nil {
		return nil, err
	}
	if j.first > at.index+1 {
		return nil, &journal.DamageError{
			File:   s.prefix + "log/",
			Reason: fmt.Sprintf("the oldest entry is %d, and the snapshot is of %d", uint64(j.first), uint64(at.index)),
		}
	}
	watch, stop := context.WithCancel(context.Background())
	j.stop = stop
	go j.watchSpace(watch)
	return j, nil
}

// fence makes j's epoch the newest one. It is carried out once, or not at all.
func (j *Journal) fence(ctx context.Context, h *head) error {
	s := j.store
	put := []clientv3.Op{clientv3.OpPut(s.key("epoch"), j.epochText)}
	if h.epochText == "" {
		put = append(put, clientv3.OpPut(s.key("format"), strconv.Itoa(formatNumber)))
	}
	var got *clientv3.TxnResponse
	_, err := s.attempts(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Txn(ctx).If(is(
			s.key("epoch"), h.epochText,
		)).Then(put...).Else(clientv3.OpGet(s.key("epoch"))).Commit()
		return err
	})
	switch {
	case err != nil && !noSpace(err):
		return unreachable(err)
	case err == nil && !got.Succeeded && valueOf(got, 0) != j.epochText:
		return fmt.Errorf("%w: at this moment", journal.ErrFenced)
	}
	// With "no space" it may have been carried out: Open reads which.
	return nil
}

// Epoch implements journal.Journal.
func (j *Journal) Epoch() interlock.Epoch { return j.epoch }

// Tail implements journal.Journal.
func (j *Journal) Tail() interlock.Index {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tail.index
}

// First implements journal.Journal.
func (j *Journal) First() interlock.Index {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first
}

// Low implements journal.Journal.
func (j *Journal) Low() bool { return j.low.Load() }

// Copied reports that the state was moved here, and may have been written on elsewhere:
// fences must jump ahead, and then Adopt be called.
func (j *Journal) Copied() bool { return j.copied.Load() }

// Adopt makes the store one that is not a copy any more.
func (j *Journal) Adopt() error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	err := j.guarded(context.Background(), clientv3.OpDelete(j.store.key("copied")))
	if err == nil {
		j.copied.Store(false)
	}
	return err
}

// begin admits a call that writes; when it returns nil the caller ends it with
// calls.Done.
func (j *Journal) begin() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	j.calls.Add(1)
	return nil
}

// usable returns why the journal cannot be used. The caller holds mu.
func (j *Journal) usable() error {
	if j.closed {
		return fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	}
	return j.dead
}

// fail makes the journal unusable.
func (j *Journal) fail(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dead == nil {
		j.dead = err
	}
	return j.dead
}

func fencedBy(mine, newer interlock.Epoch) error {
	return fmt.Errorf("%w: epoch %d was followed by %d", journal.ErrFenced, mine, newer)
}

// fenced interprets the value of the key epoch for this owner. It returns nil as long as it is the
// newest.
func (j *Journal) fenced(epochText string) error {
	if epochText == j.epochText {
		return nil
	}
	var newer interlock.Epoch
	_, _ = fmt.Sscanf(epochText, "%d", &newer)
	return j.fail(fencedBy(j.epoch, newer))
}

// Append implements journal.Journal. When ctx ends before etcd has answered, the outcome
// is unknown.
func (j *Journal) Append(ctx context.Context, first interlock.Index, entries [][]byte) error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	if tail := j.Tail(); first != tail+1 {
		return fmt.Errorf("%w: append at index %d, expected %d", journal.ErrMisuse, first, tail+1)
	}
	if err := journal.CheckEntries(entries); err != nil {
		return err
	}
	return j.write(ctx, entries)
}

// write appends a frame: checked entries, or the epoch record when there are none.
func (j *Journal) write(ctx context.Context, entries [][]byte) error {
	s, old := j.store, j.tail // no other goroutine changes it
	value, next := encodeFrame(old, j.epoch, entries)
	oldText := ""
	if old.index > 0 {
		oldText = old.String()
	}
	var got *clientv3.TxnResponse
	unsure, err := s.attempts(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Txn(ctx).
			If(is(s.key("epoch"), j.epochText), is(s.key("tail"), oldText)).
			Then(clientv3.OpPut(s.logKey(next.index), string(value)), clientv3.OpPut(s.key("tail"), next.String())).
			Else(clientv3.OpGet(s.key("epoch")), clientv3.OpGet(s.key("tail"))).
			Commit()
		return err
	})
	stored, epochText, tailText := false, "", ""
	switch {
	case err == nil && got.Succeeded:
		stored = true
	case err == nil:
		epochText, tailText = valueOf(got, 0), valueOf(got, 1)
	case noSpace(err):
		h, readErr := s.head(ctx)
		if readErr != nil {
			return j.fail(fmt.Errorf("%w: %w, then %w", journal.ErrFailed, err, readErr))
		}
		epochText, tailText = h.epochText, h.tailText
	default:
		return j.fail(fmt.Errorf("%w: the append at index %d: %w", journal.ErrFailed, old.index+1, err))
	}
	if !stored {
		if err := j.fenced(epochText); err != nil {
			return err
		}
		switch {
		case tailText == next.String(): // an attempt with a lost answer, or one that was answered with "no space"
		case err != nil && tailText == oldText && !unsure:
			return fmt.Errorf("%w: %w", journal.ErrNoSpace, err)
		default:
			return j.fail(fmt.Errorf(
				"%w: the append at index %d found the tail at %q: %w", journal.ErrFailed, old.index+1, tailText, errors.Join(err),
			))
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tail = next
	return nil
}

// guarded carries operations out if this is still the owner. They may be carried out
// twice. An error other than ErrFenced leaves the journal usable.
func (j *Journal) guarded(ctx context.Context, ops ...clientv3.Op) error {
	_, _, err := j.guardedIf(ctx, nil, ops...)
	return err
}

// guardedIf is guarded if a condition holds besides. done is false if that alone did not;
// else revision is that of the store after it.
func (j *Journal) guardedIf(
	ctx context.Context, also []clientv3.Cmp, ops ...clientv3.Op,
) (revision int64, done bool, err error) {
	s := j.store
	conditions := append([]clientv3.Cmp{is(s.key("epoch"), j.epochText)}, also...)
	var got *clientv3.TxnResponse
	_, err = s.attempts(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Txn(ctx).If(conditions...).Then(ops...).Else(clientv3.OpGet(s.key("epoch"))).Commit()
		return err
	})
	switch {
	case noSpace(err):
		return 0, false, fmt.Errorf("%w: %w", journal.ErrNoSpace, err)
	case err != nil:
		return 0, false, fmt.Errorf("%w: %w", journal.ErrFailed, err)
	case got.Succeeded:
		return got.Header.Revision, true, nil
	}
	return 0, false, j.fenced(valueOf(got, 0))
}

// Barrier implements journal.Journal by one linearizable read.
func (j *Journal) Barrier(ctx context.Context) error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	s := j.store
	var got *clientv3.GetResponse
	err := s.read(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Get(ctx, s.key("epoch"))
		return err
	})
	switch {
	case err != nil:
		return j.fail(fmt.Errorf(
			"%w: nobody can tell whether epoch %d is still the newest: %w", journal.ErrFailed, j.epoch, err,
		))
	case len(got.Kvs) == 0:
		return j.fenced("")
	}
	return j.fenced(string(got.Kvs[0].Value))
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.calls.Wait()
	j.stop()
	<-j.watched
	return nil
}
