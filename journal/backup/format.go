package backup

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

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

// A backup is a header and chunks.
//
//	+--------+----------+-- ... --+----------+---------+-- ... --+---------+-----+
//	| header | snapshot | chunks  | snapshot | entries | chunks  | entries | end |
//	+--------+----------+-- ... --+----------+---------+-- ... --+---------+-----+
//
// The data of the snapshot's chunks, one after the other, are a snapshot as a journal has it. Those
// of the entries' chunks are the entries that follow it, in order:
//
//	0        4           12           12 + length
//	+--------+-----------+--------------+
//	| length | epoch     | data         |   again and again
//	+--------+-----------+--------------+
//
// There are no chunks of a snapshot where the journal had none, and none of entries where the
// snapshot is of the backup's index.
const entryHead = 12

// Header describes a backup.
//
//	0               8       12      16      20      24              32
//	+---------------+-------+-------+-------+-------+---------------+
//	| "ilockbak"    |version| crc   | shard | zeros | epoch         |
//	+---------------+-------+-------+-------+-------+---------------+
//	| index         | snapshot      | time          | zeros | crc   |
//	+---------------+---------------+---------------+-------+-------+
//	32              40              48              56      60      64
//
// The first crc is of the 12 bytes before it. They have the same layout in all versions to come, so
// that "newer" can be distinguished from "damaged". The second one is of the 60 bytes before it.
type Header struct {
	// Shard is the number of the shard.
	Shard int
	// Epoch is the one of the owner that made the backup.
	Epoch interlock.Epoch
	// Index is the entry after which the state was as the backup has it.
	Index interlock.Index
	// Snapshot is the index of the snapshot in the backup. 0 means that there is none.
	Snapshot interlock.Index
	// Time is when the backup was begun.
	Time time.Time
}

const (
	magic      = "ilockbak"
	headerSize = 64
)

func (h *Header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	order.PutUint32(b[8:], version)
	order.PutUint32(b[12:], crc32.Checksum(b[:12], castagnoli))
	order.PutUint32(b[16:], uint32(h.Shard))
	order.PutUint64(b[24:], uint64(h.Epoch))
	order.PutUint64(b[32:], uint64(h.Index))
	order.PutUint64(b[40:], uint64(h.Snapshot))
	order.PutUint64(b[48:], uint64(h.Time.UnixNano()))
	order.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// decodeHeader returns journal.ErrNewer, or an error that describes the damage.
func decodeHeader(b []byte) (h Header, err error) {
	switch {
	case len(b) < 16 || string(b[:8]) != magic:
		return h, fmt.Errorf("it does not begin with %q, so it is no backup", magic)
	case order.Uint32(b[12:]) != crc32.Checksum(b[:12], castagnoli):
		return h, fmt.Errorf("checksum of the preamble")
	case order.Uint32(b[8:]) > version:
		return h, fmt.Errorf("%w: the backup has format %d, and this program reads up to %d: use the newer program",
			journal.ErrNewer, order.Uint32(b[8:]), version)
	case len(b) < headerSize || order.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli):
		return h, fmt.Errorf("checksum of the header")
	}
	h = Header{
		Shard:    int(order.Uint32(b[16:])),
		Epoch:    interlock.Epoch(order.Uint64(b[24:])),
		Index:    interlock.Index(order.Uint64(b[32:])),
		Snapshot: interlock.Index(order.Uint64(b[40:])),
		Time:     time.Unix(0, int64(order.Uint64(b[48:]))).UTC(),
	}
	if h.Index == 0 || h.Epoch == 0 || h.Snapshot > h.Index {
		return h, fmt.Errorf("the header's indexes are impossible")
	}
	return h, nil
}

// A chunk is the unit that a reader checks at once.
//
//	0      4      8      12           12 + size
//	+------+------+------+------------+
//	| kind | size | crc  | data       |
//	+------+------+------+------------+
//
// The crc is of kind, size and data. The last chunk has the kind "end." and the data
//
//	0        8                     40
//	+--------+---------------------+
//	| length | SHA-256             |   of all that stands before the chunk
//	+--------+---------------------+
const (
	chunkHead = 12
	chunkSize = 64 << 10 // of the data, at most
	endSize   = 40
)

// The kinds of chunks, in the order in which they may stand in a file.
const (
	kindSnapshot = 0x70616e73 // "snap"
	kindEntries  = 0x72746e65 // "entr"
	kindEnd      = 0x2e646e65 // "end."
)

// kindRank returns the place of a kind in the order, or 0 for a number that is no kind.
func kindRank(kind uint32) int {
	switch kind {
	case kindSnapshot:
		return 1
	case kindEntries:
		return 2
	case kindEnd:
		return 3
	}
	return 0
}

func chunkSum(head, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:8], castagnoli), castagnoli, data)
}
