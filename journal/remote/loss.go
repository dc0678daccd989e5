package remote

import (
	"context"
	"fmt"

	"github.com/interlockdev/interlock/journal"
)

// lost returns an ErrLost if the last acknowledged entry of this owner is not in the log any more. A
// log that cannot be read proves nothing.
func (j *Journal) lost(ctx context.Context, tail Position, h Head) error {
	switch {
	case h.Tail.Index < tail.Index:
		return fmt.Errorf(
			"%w: entry %d was durable in epoch %d, and the log ends at %d: the storage has gone back to an older state",
			journal.ErrLost, tail.Index, j.owner.Epoch, h.Tail.Index,
		)
	case h.Owner == j.owner:
		return nil
	case h.Owner.Epoch <= j.owner.Epoch:
		return fmt.Errorf(
			"%w: epoch %d was opened, and the newest is %d of another owner: the storage has gone back to an older state",
			journal.ErrLost, j.owner.Epoch, h.Owner.Epoch,
		)
	}
	list, err := j.store.frames(context.WithoutCancel(ctx), tail.Index, tail.Index, 1)
	if err != nil || len(list) == 0 || list[0].first > tail.Index {
		return nil
	}
	if f := &list[0]; f.last() != tail.Index || f.crc != tail.Chain {
		return fmt.Errorf(
			"%w: entry %d of epoch %d was durable, and another one is in its place: the storage has gone back to an older state",
			journal.ErrLost, tail.Index, j.owner.Epoch,
		)
	}
	return nil
}

// declareLost ends every ownership of a log that has lost its end, and marks the journal as moved: the
// next Open lets fences jump. The owner of now may not know of the loss.
func (j *Journal) declareLost(ctx context.Context, h Head) error {
	ctx = context.WithoutCancel(ctx)
	for {
		next := Owner{max(h.Owner.Epoch, j.owner.Epoch) + 1, "lost-" + j.store.around.Word()}
		done := false
		_, err := j.store.attempts(ctx, func(ctx context.Context) (err error) {
			done, err = j.store.driver.Fence(ctx, h.Owner, next, true)
			return err
		})
		if err != nil || done {
			return err
		}
		was := h.Owner
		if h, err = j.store.head(ctx); err != nil || h.Owner == next {
			return err
		}
		if h.Owner == was {
			return fmt.Errorf("%w: the mark of a loss was refused", journal.ErrFailed)
		}
	}
}
