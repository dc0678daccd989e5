package shard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock/journal"
)

// The entry of one step may be larger than an append may be: a commit can carry a document of 1
// MiB. Such an entry is stored as pieces, several entries of the journal one after the other:
//
//	┌────────┬────────┬────────┬───────────────────────────┐
//	│ 0xFF   │ before │ after  │ part of the step's entry  │
//	│ 1 byte │ 1 byte │ 1 byte │ 1 byte or more            │
//	└────────┴────────┴────────┴───────────────────────────┘
//
//	before   how many pieces of the same entry stand before this one
//	after    how many still follow; 0 in the last one
//
//	index    41        42           43           44           45
//	      ┌───────┐ ┌──────────┐ ┌──────────┐ ┌──────────┐ ┌───────┐
//	      │ entry │ │ FF 0 2 … │ │ FF 1 1 … │ │ FF 2 0 … │ │ entry │
//	      └───────┘ └──────────┘ └──────────┘ └──────────┘ └───────┘
//	                                           └ the step's index: 44
//
// The first byte is where an entry of the engine has its version, which never is 0xFF: a program
// from before there were pieces reports that a newer one wrote it.
//
// A crash, or a disk that is full, can leave pieces without their last one. These are nothing, as
// if that step had never been: no caller has had an answer of it. They are dropped when anything
// follows that does not continue them, such as the record that opens the next epoch.
const (
	pieceMark = 0xFF
	pieceHead = 3
)

// cutPieces turns the entry b[start:] into pieces, in place, if it is larger than
// an append may be. It appends to ends where each ends, or where the whole entry
// does.
func cutPieces(b []byte, start int, ends []int) ([]byte, []int) {
	n := len(b) - start
	if n <= journal.MaxAppendBytes {
		return b, append(ends, len(b))
	}
	const most = journal.MaxAppendBytes - pieceHead
	count := (n + most - 1) / most
	part := (n + count - 1) / count // equal ones, so that each leaves room for others in its append
	b = slices.Grow(b, count*pieceHead)[:len(b)+count*pieceHead]
	// From the last to the first, so that no part is overwritten before it has moved.
	for i := count - 1; i >= 0; i-- {
		from := start + i*part
		to := min(from+part, start+n)
		head := from + i*pieceHead
		copy(b[head+pieceHead:], b[from:to])
		b[head], b[head+1], b[head+2] = pieceMark, byte(i), byte(count-1-i)
	}
	for i := range count {
		ends = append(ends, min(start+(i+1)*(part+pieceHead), len(b)))
	}
	return b, ends
}

// Joiner makes entries whole again. A reader of a journal hands it every entry that it reads, in
// order. The zero value is for a reader that begins with a whole entry.
type Joiner struct {
	// Midway means that the reader may have begun in the middle of pieces: at an index that a
	// caller named, or where a truncated journal begins. They are passed over.
	Midway bool

	parts  []byte // of the entry that is not whole yet
	before int    // pieces in parts
	after  int    // that must follow; 0 when there are none in parts
}

// Join takes the next entry of the journal. It returns what the step wrote that ends with it, which
// has this entry's index, and nil when none does: it is a piece that others follow, or the record
// that opens an epoch. The result is valid until the next call and for as long as e.Data is.
func (j *Joiner) Join(e journal.Entry) ([]byte, error) {
	if len(e.Data) == 0 || e.Data[0] != pieceMark {
		*j = Joiner{}
		if len(e.Data) == 0 {
			return nil, nil
		}
		return e.Data, nil
	}
	if len(e.Data) <= pieceHead {
		return nil, fmt.Errorf("shard: entry %d: %w", e.Index, errPiece)
	}
	before, after, part := int(e.Data[1]), int(e.Data[2]), e.Data[pieceHead:]
	switch {
	case before == 0 && after > 0:
		*j = Joiner{parts: make([]byte, 0, (after+1)*len(part))}
	case j.after > 0 && before == j.before && after == j.after-1:
	case j.Midway && before > 0:
		return nil, nil
	default:
		return nil, fmt.Errorf("shard: entry %d: %w", e.Index, errPiece)
	}
	j.parts = append(j.parts, part...)
	j.before, j.after = before+1, after
	if after > 0 {
		return nil, nil
	}
	whole := j.parts
	*j = Joiner{}
	return whole, nil
}

// errPiece is damage that no checksum has found, or our mistake.
var errPiece = errors.New("it is a piece of an entry, and the preceding piece is missing")
