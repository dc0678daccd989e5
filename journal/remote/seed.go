package remote

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// ErrNotEmpty: the store has been written to already.
var ErrNotEmpty = errors.New("there is a journal already")

// Seed makes an empty store go on from a state that was written elsewhere: after index at, of
// epoch, as a snapshot. It is carried out as a whole or not at all, and may be repeated. The
// first to open the store finds it to be a copy.
func (s *Store) Seed(
	ctx context.Context, epoch interlock.Epoch, at interlock.Index, write func(io.Writer) error,
) error {
	if at == 0 || epoch == 0 {
		return fmt.Errorf("%w: a state after no entry", journal.ErrMisuse)
	}
	n := snapshot{index: at, epoch: epoch}
	folder := n.folder()
	if err := n.fill(write, func(i int, chunk []byte) error {
		return s.onlyIfEmpty(ctx, Owner{}, func(ctx context.Context) (done bool, err error) {
			_, done, err = s.driver.Put(ctx, Head{}, chunkName(folder, i), chunk, AnyVersion)
			return done, err
		})
	}); err != nil {
		return err
	}
	h := Head{
		Owner: Owner{Epoch: epoch, Word: fmt.Sprintf("seed-%08x", n.crc)}, Tail: Position{Index: at}, Moved: true,
	}
	return s.onlyIfEmpty(ctx, h.Owner, func(ctx context.Context) (bool, error) {
		return s.driver.Found(ctx, h, stateName, []byte(n.String()))
	})
}

// onlyIfEmpty makes a request that a journal refuses. owner is what it makes of the owner, so that
// a repetition is distinguished from another journal.
func (s *Store) onlyIfEmpty(ctx context.Context, owner Owner, request func(context.Context) (bool, error)) error {
	done := false
	_, err := s.attempts(ctx, func(ctx context.Context) (err error) {
		done, err = request(ctx)
		return err
	})
	if err != nil || done {
		return err
	}
	h, err := s.head(ctx)
	if err == nil && (h.Owner != owner || owner == Owner{}) {
		err = ErrNotEmpty
	}
	return err
}
