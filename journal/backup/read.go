package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Reader reads a backup from its beginning to its end and checks all of it. It is for one
// goroutine. Its errors are journal.ErrNewer, *journal.DamageError, and those of the reader below.
type Reader struct {
	Header Header

	r     io.Reader
	name  string // for messages
	sum   hash.Hash
	off   int64           // behind the chunk in data
	at    interlock.Index // of the last entry that was read
	kind  uint32          // of the chunk in data
	data  []byte          // the rest of a chunk
	chunk []byte          // reused
	entry []byte          // reused
}

// NewReader begins to read a backup. name stands in messages.
func NewReader(r io.Reader, name string) (*Reader, error) {
	b := &Reader{r: r, name: name, sum: sha256.New(), chunk: make([]byte, chunkHead+chunkSize)}
	head := b.chunk[:headerSize]
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if b.Header, err = decodeHeader(head[:n]); err != nil {
		return nil, b.failed(0, err)
	}
	b.sum.Write(head)
	b.off, b.at = headerSize, b.Header.Snapshot
	return b, b.next()
}

func (b *Reader) failed(off int64, err error) error {
	if isNewer(err) {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	return b.damage(off, err.Error())
}

func (b *Reader) damage(off int64, reason string) error {
	return &journal.DamageError{File: b.name, Offset: off, Index: b.at, Reason: reason}
}

// next reads a chunk, and checks it and, if it is the last one, the whole file.
func (b *Reader) next() error {
	head := b.chunk[:chunkHead]
	if err := b.full(head); err != nil {
		return err
	}
	kind, size := order.Uint32(head), order.Uint32(head[4:])
	if kindRank(kind) < max(kindRank(b.kind), 1) || size == 0 || size > chunkSize {
		return b.damage(b.off, "the head of the chunk is impossible")
	}
	data := b.chunk[chunkHead : chunkHead+size]
	if err := b.full(data); err != nil {
		return err
	}
	if chunkSum(head, data) != order.Uint32(head[8:]) {
		return b.damage(b.off, "checksum of the chunk")
	}
	if kind == kindEnd {
		return b.end(data)
	}
	b.sum.Write(b.chunk[:chunkHead+size])
	b.off += int64(chunkHead + size)
	b.kind, b.data = kind, data
	return nil
}

// end checks the last chunk, and that nothing stands behind it.
func (b *Reader) end(data []byte) error {
	switch {
	case len(data) != endSize || order.Uint64(data) != uint64(b.off):
		return b.damage(b.off, "the length of the backup is wrong")
	case !bytes.Equal(data[8:], b.sum.Sum(nil)):
		return b.damage(b.off, "the hash of the backup is wrong")
	}
	b.kind, b.data = kindEnd, nil
	var more [1]byte
	switch n, err := io.ReadFull(b.r, more[:]); {
	case n > 0:
		return b.damage(b.off+chunkHead+endSize, "something stands behind the end of the backup")
	case err != io.EOF:
		return fmt.Errorf("reading %s: %w", b.name, err)
	}
	return nil
}

func (b *Reader) full(p []byte) error {
	switch _, err := io.ReadFull(b.r, p); err {
	case nil:
		return nil
	case io.EOF, io.ErrUnexpectedEOF:
		return b.damage(b.off, "the backup has no end: it was cut off")
	default:
		return fmt.Errorf("reading %s: %w", b.name, err)
	}
}

// Read reads the snapshot, and returns io.EOF at its end.
func (b *Reader) Read(p []byte) (int, error) {
	for len(b.data) == 0 && b.kind == kindSnapshot {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	if b.kind != kindSnapshot {
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

// Entry reads the next entry behind the snapshot, which was read to its end, and returns io.EOF
// behind the last one. The data is valid until the next call.
func (b *Reader) Entry() (journal.Entry, error) {
	for len(b.data) == 0 && b.kind == kindEntries {
		if err := b.next(); err != nil {
			return journal.Entry{}, err
		}
	}
	switch {
	case b.kind == kindSnapshot:
		return journal.Entry{}, fmt.Errorf("%w: an entry before the end of the snapshot", journal.ErrMisuse)
	case b.kind == kindEnd && b.at != b.Header.Index:
		return journal.Entry{}, b.damage(
			b.off, fmt.Sprintf("the entries end at %d, and the backup is of %d", b.at, b.Header.Index),
		)
	case b.kind == kindEnd:
		return journal.Entry{}, io.EOF
	}
	var head [entryHead]byte
	if err := b.take(head[:]); err != nil {
		return journal.Entry{}, err
	}
	size := order.Uint32(head[:])
	if size > journal.MaxAppendBytes || b.at >= b.Header.Index {
		return journal.Entry{}, b.damage(b.off, "the head of the entry is impossible")
	}
	if cap(b.entry) < int(size) {
		b.entry = make([]byte, max(size, 4<<10))
	}
	if err := b.take(b.entry[:size]); err != nil {
		return journal.Entry{}, err
	}
	b.at++
	return journal.Entry{Index: b.at, Epoch: interlock.Epoch(order.Uint64(head[4:])), Data: b.entry[:size:size]}, nil
}

// take fills p with data of the entries' chunks.
func (b *Reader) take(p []byte) error {
	for len(p) > 0 {
		if len(b.data) == 0 {
			if err := b.next(); err != nil {
				return err
			}
			if b.kind != kindEntries {
				return b.damage(b.off, "the entries end within an entry")
			}
		}
		n := copy(p, b.data)
		b.data, p = b.data[n:], p[n:]
	}
	return nil
}

// Length is how many bytes the backup has, once it was read to its end.
func (b *Reader) Length() int64 { return b.off + chunkHead + endSize }

// Check reads a backup to its end and returns its header and its length. It decodes neither the
// snapshot nor the entries.
func Check(ctx context.Context, r io.Reader, name string) (h Header, length int64, err error) {
	b, err := NewReader(r, name)
	if err != nil {
		return Header{}, 0, err
	}
	if _, err := io.Copy(io.Discard, withContext{ctx, b}); err != nil {
		return b.Header, 0, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return b.Header, 0, err
		}
		if _, err := b.Entry(); err == io.EOF {
			return b.Header, b.Length(), nil
		} else if err != nil {
			return b.Header, 0, err
		}
	}
}

// withContext is a reader that ends with a context.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (c withContext) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
