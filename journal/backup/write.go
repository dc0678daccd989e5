package backup

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Writer writes a backup: first the snapshot, then the entries. It is for one goroutine.
type Writer struct {
	w      io.Writer
	header Header
	sum    hash.Hash
	length int64  // of all that was written
	kind   uint32 // of the chunk that is being filled
	chunk  []byte // with room for its head
	at     interlock.Index
	err    error // of w; kept
}

// NewWriter begins a backup.
func NewWriter(w io.Writer, h Header) *Writer {
	b := &Writer{
		w: w, header: h, sum: sha256.New(), kind: kindSnapshot,
		chunk: make([]byte, chunkHead, chunkHead+chunkSize), at: h.Snapshot,
	}
	b.put(h.encode())
	return b
}

// Write writes the next part of the snapshot.
func (b *Writer) Write(p []byte) (int, error) {
	if b.kind != kindSnapshot {
		return 0, fmt.Errorf("%w: a snapshot behind the entries that follow it", journal.ErrMisuse)
	}
	b.add(p)
	if b.err != nil {
		return 0, b.err
	}
	return len(p), nil
}

// Entry writes the next entry that follows the snapshot.
func (b *Writer) Entry(e journal.Entry) error {
	if e.Index != b.at+1 || e.Index > b.header.Index {
		return fmt.Errorf(
			"%w: entry %d of a backup, expected %d of %d", journal.ErrMisuse, e.Index, b.at+1, b.header.Index,
		)
	}
	if b.kind != kindEntries {
		b.flush()
		b.kind = kindEntries
	}
	var head [entryHead]byte
	order.PutUint32(head[:], uint32(len(e.Data)))
	order.PutUint64(head[4:], uint64(e.Epoch))
	b.add(head[:])
	b.add(e.Data)
	b.at = e.Index
	return b.err
}

// Close writes the end. A backup without it is refused by every reader.
func (b *Writer) Close() error {
	if b.err == nil && b.at != b.header.Index {
		return fmt.Errorf(
			"%w: a backup that ends at entry %d, and is of entry %d", journal.ErrMisuse, b.at, b.header.Index,
		)
	}
	b.flush()
	end := order.AppendUint64(nil, uint64(b.length))
	end = b.sum.Sum(end)
	b.kind = kindEnd
	b.add(end)
	b.flush()
	return b.err
}

// Length is how many bytes were written.
func (b *Writer) Length() int64 { return b.length }

func (b *Writer) add(p []byte) {
	for len(p) > 0 && b.err == nil {
		n := min(len(p), cap(b.chunk)-len(b.chunk))
		b.chunk = append(b.chunk, p[:n]...)
		if p = p[n:]; len(b.chunk) == cap(b.chunk) {
			b.flush()
		}
	}
}

func (b *Writer) flush() {
	data := b.chunk[chunkHead:]
	if len(data) == 0 {
		return
	}
	order.PutUint32(b.chunk, b.kind)
	order.PutUint32(b.chunk[4:], uint32(len(data)))
	order.PutUint32(b.chunk[8:], chunkSum(b.chunk, data))
	b.put(b.chunk)
	b.chunk = b.chunk[:chunkHead]
}

func (b *Writer) put(p []byte) {
	if b.err != nil {
		return
	}
	b.sum.Write(p)
	b.length += int64(len(p))
	_, b.err = b.w.Write(p)
}
