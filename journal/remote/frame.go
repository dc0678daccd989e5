package remote

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// A frame is the stored form of one append, in every engine. Integers are
// little-endian, checksums CRC32C.
//
//	0       4       8               16              24      28      32
//	+-------+-------+---------------+---------------+-------+-------+
//	| "ilk1"| crc   | first index   | epoch         | count | prev  |
//	+-------+-------+---------------+---------------+-------+-------+
//	| count x ( length as a uvarint, data )
//	+----------------------------------------------------------------
//
//	crc    of all that follows it; the chain after this frame
//	prev   the chain before this frame: the crc of the one before it, 0 in the first
//
// An epoch record is a frame with one entry of length 0. No other entry is empty.
const (
	frameMagic  = "ilk1"
	frameHeader = 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeFrame makes the frame that continues the log at p, and returns the position after it.
// No entries make an epoch record.
func encodeFrame(p Position, epoch interlock.Epoch, entries [][]byte) ([]byte, Position) {
	if len(entries) == 0 {
		entries = [][]byte{nil}
	}
	size := frameHeader
	for _, e := range entries {
		size += binary.MaxVarintLen32 + len(e)
	}
	b := make([]byte, frameHeader, size)
	copy(b, frameMagic)
	binary.LittleEndian.PutUint64(b[8:], uint64(p.Index+1))
	binary.LittleEndian.PutUint64(b[16:], uint64(epoch))
	binary.LittleEndian.PutUint32(b[24:], uint32(len(entries)))
	binary.LittleEndian.PutUint32(b[28:], p.Chain)
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(len(e)))
		b = append(b, e...)
	}
	crc := crc32.Checksum(b[8:], castagnoli)
	binary.LittleEndian.PutUint32(b[4:], crc)
	return b, Position{p.Index + interlock.Index(len(entries)), crc}
}

// frame is one that was read and has a right checksum.
type frame struct {
	name  string
	first interlock.Index
	epoch interlock.Epoch
	count uint32
	prev  uint32
	crc   uint32
	body  []byte
}

func (f *frame) last() interlock.Index { return f.first + interlock.Index(f.count) - 1 }

// decodeFrame checks a frame by itself; what it must continue is the reader's to check.
// The frame refers to what was read.
func decodeFrame(read *Frame) (frame, error) {
	value := read.Data
	bad := func(offset int, reason string) error {
		return &journal.DamageError{File: read.Name, Offset: int64(offset), Reason: reason}
	}
	switch {
	case len(value) >= len(frameMagic) && string(value[:3]) == frameMagic[:3] && string(value[:4]) != frameMagic:
		return frame{}, fmt.Errorf("%w: the append %s", journal.ErrNewer, read.Name)
	case len(value) < frameHeader || string(value[:4]) != frameMagic:
		return frame{}, bad(0, "this is no append")
	}
	f := frame{
		name:  read.Name,
		crc:   binary.LittleEndian.Uint32(value[4:]),
		first: interlock.Index(binary.LittleEndian.Uint64(value[8:])),
		epoch: interlock.Epoch(binary.LittleEndian.Uint64(value[16:])),
		count: binary.LittleEndian.Uint32(value[24:]),
		prev:  binary.LittleEndian.Uint32(value[28:]),
		body:  value[frameHeader:],
	}
	switch {
	case crc32.Checksum(value[8:], castagnoli) != f.crc:
		return f, bad(4, "the checksum does not hold")
	case f.count == 0 || f.first == 0 || differs(read.First, f.first) || differs(read.Last, f.last()):
		return f, bad(8, "its entries are not those that its name says")
	}
	return f, nil
}

// differs compares an index with that in a frame's name, if there is one.
func differs(named, is interlock.Index) bool { return named != 0 && named != is }

// visit visits the entries from index from on, which are valid during the call.
func (f *frame) visit(from interlock.Index, visit func(journal.Entry) error) error {
	rest := f.body
	for i := range f.count {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) || size == 0 && f.count != 1 {
			return &journal.DamageError{
				File: f.name, Offset: int64(frameHeader + len(f.body) - len(rest)), Index: f.first + interlock.Index(i) - 1,
				Reason: "an entry has no length",
			}
		}
		data := rest[n : n+int(size)]
		rest = rest[n+int(size):]
		index := f.first + interlock.Index(i)
		if index < from {
			continue
		}
		if err := visit(journal.Entry{Index: index, Epoch: f.epoch, Data: slices.Clip(data)}); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return &journal.DamageError{
			File: f.name, Offset: int64(frameHeader + len(f.body) - len(rest)), Index: f.last(),
			Reason: "bytes follow the last entry",
		}
	}
	return nil
}
