package filejournal

import (
	"errors"
	"io"
	"syscall"
)

// directory is the one directory that a journal lives in. It is an interface so
// that tests can put a disk behind it that forgets what was not synced.
type directory interface {
	// Open takes the flags of os.OpenFile.
	Open(name string, flag int) (file, error)
	// Rename replaces a file of the new name. Like Open and Remove it is durable
	// only after Sync.
	Rename(from, to string) error
	Remove(name string) error
	// Names lists the files, in no particular order.
	Names() ([]string, error)
	Sync() error
	Close() error
}

// file is one open file. ReadAt and WriteAt may be called concurrently.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Allocate makes the file size bytes long and takes the blocks for it, or fails
	// for want of space without using the space that is left.
	Allocate(size int64) error
	// Sync makes all bytes and the size durable. After an error nothing is known.
	Sync() error
	// ID names the file on this machine: device and inode.
	ID() (device, inode uint64, err error)
}

// noSpace reports whether err says that the disk or the quota is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
