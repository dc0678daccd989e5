package datadir

import (
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/shard"
)

// Reader reads the events of a journal's entries, which it is handed one after
// the other.
type Reader struct{ pieces shard.Joiner }

// NewReader returns a reader that may begin at any entry.
func NewReader() *Reader { return &Reader{shard.Joiner{Midway: true}} }

// next returns the entry of the step that ends with e, nil if none does: e opens an epoch, or more
// of the step follows.
func (r *Reader) next(e journal.Entry) ([]byte, error) {
	entry, err := r.pieces.Join(e)
	if err != nil {
		return nil, cli.ExitWith(cli.ExitDamaged, err)
	}
	return entry, nil
}

// Read reads the events of the step that ends with this entry.
func (r *Reader) Read(e journal.Entry, visit func(*record.Event) error) error {
	entry, err := r.next(e)
	if entry == nil {
		return err
	}
	var stopped error
	err = record.DecodeEntry(entry, func(ev *record.Event) error {
		stopped = visit(ev)
		return stopped
	})
	if err == nil || stopped != nil {
		return err
	}
	return unreadable(e.Index, err)
}

// unreadable reports where the entry is that could not be decoded. One that passes its checksum and
// is not of a newer version is damage all the same.
func unreadable(at interlock.Index, err error) error {
	err = fmt.Errorf("entry %s cannot be read: %w", at, err)
	if errors.Is(err, record.ErrNewer) {
		return err
	}
	return cli.ExitWith(cli.ExitDamaged, err)
}

// Readable refuses the entries that this program cannot read, in the order of a
// journal, which may begin between two pieces.
func Readable() func(journal.Entry) error {
	r := NewReader()
	return func(e journal.Entry) error {
		entry, err := r.next(e)
		if entry == nil {
			return err
		}
		if err := record.CheckEntry(entry); err != nil {
			return unreadable(e.Index, err)
		}
		return nil
	}
}
