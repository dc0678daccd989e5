package sim

import (
	"context"
	"errors"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// store is where the journal of a shard lives, longer than any host.
type store interface {
	// open hands the journal to an owner.
	open(o *owner) (journal.Journal, error)
	// excuses reports whether the faults of the world explain that an owner cannot begin its term.
	excuses(err error) bool
	// arm prepares a fault for the next write of an owner, which may be deadly, and armSnapshot one for its next
	// snapshot. What was not used up by then is dropped by disarm.
	arm(o *owner)
	armSnapshot(o *owner)
	disarm()
	// dead reports whether the owner's machine has stopped in the middle of something.
	dead(o *owner) bool
	// began is called when an owner has begun its term, and failed when it is finished.
	began()
	failed(o *owner, err error)
	// died is called when an owner is gone; power means that its machine is, too.
	died(o *owner, power bool)
	// full sets whether there is no space.
	full(full bool)
	// settle ends all faults.
	settle()
}

// tap is a journal that shows the audit what becomes durable.
type tap struct {
	journal.Journal
	o *owner
}

func (t *tap) Append(ctx context.Context, first interlock.Index, entries [][]byte) error {
	err := t.Journal.Append(ctx, first, entries)
	if err == nil {
		t.o.l.audit.appended(t.o, t.Epoch(), first, entries)
	} else if !errors.Is(err, journal.ErrNoSpace) && !errors.Is(err, journal.ErrFenced) {
		t.o.h.w.totals.Unknown++
	}
	return err
}

func (t *tap) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	err := t.Journal.SaveSnapshot(ctx, at, write)
	if err == nil {
		t.o.h.w.totals.Snapshots++
	}
	return err
}
