package filejournal

import (
	"os"
	"sync"
)

// keptDescriptors is how many are kept back: for the next segment, its reserve, a
// snapshot and a listing of the directory, all at once.
const keptDescriptors = 4

// descriptors keeps some descriptors of the process open for nothing, so that the journal can
// go on when connections and readers have taken all others. The journal closes one of them for
// each file that it cannot open otherwise, and takes it back when it closes a file. A nil one
// keeps none.
type descriptors struct {
	mu     sync.Mutex // guards the fields below
	kept   []*os.File
	closed bool
}

// fill opens missing files, as far as the table of open files has room.
func (d *descriptors) fill() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed && len(d.kept) < keptDescriptors {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		d.kept = append(d.kept, f)
	}
}

// instead examines the result of opening a file. While the table of open files is full it
// closes one descriptor and opens again: another process may be faster each time.
func (d *descriptors) instead(f *os.File, err error, open func() (*os.File, error)) (*os.File, error) {
	for noFiles(err) && d.release() {
		f, err = open()
	}
	return f, err
}

// release closes one descriptor, if there is any.
func (d *descriptors) release() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	last := len(d.kept) - 1
	if last < 0 {
		return false
	}
	_ = d.kept[last].Close() // nothing was written to it
	d.kept = d.kept[:last]
	return true
}

func (d *descriptors) close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	for d.release() {
	}
}
