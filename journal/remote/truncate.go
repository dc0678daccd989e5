package remote

import (
	"context"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Truncate implements journal.Journal. It deletes appends that lie below before as a whole, and
// never the last one.
func (j *Journal) Truncate(ctx context.Context, before interlock.Index) error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	s := j.store
	snapshot, _, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if before > snapshot.index+1 {
		if err := j.stillOwner(ctx); err != nil {
			return err
		}
		return fmt.Errorf("%w: truncate before %d, the snapshot is at %d", journal.ErrMisuse, before, snapshot.index)
	}
	end := min(before, j.Tail())
	for {
		var dropped interlock.Index
		err := j.must(ctx, func(ctx context.Context, by Head) (done bool, err error) {
			dropped, done, err = s.driver.Drop(ctx, by, end)
			return done || err == nil && dropped == 0, err
		})
		if err != nil {
			return err
		}
		if dropped == 0 {
			return j.stillOwner(ctx) // the law guards every call, also one that has nothing to do
		}
		j.mu.Lock()
		j.first = max(j.first, dropped+1)
		j.mu.Unlock()
	}
}
