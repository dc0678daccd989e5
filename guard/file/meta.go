package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/interlockdev/interlock/internal/filelock"
)

// The content of .interlock:
//
//	.gitignore   so that git does not see the directory
//	lock         locked during each verification with its write
//	base/HASH    contents that were read or replaced, by their version
//	last/HASH    the last writes of a file, by the hash of its path
const (
	ignoreName = ".gitignore"
	lockName   = "lock"
	baseName   = "base"
	lastName   = "last"
)

// open makes .interlock where it is missing, and opens it.
func (d *Dir) open() (*os.Root, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.meta != nil {
		return d.meta, nil
	}
	if err := d.root.Mkdir(metaName, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	// A link would lead the contents that are kept to where another user wants them.
	if info, err := d.root.Lstat(metaName); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: remove it", metaName)
	}
	meta, err := d.root.OpenRoot(metaName)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{baseName, lastName} {
		if err := meta.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, meta.Close())
		}
	}
	if _, err := meta.Lstat(ignoreName); errors.Is(err, fs.ErrNotExist) {
		if err := meta.WriteFile(ignoreName, []byte("*\n"), 0o666); err != nil {
			return nil, errors.Join(err, meta.Close())
		}
	}
	d.meta = meta
	return meta, nil
}

// lockPause is how long a write waits at most before it looks again whether another
// process has finished its own.
const lockPause = 20 * time.Millisecond

// lock keeps all other writers out, of this process and of others, until unlock. The
// operating system ends it with the process, whatever kills that; a process that is
// stopped keeps it.
func (d *Dir) lock(ctx context.Context, meta *os.Root) (unlock func(), err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f, err := meta.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		<-d.turn
		return nil, err
	}
	unlock = func() {
		_ = f.Close() // which releases the lock
		<-d.turn
	}
	for pause := time.Millisecond; ; pause = min(2*pause, lockPause) {
		switch held, err := filelock.Try(f); {
		case err != nil:
			unlock()
			return nil, fmt.Errorf("locking the directory: %w", err)
		case !held:
			return unlock, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			unlock()
			return nil, context.Cause(ctx)
		}
	}
}
