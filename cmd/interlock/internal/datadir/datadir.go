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
	"github.com/interlockdev/interlock/placement"
)

// NoJournal explains err where it means that dir has no journal.
func NoJournal(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no journal in %s: name the directory that serve --data-dir was given", Shown(dir))
	}
	return err
}

// OpenError adds the next step to an error of the journal.
func OpenError(dir string, err error) error {
	var damage *journal.DamageError
	var filling *placement.FillingError
	switch {
	case errors.As(err, &damage) && IsURL(dir):
		return fmt.Errorf(
			"%w; nothing was changed: restore a backup into an empty place with --restore FILE, or ask for help", err,
		)
	case errors.As(err, &damage):
		return fmt.Errorf(
			"%w; nothing was changed: run `interlock admin journal verify %s`, restore a backup with --restore FILE, or ask for help with the files",
			err, cli.Quote(dir),
		)
	case errors.Is(err, journal.ErrFilling):
		return cli.ExitWith(cli.ExitFilling, fmt.Errorf(
			"%w: a restore or migration into %s was interrupted or goes on: run the same command again, to begin anew",
			err, dir,
		))
	case errors.As(err, &filling) && filling.Act != "":
		return cli.ExitWith(cli.ExitFilling, fmt.Errorf(
			"%w: wait for its end, or, if it was interrupted, run it again for %s: it begins anew, and until then no server "+
				"opens the journal",
			err, dir,
		))
	case errors.Is(err, remote.ErrUnsafe):
		return cli.ExitWith(cli.ExitUsage, err)
	case errors.Is(err, journal.ErrNewer):
		return fmt.Errorf("%w: start that version or a later one", err)
	case errors.Is(err, journal.ErrNoSpace):
		return fmt.Errorf("%w: make room on the disk of %s, then start the server again", err, Shown(dir))
	}
	return DiskError(dir, err)
}

// FilledByOthers is the error of an act that fills a journal and finds a shard that a server has opened, in a version
// that does not know the act's mark.
func FilledByOthers(where string, shard int) error {
	return cli.ExitWith(cli.ExitFilling, fmt.Errorf(
		"a server of an older version has opened shard %d of %s before it was filled: stop it, and fill an empty place",
		shard, where,
	))
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
			fmt.Errorf(
				"%w: the file system of %s is read-only: mount it for writing, after a look at why it is not", err, Shown(dir),
			),
		)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return cli.ExitWith(
			cli.ExitDisk, fmt.Errorf("%w: make room on the disk of %s, then start the server again", err, Shown(dir)),
		)
	case errors.Is(err, syscall.EIO):
		return cli.ExitWith(cli.ExitDisk, fmt.Errorf("%w: the disk of %s has failed", err, Shown(dir)))
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
