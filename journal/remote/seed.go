package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// ErrNotEmpty: the store has been written to already.
var ErrNotEmpty = errors.New("there is a journal already")

// seedWord begins the word of the owner of a store that was seeded, and that no server has opened since.
const seedWord = "seed-"

// Seeded reports whether the store was seeded, and never opened.
func (s *Store) Seeded(ctx context.Context) (bool, error) {
	h, err := s.head(ctx)
	return strings.HasPrefix(h.Owner.Word, seedWord), err
}

// Seed makes an empty store go on from a state that was written elsewhere: after index at, of
// epoch, as a snapshot. The first to open the store finds it to be a copy. A store that was seeded, and never
// opened, is one that an earlier try has left behind: it is seeded anew.
//
// mayFill is asked after the store was looked at, and before it is written: a later try, which mayFill knows
// of, changes the store first, so that no write of this one reaches what it has filled.
func (s *Store) Seed(
	ctx context.Context, mayFill func(context.Context) error, epoch interlock.Epoch, at interlock.Index,
	write func(io.Writer) error,
) error {
	if at == 0 || epoch == 0 {
		return fmt.Errorf("%w: a state after no entry", journal.ErrMisuse)
	}
	was, err := s.head(ctx)
	if err != nil {
		return err
	}
	if (was.Owner != Owner{}) && !strings.HasPrefix(was.Owner.Word, seedWord) {
		return ErrNotEmpty
	}
	if err := mayFill(ctx); err != nil {
		return err
	}
	n := snapshot{index: at, epoch: epoch}
	folder := n.folder()
	if err := n.fill(write, func(i int, chunk []byte) error {
		return s.onlyIf(ctx, Owner{}, func(ctx context.Context) (done bool, err error) {
			_, done, err = s.driver.Put(ctx, was, chunkName(folder, i), chunk, AnyVersion)
			return done, err
		})
	}); err != nil {
		return err
	}
	h := Head{
		Owner: Owner{Epoch: epoch, Word: fmt.Sprintf("%s%08x", seedWord, n.crc)}, Tail: Position{Index: at}, Moved: true,
	}
	return s.onlyIf(ctx, h.Owner, func(ctx context.Context) (bool, error) {
		return s.driver.Found(ctx, was.Owner, h, stateName, []byte(n.String()))
	})
}

// onlyIf makes a request that a store refuses which is not as it was. owner is what it makes of the owner, so that
// a repetition is distinguished from another journal.
func (s *Store) onlyIf(ctx context.Context, owner Owner, request func(context.Context) (bool, error)) error {
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
