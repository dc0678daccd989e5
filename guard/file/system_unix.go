//go:build unix

package file

import (
	"errors"
	"syscall"
)

// openWithoutWaiting keeps an open from waiting at a pipe that took a file's place.
const openWithoutWaiting = syscall.O_NONBLOCK

// sync makes the names in a directory durable.
func (d *Dir) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
