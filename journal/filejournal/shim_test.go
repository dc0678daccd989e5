package filejournal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
)

// forgetful is a disk in memory that keeps apart what programs see and what a
// power cut would leave. It counts system calls, can stop at any of them, fails
// syncs the way Linux does, and can be full.
type forgetful struct {
	mu      sync.Mutex
	names   map[string]*inode // as programs see them
	durable map[string]*inode // as of the last sync of the directory
	renames []nameChange      // since then
	last    uint64            // inode number given out

	calls    int
	stopAt   int // this call and all later ones fail with errStopped; 0: never
	failSync int // this call, if it is a sync, fails with EIO and drops the pages
	limit    int64
}

var errStopped = errors.New("the machine has stopped")

type nameChange struct {
	gone  string
	added string
	node  *inode
}

type inode struct {
	number uint64
	data   []byte // as programs see it
	synced []byte // what a power cut leaves for sure
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

func (n *inode) change(w write) {
	n.data = w.apply(n.data)
	n.dirty = append(n.dirty, w)
}

func newForgetful() *forgetful {
	return &forgetful{names: map[string]*inode{}, durable: map[string]*inode{}}
}

// call counts a system call and says whether the machine still runs.
func (d *forgetful) call() error {
	d.calls++
	if d.stopAt > 0 && d.calls >= d.stopAt {
		return errStopped
	}
	return nil
}

func (d *forgetful) Open(name string, flag int) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return nil, err
	}
	n := d.names[name]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case n == nil:
		d.last++
		n = &inode{number: d.last}
		d.names[name] = n
		d.renames = append(d.renames, nameChange{added: name, node: n})
	case flag&os.O_TRUNC != 0:
		n.change(write{off: -1})
	}
	return &handle{d, n}, nil
}

func (d *forgetful) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return err
	}
	n := d.names[from]
	if n == nil {
		return fs.ErrNotExist
	}
	delete(d.names, from)
	d.names[to] = n
	d.renames = append(d.renames, nameChange{from, to, n})
	return nil
}

func (d *forgetful) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return err
	}
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.names, name)
	d.renames = append(d.renames, nameChange{gone: name})
	return nil
}

func (d *forgetful) Names() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return nil, err
	}
	return slices.Collect(maps.Keys(d.names)), nil
}

func (d *forgetful) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(); err != nil {
		return err
	}
	if d.calls == d.failSync {
		return syscall.EIO
	}
	d.durable, d.renames = maps.Clone(d.names), nil
	return nil
}

func (d *forgetful) Close() error { return nil }

type handle struct {
	d *forgetful
	n *inode
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.stopAt > 0 && h.d.calls >= h.d.stopAt {
		return 0, errStopped
	}
	if off >= int64(len(h.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, h.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// room reports whether a file may grow to size.
func (h *handle) room(size int64) bool {
	if h.d.limit == 0 {
		return true
	}
	used := size - int64(len(h.n.data))
	if used <= 0 {
		return true
	}
	for _, n := range h.d.names {
		used += int64(len(n.data))
	}
	return used <= h.d.limit
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
	if h.d.calls == h.d.failSync {
		return syscall.EIO // what was dirty is now clean, and nowhere but in memory
	}
	for _, w := range dirty {
		h.n.synced = w.apply(h.n.synced)
	}
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.n.data)), nil
}

func (h *handle) ID() (device, inode uint64, err error) { return 7, h.n.number, nil }
func (h *handle) Close() error                          { return nil }

// restart is a new process on the same machine: all that programs saw is there.
func (d *forgetful) restart() {
	d.calls, d.stopAt, d.failSync = 0, 0, 0
}

// loss says what a power cut leaves of the changes since the last sync.
type loss int

const (
	loseAll  loss = iota
	loseNone      // the disk was faster than the power cut
	prefix        // in order, up to some byte of some write
	torn          // any part of any write, by pieces of up to 512 bytes
	losses
)

func (l loss) String() string { return []string{"lose", "keep", "prefix", "torn"}[l] }

// powerCut returns the disk as it is found afterwards. The disk itself stays.
func (d *forgetful) powerCut(l loss, rng *rand.Rand) *forgetful {
	out := newForgetful()
	out.last, out.limit = d.last, d.limit
	names := maps.Clone(d.durable)
	cut := rng.IntN(len(d.renames) + 1)
	for i, c := range d.renames {
		switch {
		case l == loseAll, l == prefix && i >= cut, l == torn && rng.IntN(2) == 0:
			continue
		}
		if c.gone != "" && names[c.gone] != nil {
			delete(names, c.gone)
		}
		if c.added != "" {
			names[c.added] = c.node
		}
	}
	kept := map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		if kept[n] == nil {
			data := n.survivor(l, rng)
			kept[n] = &inode{number: n.number, data: data, synced: bytes.Clone(data)}
		}
		out.names[name] = kept[n]
	}
	out.durable = maps.Clone(out.names)
	return out
}

func (n *inode) survivor(l loss, rng *rand.Rand) []byte {
	b := bytes.Clone(n.synced)
	total := 0
	for _, w := range n.dirty {
		total += len(w.data)
	}
	left := rng.IntN(total + 1)
	piece := []int{1, 8, 64, 512}[rng.IntN(4)]
	for _, w := range n.dirty {
		switch {
		case l == loseAll:
		case l == loseNone, l == prefix && w.off < 0, l == torn && w.off < 0 && rng.IntN(2) == 0:
			b = w.apply(b)
		case l == prefix:
			part := min(left, len(w.data))
			left -= part
			b = write{off: w.off, data: w.data[:part]}.apply(b)
		case l == torn && w.off >= 0:
			for i := 0; i < len(w.data); {
				// Pieces end at multiples of their size in the file, as sectors do.
				next := min(len(w.data), i+piece-int((w.off+int64(i))%int64(piece)))
				if rng.IntN(2) == 0 {
					b = write{off: w.off + int64(i), data: w.data[i:next]}.apply(b)
				}
				i = next
			}
		}
	}
	return b
}

// clone copies a disk as programs see it, with all of it durable.
func (d *forgetful) clone() *forgetful {
	out := newForgetful()
	out.last, out.limit = d.last, d.limit
	for name, n := range d.names {
		out.names[name] = &inode{number: n.number, data: bytes.Clone(n.data), synced: bytes.Clone(n.data)}
	}
	out.durable = maps.Clone(out.names)
	return out
}
