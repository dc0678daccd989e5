package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// What stands in .interlock:
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
	// A link would lead the contents that are kept to where somebody else wants them.
	if info, err := d.root.Lstat(metaName); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory: remove it", metaName)
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

// lock keeps all other writers out, of this process and of others, until unlock. The
// operating system ends it with the process, whatever kills that.
func (d *Dir) lock(meta *os.Root) (unlock func(), err error) {
	d.mu.Lock()
	f, err := meta.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		d.mu.Unlock()
		return nil, errors.Join(fmt.Errorf("locking the directory: %w", err), f.Close())
	}
	return func() {
		f.Close()
		d.mu.Unlock()
	}, nil
}
