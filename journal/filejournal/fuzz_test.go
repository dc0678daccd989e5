package filejournal

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

// The seeds in testdata/fuzz are real files: a segment with an epoch record, a group
// and a large entry, the same torn, and a snapshot.

// FuzzSegment puts one segment of any content into a directory. A start sees entries that a
// second start sees too, or it refuses and changes nothing. With mend the checksums are made
// right first, so that what is behind them is reached.
func FuzzSegment(f *testing.F) {
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, mend bool) {
		if len(data) > 64<<10 {
			return
		}
		data = bytes.Clone(data)
		if mend {
			mendSegment(data)
		}
		d := simdisk.New()
		d.Files[indexName(1, logSuffix)] = &simdisk.Inode{Number: 1, Data: data, Synced: bytes.Clone(data)}
		before := d.Clone()
		first, err := contents(d)
		if err != nil {
			var damage *journal.DamageError
			if !errors.As(err, &damage) && !errors.Is(err, journal.ErrNewer) {
				t.Fatal(err)
			}
			if !same(before, d) {
				t.Fatal("a refused start changed the directory")
			}
			return
		}
		second, err := contents(d)
		if err != nil || len(second) != len(first)+1 || !slices.Equal(second[:len(first)], first) {
			t.Fatalf("%d entries at the first start, %d at the second: %v", len(first), len(second), err)
		}
	})
}

// mendSegment makes the checksums of a segment right, as far as it has the shape of
// one.
func mendSegment(b []byte) {
	if len(b) < segmentHeaderSize {
		return
	}
	putPreamble(b, segmentMagic)
	order.PutUint64(b[32:], uint64(len(b)))
	order.PutUint32(b[60:], checksum(b[:60]))
	salt := order.Uint32(b[44:])
	chain := order.Uint32(b[60:])
	for off := int64(segmentHeaderSize); off+frameHeaderSize <= int64(len(b)); {
		h := b[off:]
		size := int64(order.Uint32(h[4:]))
		if order.Uint32(h) != frameMagic || size > int64(len(h)-frameHeaderSize) {
			return
		}
		order.PutUint32(h[28:], chain)
		order.PutUint32(h[32:], checksum(h[frameHeaderSize:frameHeaderSize+size]))
		chain = crc32.Update(salt, castagnoli, h[:36])
		order.PutUint32(h[36:], chain)
		off += frameLength(int(size))
	}
}

// FuzzFrame checks the shape of a body with a right checksum: a body that passes is exactly
// what its entries are encoded to.
func FuzzFrame(f *testing.F) {
	f.Add(uint32(1), []byte{0, 0, 0, 0})
	f.Add(uint32(2), []byte{1, 0, 0, 0, 'a', 2, 0, 0, 0, 'b', 'c'})
	f.Add(uint32(1), []byte{255, 255, 255, 255, 'a'})
	f.Fuzz(func(t *testing.T, count uint32, body []byte) {
		h := frameHeader{size: uint32(len(body)), first: 2, epoch: 1, count: count, body: checksum(body)}
		if h.record() {
			h.epoch = 2
		}
		if h.continues(position{index: 1, epoch: 1}) != "" || h.checkBody(body) != nil {
			return
		}
		var entries [][]byte
		next := interlock.Index(2)
		err := h.each(body, func(e journal.Entry) error {
			if e.Index != next || e.Epoch != h.epoch {
				t.Fatalf("entry %d of epoch %d, want %d", e.Index, e.Epoch, next)
			}
			next++
			if len(e.Data) > 0 {
				entries = append(entries, e.Data)
			}
			return nil
		})
		if err != nil || next != 2+interlock.Index(count) {
			t.Fatalf("%d entries of %d: %v", next-2, count, err)
		}
		b := make([]byte, frameLength(len(body)))
		after := encodeFrame(b, h.epoch, entries, 7, position{index: 1, epoch: 1})
		got, ok := decodeFrameHeader(b, 7)
		if !ok || got.after() != after || got.count != count || !bytes.Equal(b[frameHeaderSize:][:len(body)], body) {
			t.Fatalf("encoded again it is %x", b)
		}
	})
}

// FuzzSnapshot puts a snapshot of any content into a directory: it is read as a whole up to
// io.EOF, or refused.
func FuzzSnapshot(f *testing.F) {
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, mend bool) {
		data = bytes.Clone(data)
		if n := len(data); mend && n >= snapshotHeaderSize+snapshotTrailerSize {
			putPreamble(data, snapshotMagic)
			order.PutUint64(data[n-16:], uint64(n-snapshotHeaderSize-snapshotTrailerSize))
			order.PutUint32(data[n-8:], checksum(data[:n-8]))
			copy(data[n-4:], snapshotEnd)
		}
		d := simdisk.New()
		d.Files[indexName(1, snapshotSuffix)] = &simdisk.Inode{Number: 1, Data: data}
		_, err := checkSnapshot(context.Background(), d, "", 1, true)
		var damage *journal.DamageError
		if err != nil && !errors.As(err, &damage) && !errors.Is(err, journal.ErrNewer) {
			t.Fatal(err)
		}
		r, openErr := openSnapshot(d, "", 1)
		if openErr != nil {
			if err == nil {
				t.Fatal(openErr)
			}
			return
		}
		state, readErr := io.ReadAll(r)
		if (readErr == nil) != (err == nil) ||
			readErr == nil && len(state) != len(data)-snapshotHeaderSize-snapshotTrailerSize {
			t.Fatalf("%d bytes of state, %v and %v", len(state), err, readErr)
		}
	})
}
