package filejournal

import (
	"context"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// keepBuffer bounds the buffer that is kept between appends.
const keepBuffer = 4 << 20

// Append implements journal.Journal: one frame, one write, one sync. The context
// is not looked at, because a write to the local disk cannot be called off.
func (j *Journal) Append(_ context.Context, first interlock.Index, entries [][]byte) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if first != j.at.index+1 {
		return fmt.Errorf("%w: append at index %d, expected %d", journal.ErrMisuse, first, j.at.index+1)
	}
	if err := journal.CheckEntries(entries); err != nil {
		return err
	}
	return j.write(entries)
}

// write appends one frame: checked entries, or the epoch record when there are
// none. The caller holds writing.
func (j *Journal) write(entries [][]byte) error {
	size := 4 * max(len(entries), 1)
	for _, e := range entries {
		size += len(e)
	}
	length := frameLength(size)
	if j.off+length > j.header.capacity {
		if err := j.rotate(length); err != nil {
			return err
		}
	}
	// The rest of the page is zeros, and is written as such: of a page that is not in
	// memory the system would have to read what is not written.
	whole := min(roundUp(j.off+length, j.page), j.header.capacity) - j.off
	if int64(cap(j.buf)) < whole {
		j.buf = make([]byte, max(whole, 64<<10))
	}
	b := j.buf[:whole]
	if cap(j.buf) > keepBuffer {
		j.buf = nil
	}
	clear(b[length:])
	at := encodeFrame(b[:length], j.epoch, entries, j.header.salt, j.at)
	if _, err := j.active.WriteAt(b, j.off); err != nil {
		return j.fail("writing the log", err)
	}
	if err := j.active.Sync(); err != nil {
		return j.fail("syncing the log", err)
	}
	j.off += length
	j.at = at
	j.mu.Lock()
	j.tail = at.index
	j.mu.Unlock()
	return nil
}

// rotate continues in a new segment with room for a frame of this length. The caller holds
// writing.
func (j *Journal) rotate(length int64) error {
	if err := j.pool.take(segmentHeaderSize+length, j.begin); err != nil {
		return err
	}
	j.pool.refill()
	return nil
}

// begin makes a prepared file the segment being written. Its header is durable
// before it gets its name, and its name before a frame is written.
func (j *Journal) begin(next *spareFile) error {
	h := segmentHeader{
		first:    j.at.index + 1,
		epoch:    j.at.epoch,
		capacity: next.size,
		prev:     j.at.chain,
		salt:     j.salt(),
	}
	name := indexName(h.first, logSuffix)
	doing := "writing the header of a segment"
	_, err := next.WriteAt(append(h.encode(), make([]byte, min(j.page, next.size)-segmentHeaderSize)...), 0)
	if err == nil {
		doing, err = "syncing the header of a segment", next.Sync()
	}
	if err == nil {
		doing, err = "naming a segment", j.dir.Rename(next.name, name)
	}
	if err == nil {
		doing, err = "syncing the directory", j.dir.Sync()
	}
	if err != nil {
		next.Close()
		return j.fail(doing, err)
	}
	j.closeActive() // nothing in it waits for a sync
	j.active, j.header, j.off = next.file, h, segmentHeaderSize
	j.at.chain = h.crc
	j.mu.Lock()
	j.segments = append(j.segments, segment{name, h.first})
	j.mu.Unlock()
	return nil
}

// Barrier implements journal.Journal. The lock on the directory is held for as
// long as the journal is open, so no later epoch can exist.
func (j *Journal) Barrier(context.Context) error { return j.usable() }

// Epoch implements journal.Journal.
func (j *Journal) Epoch() interlock.Epoch { return j.epoch }

// Tail implements journal.Journal.
func (j *Journal) Tail() interlock.Index {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tail
}

// First implements journal.Journal.
func (j *Journal) First() interlock.Index {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[0].first
}

// Low implements journal.Journal.
func (j *Journal) Low() bool { return j.pool.low.Load() }
