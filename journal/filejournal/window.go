package filejournal

import (
	"fmt"
	"io"

	"github.com/interlockdev/interlock/journal"
)

// window reads a file in large pieces and shows any range of it.
type window struct {
	f    file
	name string
	buf  []byte
	off  int64 // of buf in the file
	size int64 // of the file; no more is read at once
}

const windowSize = 256 << 10

// at returns n bytes at off, or what there is before the end of the file. They
// are valid until the next call.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off < w.off || off+int64(n) > w.off+int64(len(w.buf)) {
		if want := max(n, int(min(windowSize, w.size))); cap(w.buf) < want {
			w.buf = make([]byte, want)
		}
		w.off = off
		got, err := w.f.ReadAt(w.buf[:cap(w.buf)], off)
		w.buf = w.buf[:got]
		if err != nil && err != io.EOF {
			w.forget()
			return nil, fmt.Errorf("%w: reading %s at byte %d: %w", journal.ErrFailed, w.name, off, err)
		}
	}
	b := w.buf[off-w.off:]
	return b[:min(n, len(b))], nil
}

// forget makes the next call read the file again.
func (w *window) forget() { w.buf = w.buf[:0] }
