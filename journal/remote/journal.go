package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Journal is one ownership of a store.
type Journal struct {
	store     *Store
	owner     Owner
	moved     atomic.Bool
	low       atomic.Bool
	snapshots int // made by this owner; used by SaveSnapshot only

	stop    context.CancelFunc // ends the look-out for space
	watched <-chan struct{}    // closed when it has ended

	mu     sync.Mutex // guards the fields below; begin adds to calls under it
	tail   Position
	first  interlock.Index
	dead   error // why it is not usable any more
	closed bool
	calls  sync.WaitGroup // those that write
	open   map[string]int // readers of snapshots, by folder

	emptied map[stretch]bool // without chunks; used by SaveSnapshot only
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
	j := &Journal{store: s, owner: Owner{h.Owner.Epoch + 1, s.around.Word()}, open: map[string]int{}}
	if err := j.takeOver(ctx, h.Owner); err != nil {
		return nil, err
	}
	if j.first, err = s.oldest(ctx); err != nil {
		return nil, err
	}
	at, _, err := s.newest(ctx)
	if err != nil {
		return nil, err
	}
	if j.first > at.index+1 {
		return nil, s.damaged("log/", fmt.Sprintf(
			"the oldest entry is %d, and the snapshot is of %d", uint64(j.first), uint64(at.index),
		))
	}
	watch, stop := context.WithCancel(context.Background())
	j.stop = stop
	j.watched = j.watchSpace(watch)
	return j, nil
}

// takeOver makes j the owner and appends its epoch record.
func (j *Journal) takeOver(ctx context.Context, was Owner) error {
	refused := j.fence(ctx, was)
	if refused != nil && !noSpace(refused) {
		return refused
	}
	tried := Position{Index: ^interlock.Index(0)}
	for {
		// From here on no other owner appends, so the tail that is read now stays. Where the epoch
		// record itself is the fence, the owner before may come first, and the next place is tried.
		h, err := j.store.head(ctx)
		switch {
		case err != nil:
			return err
		case refused != nil && h.Owner != j.owner:
			return refused
		case h.Owner != j.owner && h.Owner.Epoch >= j.owner.Epoch:
			return fencedBy(j.owner.Epoch, h.Owner.Epoch)
		case h.Tail == tried:
			return fmt.Errorf("%w: the epoch record was refused at index %d", journal.ErrFailed, h.Tail.Index+1)
		}
		j.moved.Store(h.Moved)
		j.tail, tried = h.Tail, h.Tail
		frame, next := encodeFrame(h.Tail, j.owner.Epoch, nil)
		found, err := j.send(ctx, next, frame)
		switch {
		case err != nil:
			return err
		case found.Owner == j.owner && found.Tail == next:
			j.tail = next
			return nil
		}
	}
}

// fence makes j the newest owner. It is carried out once, or not at all. With "no space" it may have
// been carried out: takeOver reads which.
func (j *Journal) fence(ctx context.Context, was Owner) error {
	done := false
	_, err := j.store.attempts(ctx, func(ctx context.Context) (err error) {
		done, err = j.store.driver.Fence(ctx, was, j.owner, false)
		return err
	})
	if err != nil || done {
		return err
	}
	h, err := j.store.head(ctx)
	if err == nil && h.Owner != j.owner {
		err = fmt.Errorf("%w: at this moment", journal.ErrFenced)
	}
	return err
}

// Epoch implements journal.Journal.
func (j *Journal) Epoch() interlock.Epoch { return j.owner.Epoch }

// Tail implements journal.Journal.
func (j *Journal) Tail() interlock.Index { return j.position().Index }

func (j *Journal) position() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tail
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
func (j *Journal) Copied() bool { return j.moved.Load() }

// Adopt makes the store one that is not a copy any more.
func (j *Journal) Adopt() error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	err := j.must(context.Background(), func(ctx context.Context, by Head) (bool, error) {
		return j.store.driver.Adopt(ctx, by.Owner)
	})
	if err == nil {
		j.moved.Store(false)
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

// fenced interprets a head for this owner. It returns nil as long as it is the newest and nothing is
// lost. tail is this owner's from before the head was read.
func (j *Journal) fenced(ctx context.Context, tail Position, h Head) error {
	if lost := j.lost(ctx, tail, h); lost != nil {
		return j.fail(errors.Join(lost, j.declareLost(ctx, h)))
	}
	if h.Owner == j.owner {
		return nil
	}
	return j.fail(fencedBy(j.owner.Epoch, h.Owner.Epoch))
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
