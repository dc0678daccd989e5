package chain

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Record is the chain's state that is kept with a snapshot. The last mark is the link at the
// snapshot's index. There is always one.
type Record struct {
	// Marks are links in the order of their indexes. The first one is where the chain
	// can be computed from.
	Marks []Link
}

// Last returns the link at the snapshot's index.
func (r Record) Last() Link { return r.Marks[len(r.Marks)-1] }

const (
	// markEvery is how many entries lie between two marks, at first.
	markEvery = 256

	// mostMarks bounds the marks of a record. When there are more, every second one is
	// dropped.
	mostMarks = 4096
)

// Marker collects marks while the chain grows.
type Marker struct {
	marks []Link
	every interlock.Index
}

// MarkFrom returns a Marker that continues from a record.
func MarkFrom(r Record) *Marker {
	m := &Marker{marks: slices.Clone(r.Marks), every: markEvery}
	if n := len(m.marks); n > 1 {
		for mean := (m.marks[n-1].Index - m.marks[0].Index) / interlock.Index(n-1); m.every < mean; {
			m.every *= 2
		}
	}
	for m.thin() {
	}
	return m
}

// Grow notes a link if it is far enough from the mark before it.
func (m *Marker) Grow(l Link) {
	if n := len(m.marks); n == 0 || l.Index >= m.marks[n-1].Index+m.every {
		m.marks = append(m.marks, l)
		m.thin()
	}
}

// thin drops every second mark if there are too many.
func (m *Marker) thin() bool {
	if len(m.marks) <= mostMarks {
		return false
	}
	kept := m.marks[:0]
	for i := 0; i < len(m.marks); i += 2 {
		kept = append(kept, m.marks[i])
	}
	m.marks, m.every = kept, 2*m.every
	return true
}

// Record returns the record at the last link, without the marks that a journal which begins with
// the entry at first has no use for.
func (m *Marker) Record(last Link, first interlock.Index) Record {
	n := 0
	for n < len(m.marks) && m.marks[n].Index+1 < first {
		n++
	}
	m.marks = slices.Delete(m.marks, 0, n)
	r := Record{Marks: slices.Clone(m.marks)}
	if n := len(r.Marks); n == 0 || r.Marks[n-1].Index < last.Index {
		r.Marks = append(r.Marks, last)
	}
	return r
}

// A record stands before the state in a snapshot:
//
//	0        4      5       6                              4 + length
//	+--------+------+-------+--------------------------------+
//	| length | 0xFE | 1     | marks: index 8 bytes, hash 32  |
//	+--------+------+-------+--------------------------------+
//
// Where the state has the version of its first event there is 0xFE here, so that a program from
// before there was a chain reports that a newer one wrote the snapshot.
const (
	recordMark    = 0xFE
	recordVersion = 1
	recordHead    = 6
	markBytes     = 8 + len(Hash{})
)

// Append appends the record to b.
func (r Record) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(recordHead-4+len(r.Marks)*markBytes))
	b = append(b, recordMark, recordVersion)
	for _, l := range r.Marks {
		b = binary.LittleEndian.AppendUint64(b, uint64(l.Index))
		b = append(b, l.Hash[:]...)
	}
	return b
}

// Read reads the record from the beginning of the snapshot at an index. In a snapshot without
// one, the chain begins behind it. The rest of r is the state.
func Read(r *bufio.Reader, at interlock.Index) (Record, error) {
	begin, err := r.Peek(recordHead)
	if len(begin) < recordHead || begin[4] != recordMark {
		if err != nil && !errors.Is(err, io.EOF) {
			return Record{}, err
		}
		return Record{Marks: []Link{Start(at)}}, nil
	}
	size := int(binary.LittleEndian.Uint32(begin)) - (recordHead - 4)
	switch {
	case begin[5] != recordVersion:
		return Record{}, fmt.Errorf("the record of the chain has version %d: %w", begin[5], journal.ErrNewer)
	case size <= 0 || size%markBytes != 0 || size/markBytes > mostMarks+1:
		return Record{}, fmt.Errorf("the record of the chain cannot have %d bytes", size)
	}
	if _, err := r.Discard(recordHead); err != nil {
		return Record{}, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return Record{}, fmt.Errorf("the record of the chain: %w", err)
	}
	marks := make([]Link, 0, size/markBytes)
	for ; len(b) > 0; b = b[markBytes:] {
		l := Link{Index: interlock.Index(binary.LittleEndian.Uint64(b)), Hash: Hash(b[8:markBytes])}
		if n := len(marks); n > 0 && l.Index <= marks[n-1].Index {
			return Record{}, errors.New("the marks of the chain are not in order")
		}
		marks = append(marks, l)
	}
	if last := marks[len(marks)-1].Index; last != at {
		return Record{}, fmt.Errorf("the record of the chain ends at entry %d, and the snapshot is of entry %d", last, at)
	}
	return Record{Marks: marks}, nil
}
