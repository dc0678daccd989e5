package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// NoJournal explains err where it means that dir has no journal.
func NoJournal(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no journal in %s: name the directory that serve --data-dir was given", dir)
	}
	return err
}

// OpenError adds the next step to an error of the journal.
func OpenError(dir string, err error) error {
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return fmt.Errorf(
			"%w; nothing was changed: run `interlock admin journal verify %s`, restore a backup with --restore FILE, or ask for help with the files",
			err, cli.Quote(dir),
		)
	case errors.Is(err, remote.ErrUnsafe):
		return cli.ExitWith(cli.ExitUsage, err)
	case errors.Is(err, journal.ErrNewer):
		return fmt.Errorf("%w: start that version or a later one", err)
	case errors.Is(err, journal.ErrNoSpace):
		return fmt.Errorf("%w: make room on the disk of %s, then start the server again", err, dir)
	}
	return DiskError(dir, err)
}

// DiskError tells an error of the disk itself, whatever was done with it, from others.
func DiskError(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return cli.ExitWith(
			cli.ExitFailure, fmt.Errorf("%w: allow the server more open files (ulimit -n), then start it again", err),
		)
	case errors.Is(err, syscall.EROFS):
		return cli.ExitWith(
			cli.ExitDisk,
			fmt.Errorf("%w: the file system of %s is read-only: mount it for writing, after a look at why it is not", err, dir),
		)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return cli.ExitWith(
			cli.ExitDisk, fmt.Errorf("%w: make room on the disk of %s, then start the server again", err, dir),
		)
	case errors.Is(err, syscall.EIO):
		return cli.ExitWith(cli.ExitDisk, fmt.Errorf("%w: the disk of %s has failed", err, dir))
	}
	return err
}

// ReplayError returns the meaning of an error of opening the shard. The entries read equal
// those written, so an entry that cannot be replayed is damage all the same.
func ReplayError(err error) error {
	if code := cli.ExitCode(err); code != cli.ExitFailure || errors.Is(err, context.Canceled) {
		return err
	}
	return cli.ExitWith(cli.ExitDamaged, err)
}
