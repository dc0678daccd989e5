package device

import "io"

// Directory is the one directory that a journal lives in.
type Directory interface {
	// Open takes the flags of os.OpenFile.
	Open(name string, flag int) (File, error)
	// Rename replaces a file of the new name. Like Open and Remove it is durable
	// only after Sync.
	Rename(from, to string) error
	Remove(name string) error
	// Names lists the files, in no particular order.
	Names() ([]string, error)
	Sync() error
	Close() error
}

// File is one open file. ReadAt and WriteAt may be called concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Allocate makes the file size bytes long and takes the blocks for it, or fails
	// for want of space without using the space that is left.
	Allocate(size int64) error
	// Zero writes zeros to a range, as WriteAt would; what is large should not be copied
	// to memory first.
	Zero(off, size int64) error
	// Sync makes all bytes and the size durable. After an error nothing is known.
	Sync() error
	// ID names the file on this machine: device and inode.
	ID() (device, inode uint64, err error)
}
