package filejournal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// version is the newest format that this package reads and the one it writes.
const version = 1

// All integers are little-endian, all checksums CRC32C.
var (
	order      = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// The names in the directory.
const (
	logSuffix      = ".log"
	snapshotSuffix = ".snap"
	tempSuffix     = ".tmp"
	spareName      = "spare"
	reserveName    = "reserve"
	identityName   = "identity"
	cleanName      = "clean"
	restoringName  = "restoring"
)

func indexName(i interlock.Index, suffix string) string { return fmt.Sprintf("%020d%s", i, suffix) }

// nameIndex is the reverse of indexName; names of any other shape are not ours.
func nameIndex(name, suffix string) (interlock.Index, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return interlock.Index(n), err == nil && n > 0
}

// Every file but spare and reserve begins with a preamble. Its layout is the same in all
// versions to come, so that "newer" can be distinguished from "damaged".
//
//	0               8       12      16
//	+---------------+-------+-------+
//	| magic         |version| crc   |
//	+---------------+-------+-------+
const preambleSize = 16

const (
	segmentMagic  = "ilockseg"
	snapshotMagic = "ilocksnp"
	identityMagic = "ilockidn"
	cleanMagic    = "ilockcln"
	restoreMagic  = "ilockrst"
)

func putPreamble(b []byte, magic string) {
	copy(b, magic)
	order.PutUint32(b[8:], version)
	order.PutUint32(b[12:], checksum(b[:12]))
}

// checkPreamble returns ErrNewer, or why the preamble cannot be right.
func checkPreamble(b []byte, magic string) error {
	switch {
	case len(b) < preambleSize || string(b[:8]) != magic:
		return fmt.Errorf("does not begin with %q", magic)
	case order.Uint32(b[12:]) != checksum(b[:12]):
		return fmt.Errorf("checksum of the preamble")
	case order.Uint32(b[8:]) > version:
		return fmt.Errorf("%w: format %d, this program reads up to %d: start the newer program",
			journal.ErrNewer, order.Uint32(b[8:]), version)
	case order.Uint32(b[8:]) == 0:
		return fmt.Errorf("format 0 does not exist")
	}
	return nil
}

// segmentHeader begins a segment.
//
//	0               8       12      16              24              32
//	+---------------+-------+-------+---------------+---------------+
//	| "ilockseg"    |version| crc   | first index   | epoch         |
//	+---------------+-------+-------+---------------+---------------+
//	| capacity      | prev  | salt  | zeros         |  zeros| crc   |
//	+---------------+-------+-------+---------------+---------------+
//	32              40      44      48              56      60      64
type segmentHeader struct {
	first    interlock.Index
	epoch    interlock.Epoch // of the entry before first
	capacity int64           // size of the file
	prev     uint32          // chain value before this segment
	salt     uint32          // seeds the frames' head checksums
	crc      uint32          // chain value before the first frame
}

const segmentHeaderSize = 64

func (h *segmentHeader) encode() []byte {
	b := make([]byte, segmentHeaderSize)
	putPreamble(b, segmentMagic)
	order.PutUint64(b[16:], uint64(h.first))
	order.PutUint64(b[24:], uint64(h.epoch))
	order.PutUint64(b[32:], uint64(h.capacity))
	order.PutUint32(b[40:], h.prev)
	order.PutUint32(b[44:], h.salt)
	h.crc = checksum(b[:60])
	order.PutUint32(b[60:], h.crc)
	return b
}

func decodeSegmentHeader(b []byte) (segmentHeader, error) {
	if err := checkPreamble(b, segmentMagic); err != nil {
		return segmentHeader{}, err
	}
	if len(b) < segmentHeaderSize || order.Uint32(b[60:]) != checksum(b[:60]) {
		return segmentHeader{}, fmt.Errorf("checksum of the segment header")
	}
	return segmentHeader{
		first:    interlock.Index(order.Uint64(b[16:])),
		epoch:    interlock.Epoch(order.Uint64(b[24:])),
		capacity: int64(order.Uint64(b[32:])),
		prev:     order.Uint32(b[40:]),
		salt:     order.Uint32(b[44:]),
		crc:      order.Uint32(b[60:]),
	}, nil
}

// identity records which file it is, so that a copy of the directory is noticed.
//
//	0               8       12      16              24              32      36
//	+---------------+-------+-------+---------------+---------------+-------+
//	| "ilockidn"    |version| crc   | device        | inode         | crc   |
//	+---------------+-------+-------+---------------+---------------+-------+
const identitySize = 36

func encodeIdentity(device, inode uint64) []byte {
	b := make([]byte, identitySize)
	putPreamble(b, identityMagic)
	order.PutUint64(b[16:], device)
	order.PutUint64(b[24:], inode)
	order.PutUint32(b[32:], checksum(b[:32]))
	return b
}

// sameIdentity returns ErrNewer or whether b is the identity of that very file.
func sameIdentity(b []byte, device, inode uint64) (bool, error) {
	if err := checkPreamble(b, identityMagic); isNewer(err) {
		return false, err
	}
	return bytes.Equal(b, encodeIdentity(device, inode)), nil
}

// clean contains the end of a log that no process has open.
//
//	0               8       12      16              24      28      32
//	+---------------+-------+-------+---------------+-------+-------+
//	| "ilockcln"    |version| crc   | tail          | chain | crc   |
//	+---------------+-------+-------+---------------+-------+-------+
const cleanSize = 32

func encodeClean(p position) []byte {
	b := make([]byte, cleanSize)
	putPreamble(b, cleanMagic)
	order.PutUint64(b[16:], uint64(p.index))
	order.PutUint32(b[24:], p.chain)
	order.PutUint32(b[28:], checksum(b[:28]))
	return b
}

// decodeClean returns ErrNewer or whether there is a mark that can be read.
func decodeClean(b []byte) (tail interlock.Index, chain uint32, ok bool, err error) {
	if err := checkPreamble(b, cleanMagic); err != nil {
		if isNewer(err) {
			return 0, 0, false, err
		}
		return 0, 0, false, nil
	}
	if len(b) != cleanSize || order.Uint32(b[28:]) != checksum(b[:28]) {
		return 0, 0, false, nil
	}
	return interlock.Index(order.Uint64(b[16:])), order.Uint32(b[24:]), true, nil
}

// restoring stands in a directory while a state is being written to it. It is a preamble and no
// more: that there is such a file is all that counts.
func encodeRestoring() []byte {
	b := make([]byte, preambleSize)
	putPreamble(b, restoreMagic)
	return b
}
