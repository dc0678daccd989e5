package filejournal

import (
	"errors"
	"hash/crc32"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// A frame is the stored form of one Append, whole or not at all.
//
//	0       4       8               16              24      28      32      36      40
//	+-------+-------+---------------+---------------+-------+-------+-------+-------+
//	| magic | size  | first index   | epoch         | count | prev  | body  | head  |
//	+-------+-------+---------------+---------------+-------+-------+-------+-------+
//	| body: count x ( length 4 bytes, data ), size bytes    | zeros to a multiple of 8
//	+-------------------------------------------------------+------------------------
//
// head is the checksum of the 36 bytes before it, seeded with the segment's salt,
// and the chain value after this frame; prev is the chain value before it.
type frameHeader struct {
	size  uint32
	first interlock.Index
	epoch interlock.Epoch
	count uint32
	prev  uint32
	body  uint32
	head  uint32
}

const (
	frameMagic      = 0x6d726649 // "Ifrm"
	frameHeaderSize = 40
	frameAlign      = 8
)

// frameLength is the length of a frame with this body, padding included.
func frameLength(size int) int64 {
	return (frameHeaderSize + int64(size) + frameAlign - 1) &^ (frameAlign - 1)
}

// pageSize is the unit in which the system keeps files in memory.
const pageSize = 4096

// roundUp returns the next multiple of a page, which is a power of two.
func roundUp(off, page int64) int64 { return (off + page - 1) &^ (page - 1) }

// position is the end of a log, which the next frame must continue.
type position struct {
	index interlock.Index // the last one
	epoch interlock.Epoch
	chain uint32
}

// encodeFrame writes a frame into b, which is as long as the frame, and returns
// the position behind it. No entries means the epoch record.
func encodeFrame(b []byte, epoch interlock.Epoch, entries [][]byte, salt uint32, at position) position {
	count := max(len(entries), 1)
	n := frameHeaderSize
	if len(entries) == 0 {
		order.PutUint32(b[n:], 0)
		n += 4
	}
	for _, e := range entries {
		order.PutUint32(b[n:], uint32(len(e)))
		n += 4 + copy(b[n+4:], e)
	}
	clear(b[n:])
	order.PutUint32(b[0:], frameMagic)
	order.PutUint32(b[4:], uint32(n-frameHeaderSize))
	order.PutUint64(b[8:], uint64(at.index+1))
	order.PutUint64(b[16:], uint64(epoch))
	order.PutUint32(b[24:], uint32(count))
	order.PutUint32(b[28:], at.chain)
	order.PutUint32(b[32:], checksum(b[frameHeaderSize:n]))
	head := crc32.Update(salt, castagnoli, b[:36])
	order.PutUint32(b[36:], head)
	return position{at.index + interlock.Index(count), epoch, head}
}

// decodeFrameHeader reports whether b begins with a frame header that checks.
func decodeFrameHeader(b []byte, salt uint32) (frameHeader, bool) {
	if len(b) < frameHeaderSize || order.Uint32(b) != frameMagic ||
		order.Uint32(b[36:]) != crc32.Update(salt, castagnoli, b[:36]) {
		return frameHeader{}, false
	}
	return frameHeader{
		size:  order.Uint32(b[4:]),
		first: interlock.Index(order.Uint64(b[8:])),
		epoch: interlock.Epoch(order.Uint64(b[16:])),
		count: order.Uint32(b[24:]),
		prev:  order.Uint32(b[28:]),
		body:  order.Uint32(b[32:]),
		head:  order.Uint32(b[36:]),
	}, true
}

func (h frameHeader) record() bool { return h.count == 1 && h.size == 4 }

func (h frameHeader) last() interlock.Index { return h.first + interlock.Index(h.count) - 1 }

func (h frameHeader) after() position { return position{h.last(), h.epoch, h.head} }

// continues returns why the frame cannot stand behind at, or "".
func (h frameHeader) continues(at position) string {
	switch {
	case h.first != at.index+1:
		return "the frame's first index is not the next one"
	case h.prev != at.chain:
		return "the frame does not continue the checksum of the one before"
	case h.count == 0 || h.last() < h.first:
		return "the frame's count is impossible"
	case h.record() && h.epoch <= at.epoch:
		return "the epoch record does not raise the epoch"
	case !h.record() && h.epoch != at.epoch:
		return "the frame's epoch is not the current one"
	}
	return ""
}

var (
	errBodyChecksum = errors.New("checksum of the frame's body")
	errBodyShape    = errors.New("the frame's entries do not fill its body")
)

// checkBody checks the checksum and the shape of a body.
func (h frameHeader) checkBody(body []byte) error {
	if checksum(body) != h.body {
		return errBodyChecksum
	}
	if h.record() {
		if order.Uint32(body) != 0 {
			return errBodyShape
		}
		return nil
	}
	n := uint32(0)
	for ; len(body) >= 4 && n < h.count; n++ {
		size := int64(order.Uint32(body))
		if size == 0 || size > int64(len(body)-4) {
			return errBodyShape
		}
		body = body[4+size:]
	}
	if n != h.count || len(body) != 0 {
		return errBodyShape
	}
	return nil
}

// each visits the entries of a checked body.
func (h frameHeader) each(body []byte, visit func(journal.Entry) error) error {
	for i := h.first; i <= h.last(); i++ {
		size := order.Uint32(body)
		if err := visit(journal.Entry{Index: i, Epoch: h.epoch, Data: body[4 : 4+size : 4+size]}); err != nil {
			return err
		}
		body = body[4+size:]
	}
	return nil
}
