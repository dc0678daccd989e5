package simdisk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/interlockdev/interlock/journal/filejournal/device"
)

// Disk is a disk in memory that keeps apart what programs see and what a
// power cut would leave. It counts system calls, can stop at any of them, fails
// syncs the way Linux does, and can be full.
type Disk struct {
	mu      sync.Mutex
	Files   map[string]*Inode // as programs see them
	durable map[string]*Inode // as of the last sync of the directory
	renames []nameChange      // since then
	last    uint64            // inode number given out

	Calls    int   // so far
	StopAt   int   // this call and all later ones fail with ErrStopped; 0: never
	FailSync int   // this call, if it is a sync, fails with EIO and drops the pages
	Limit    int64 // bytes that all files may have together; 0: any
}

// ErrStopped is the error of every call after the machine has stopped.
var ErrStopped = errors.New("the machine has stopped")

type nameChange struct {
	gone  string
	added string
	node  *Inode
}

// Inode is the file that names refer to.
type Inode struct {
	Number uint64
	Data   []byte // as programs see it
	Synced []byte // what a power cut leaves for sure
	dirty  []write
}

// write is one change since the last sync. A negative offset sets the size.
type write struct {
	off  int64
	data []byte
	size int64
}

func (w write) apply(b []byte) []byte {
	if w.off < 0 {
		if n := int64(len(b)); n >= w.size {
			return b[:w.size:w.size]
		}
		return append(b, make([]byte, w.size-int64(len(b)))...)
	}
	if end := w.off + int64(len(w.data)); end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[w.off:], w.data)
	return b
}

func (n *Inode) change(w write) {
	n.Data = w.apply(n.Data)
	n.dirty = append(n.dirty, w)
}

func New() *Disk {
	return &Disk{Files: map[string]*Inode{}, durable: map[string]*Inode{}}
}

// SetLimit changes Limit while the disk is in use.
func (d *Disk) SetLimit(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Limit = n
}

// call counts a system call and reports whether the machine still runs.
func (d *Disk) call() error {
	d.Calls++
	if d.StopAt > 0 && d.Calls >= d.StopAt {
		return ErrStopped
	}
	return nil
}

func (d *Disk) Open(name string, flag int) (device.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return nil, err
	}
	n := d.Files[name]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case n == nil:
		d.last++
		n = &Inode{Number: d.last}
		d.Files[name] = n
		d.renames = append(d.renames, nameChange{added: name, node: n})
	case flag&os.O_TRUNC != 0:
		n.change(write{off: -1})
	}
	return &handle{d, n}, nil
}

func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return err
	}
	n := d.Files[from]
	if n == nil {
		return fs.ErrNotExist
	}
	delete(d.Files, from)
	d.Files[to] = n
	d.renames = append(d.renames, nameChange{from, to, n})
	return nil
}

func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return err
	}
	if d.Files[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.Files, name)
	d.renames = append(d.renames, nameChange{gone: name})
	return nil
}

func (d *Disk) Names() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(d.Files)), nil
}

func (d *Disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return err
	}
	if d.Calls == d.FailSync {
		return syscall.EIO
	}
	d.durable, d.renames = maps.Clone(d.Files), nil
	return nil
}

func (d *Disk) Close() error { return nil }

type handle struct {
	d *Disk
	n *Inode
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.StopAt > 0 && h.d.Calls >= h.d.StopAt {
		return 0, ErrStopped
	}
	if off >= int64(len(h.n.Data)) {
		return 0, io.EOF
	}
	n := copy(p, h.n.Data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// room reports whether a file may grow to size.
func (h *handle) room(size int64) bool {
	if h.d.Limit == 0 {
		return true
	}
	used := size - int64(len(h.n.Data))
	if used <= 0 {
		return true
	}
	for _, n := range h.d.Files {
		used += int64(len(n.Data))
	}
	return used <= h.d.Limit
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.call(); err != nil {
		return 0, err
	}
	if !h.room(off + int64(len(p))) {
		return 0, syscall.ENOSPC
	}
	h.n.change(write{off: off, data: bytes.Clone(p)})
	return len(p), nil
}

func (h *handle) Zero(off, size int64) error {
	_, err := h.WriteAt(make([]byte, size), off)
	return err
}

func (h *handle) Allocate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.call(); err != nil {
		return err
	}
	if !h.room(size) {
		return syscall.ENOSPC
	}
	h.n.change(write{off: -1, size: size})
	return nil
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.call(); err != nil {
		return err
	}
	dirty := h.n.dirty
	h.n.dirty = nil
	if h.d.Calls == h.d.FailSync {
		return syscall.EIO // what was dirty is now clean, and nowhere but in memory
	}
	for _, w := range dirty {
		h.n.Synced = w.apply(h.n.Synced)
	}
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.n.Data)), nil
}

func (h *handle) ID() (device, inode uint64, err error) { return 7, h.n.Number, nil }
func (h *handle) Close() error                          { return nil }

// Restart is a new process on the same machine: all that programs saw is there.
func (d *Disk) Restart() {
	d.Calls, d.StopAt, d.FailSync = 0, 0, 0
}

// Clone copies a disk as programs see it, with all of it durable.
func (d *Disk) Clone() *Disk {
	out := New()
	out.last, out.Limit = d.last, d.Limit
	for name, n := range d.Files {
		out.Files[name] = &Inode{Number: n.Number, Data: bytes.Clone(n.Data), Synced: bytes.Clone(n.Data)}
	}
	out.durable = maps.Clone(out.Files)
	return out
}

// Fork copies a disk with all that it has not made durable yet.
func (d *Disk) Fork() *Disk {
	out := &Disk{
		renames: slices.Clone(d.renames), last: d.last, Calls: d.Calls, StopAt: d.StopAt, FailSync: d.FailSync,
		Limit: d.Limit,
	}
	copies := map[*Inode]*Inode{}
	of := func(n *Inode) *Inode {
		if n != nil && copies[n] == nil {
			copies[n] = &Inode{
				Number: n.Number, Data: bytes.Clone(n.Data), Synced: bytes.Clone(n.Synced), dirty: slices.Clone(n.dirty),
			}
		}
		return copies[n]
	}
	named := func(files map[string]*Inode) map[string]*Inode {
		files = maps.Clone(files)
		for name, n := range files {
			files[name] = of(n)
		}
		return files
	}
	out.Files, out.durable = named(d.Files), named(d.durable)
	for i := range out.renames {
		out.renames[i].node = of(out.renames[i].node)
	}
	return out
}
