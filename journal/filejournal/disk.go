package filejournal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/interlockdev/interlock/internal/filelock"
	"github.com/interlockdev/interlock/journal"
)

// disk is a directory of the operating system.
type disk struct {
	root   *os.Root
	handle *os.File // of the directory itself: carries the lock, and is synced
	kept   *descriptors
}

// openDisk opens a directory that is there.
func openDisk(path string) (*disk, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	handle, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &disk{root: root, handle: handle}, nil
}

// lockDisk opens a directory for its only owner, and creates it where it is
// missing. The lock is on the directory itself, so that there is no lock file to
// delete, and it ends with the process whatever kills it.
func lockDisk(path string) (*disk, error) {
	if !canOwn {
		return nil, fmt.Errorf(
			"journal directory %s: this system can neither lock nor sync a directory: "+
				"run the server on Linux or macOS, or keep the journal in etcd (--journal)", path,
		)
	}
	if err := makeDirectory(path); err != nil {
		return nil, err
	}
	d, err := openDisk(path)
	if err != nil {
		return nil, err
	}
	if name := networkFileSystem(d.handle); name != "" {
		d.Close()
		return nil, fmt.Errorf(
			"journal directory %s is on %s, a network file system, where neither its lock nor its syncs can be relied on: "+
				"choose a local disk",
			path, name,
		)
	}
	held, err := filelock.Try(d.handle)
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("locking the journal directory %s: %w", path, err)
	}
	if held {
		d.Close()
		return nil, fmt.Errorf("%w: %s is in use: stop that server or choose another directory", journal.ErrLocked, path)
	}
	d.kept = new(descriptors)
	d.kept.fill()
	return d, nil
}

// makeDirectory creates path and makes the names of all that it created durable.
func makeDirectory(path string) error {
	switch _, err := os.Stat(path); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(filepath.Clean(path))
	if err := makeDirectory(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	handle, err := os.Open(parent)
	if err != nil {
		return err
	}
	defer handle.Close()
	return handle.Sync()
}

func (d *disk) Open(name string, flag int) (file, error) {
	open := func() (*os.File, error) { return d.root.OpenFile(name, flag, 0o600) }
	f, err := open()
	if flag&os.O_RDWR != 0 {
		// Readers of history are many, and can come again.
		f, err = d.kept.instead(f, err, open)
	}
	if err != nil {
		return nil, err
	}
	return &diskFile{f, int(f.Fd()), d.kept}, nil
}

func (d *disk) Rename(from, to string) error { return d.root.Rename(from, to) }
func (d *disk) Remove(name string) error     { return d.root.Remove(name) }
func (d *disk) Sync() error                  { return d.handle.Sync() }

func (d *disk) Names() ([]string, error) {
	open := func() (*os.File, error) { return d.root.Open(".") }
	h, err := open()
	if h, err = d.kept.instead(h, err, open); err != nil {
		return nil, err
	}
	defer d.kept.fill()
	defer h.Close()
	return h.Readdirnames(-1)
}

func (d *disk) Close() error {
	d.kept.close()
	return errors.Join(d.handle.Close(), d.root.Close())
}

// diskFile is a file of the operating system. The descriptor is kept beside the
// os.File because asking for it costs an allocation-free but locked call each time.
type diskFile struct {
	*os.File
	fd   int
	kept *descriptors
}

// Close makes up for a descriptor that was taken out of the reserve.
func (f *diskFile) Close() error {
	defer f.kept.fill()
	return f.File.Close()
}

func (f *diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Zero implements device.File. Whole pages bypass the page cache: no memory is filled with
// zeros, and copied from, to be written. The rest goes through it.
func (f *diskFile) Zero(off, size int64) error {
	end := off + size
	from := min(roundUp(off, pageSize), end)
	to := max(end&^(pageSize-1), from)
	if from == to {
		return f.zeroCached(off, end)
	}
	err := f.zeroDirectly(from, to)
	if errors.Is(err, syscall.EINVAL) {
		return f.zeroCached(off, end)
	}
	if err == nil {
		err = f.zeroCached(off, from)
	}
	if err == nil {
		err = f.zeroCached(to, end)
	}
	return err
}

func (f *diskFile) zeroCached(off, end int64) error {
	for b := zeros(); off < end; {
		n, err := f.WriteAt(b[:min(int64(len(b)), end-off)], off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

func (f *diskFile) Sync() error               { return syncData(f.File, f.fd) }
func (f *diskFile) Allocate(size int64) error { return allocate(f.File, f.fd, size) }
func (f *diskFile) ID() (device, inode uint64, err error) {
	return fileID(f.fd)
}
