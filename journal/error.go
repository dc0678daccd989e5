package journal

import (
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
)

var (
	// ErrFenced: another owner has opened a later epoch.
	ErrFenced = errors.New("journal: another server has taken over the shard")

	// ErrLocked: another process holds the journal. Only Open returns it, and only
	// where a backend excludes by a lock rather than by the epoch alone.
	ErrLocked = errors.New("journal: another server holds it")

	// ErrLost: entries that were acknowledged are not in the journal any more. The storage has
	// gone back to an older state, as a database does when a replica that lags behind is promoted. The
	// next Open lets fences jump.
	ErrLost = errors.New("journal: acknowledged entries are lost")

	// ErrNoSpace: nothing was written, and the journal is still usable.
	ErrNoSpace = errors.New("journal: no space left")

	// ErrNoFiles: the process or the machine has no file descriptor left. Nothing was
	// written, and the journal is still usable: others will be closed. Where ErrNoSpace
	// is promised, an error is both.
	ErrNoFiles = errors.New("journal: out of file descriptors")

	// ErrFailed: the storage failed (fsync, I/O). The outcome is unknown, and the
	// process must end: the kernel may already have dropped the pages.
	ErrFailed = errors.New("journal: storage failed")

	// ErrTrimmed: the wanted entries were truncated.
	ErrTrimmed = errors.New("journal: the entries are no longer kept")

	// ErrFilling: a restore or a migration into the journal has not ended, so it is not whole.
	ErrFilling = errors.New("journal: it is not filled to the end")

	// ErrNewer: a newer version of Interlock wrote it.
	ErrNewer = errors.New("journal: written by a newer version")

	// ErrMisuse: the caller broke the contract (wrong first index, empty entry, too
	// many bytes, use after Close). Nothing was written.
	ErrMisuse = errors.New("journal: misuse")
)

// DamageError reports where stored bytes differ from the written ones. Nothing was changed. It is
// never returned for the torn tail of a crash, which is repaired.
type DamageError struct {
	File   string // or a backend's name for the place
	Offset int64
	Index  interlock.Index // the last good index before it
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("journal damaged: %s at byte %d, after index %d: %s", e.File, e.Offset, e.Index, e.Reason)
}
