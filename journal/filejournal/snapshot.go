package filejournal

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// A snapshot is the state after an index.
//
//	0               8       12      16              24              32
//	+---------------+-------+-------+---------------+---------------+
//	| "ilocksnp"    |version| crc   | index         | zeros         |
//	+---------------+-------+-------+---------------+---------------+
//	| state, any length ...                                         |
//	+---------------+-------+-------+-------------------------------+
//	| length of state       | crc   | "end\n"|
//	+-----------------------+-------+--------+
const (
	snapshotHeaderSize  = 32
	snapshotTrailerSize = 16
	snapshotEnd         = "end\n"
)

// snapshotNeeded is how many snapshots a restart needs. The entries since the older of them are kept as
// well, so that a damaged newest one can be passed over. The others lead to the past, see journal.Retain;
// maxOldBytes bounds them.
const (
	snapshotNeeded = 2
	maxOldBytes    = 1 << 30
)

// snapshotSyncEvery spreads the writing out: one large sync at the end would hold
// up the appends on the same disk.
const snapshotSyncEvery = 8 << 20

// SaveSnapshot implements journal.Journal.
func (j *Journal) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	j.upkeep.Lock()
	defer j.upkeep.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if tail, newest := j.Tail(), j.newestSnapshot(); at == 0 || at > tail || at < newest {
		return fmt.Errorf(
			"%w: snapshot at index %d; the earlier one is at %d, the tail at %d", journal.ErrMisuse, at, newest, tail,
		)
	}
	name := indexName(at, snapshotSuffix)
	size, own, err := writeSnapshot(ctx, j.dir, name+tempSuffix, at, write)
	if err != nil {
		removeErr := j.dir.Remove(name + tempSuffix)
		switch {
		case !own:
			return err
		case noSpace(err):
			return fmt.Errorf("%w: writing a snapshot: %w", journal.ErrNoSpace, errors.Join(err, removeErr))
		case noFiles(err):
			return fmt.Errorf("%w: writing a snapshot: %w", journal.ErrNoFiles, err)
		}
		return j.fail("writing a snapshot", err)
	}
	if err := j.dir.Rename(name+tempSuffix, name); err != nil {
		return j.fail("naming a snapshot", err)
	}
	if err := j.dir.Sync(); err != nil {
		return j.fail("syncing the directory", err)
	}
	j.mu.Lock()
	if n := len(j.snapshots); n > 0 && j.snapshots[n-1].Index == at {
		j.snapshots = j.snapshots[:n-1]
	}
	saved := append(j.snapshots, journal.Saved{Index: at, Bytes: size})
	j.snapshots = journal.Retain(saved, j.segments[0].first, maxOldBytes)
	j.mu.Unlock()
	j.pool.snapshotTakes(size)
	return j.removeSnapshots()
}

// removeSnapshots removes all snapshots but the kept ones, the spoiled too.
func (j *Journal) removeSnapshots() error {
	names, err := j.dir.Names()
	if noFiles(err) {
		return fmt.Errorf("%w: listing the directory: %w", journal.ErrNoFiles, err)
	}
	if err != nil {
		return j.fail("listing the directory", err)
	}
	for _, name := range names {
		at, ok := nameIndex(name, snapshotSuffix)
		if !ok || slices.Contains(indexes(j.snapshots), at) {
			continue
		}
		if err := j.dir.Remove(name); err != nil {
			return j.fail("removing a snapshot", err)
		}
	}
	j.pool.refill()
	return nil
}

// indexes returns those of snapshots.
func indexes(saved []journal.Saved) (list []interlock.Index) {
	for _, s := range saved {
		list = append(list, s.Index)
	}
	return list
}

func (j *Journal) newestSnapshot() interlock.Index {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.snapshots) == 0 {
		return 0
	}
	return j.snapshots[len(j.snapshots)-1].Index
}

// writeSnapshot writes a whole snapshot and syncs it. It returns its size; own reports that the error
// is of our writing, and not of write or the context.
func writeSnapshot(
	ctx context.Context, dir directory, name string, at interlock.Index, write func(io.Writer) error,
) (size int64, own bool, err error) {
	f, err := dir.Open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return 0, true, err
	}
	defer f.Close()
	w := &snapshotWriter{ctx: ctx, f: f, buf: make([]byte, 0, 64<<10)}
	header := make([]byte, snapshotHeaderSize)
	putPreamble(header, snapshotMagic)
	order.PutUint64(header[16:], uint64(at))
	if _, err := w.Write(header); err != nil {
		return 0, w.err != nil, err
	}
	if err := write(w); err != nil {
		return 0, w.err != nil, err
	}
	trailer := order.AppendUint64(nil, uint64(w.length-snapshotHeaderSize))
	w.crc = crc32.Update(w.crc, castagnoli, trailer)
	trailer = append(order.AppendUint32(trailer, w.crc), snapshotEnd...)
	if _, err := w.Write(trailer); err != nil {
		return 0, w.err != nil, err
	}
	w.flush()
	if w.err == nil {
		w.err = f.Sync()
	}
	return w.length, true, w.err
}

type snapshotWriter struct {
	ctx    context.Context
	f      file
	buf    []byte
	crc    uint32 // of all that was given
	length int64  // of all that was given
	off    int64  // where buf goes
	synced int64
	err    error // of our writing; kept
}

func (w *snapshotWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.crc = crc32.Update(w.crc, castagnoli, p)
	w.length += int64(len(p))
	for rest := p; len(rest) > 0 && w.err == nil; {
		n := copy(w.buf[len(w.buf):cap(w.buf)], rest)
		w.buf, rest = w.buf[:len(w.buf)+n], rest[n:]
		if len(w.buf) == cap(w.buf) {
			w.flush()
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *snapshotWriter) flush() {
	if w.err != nil {
		return
	}
	if _, w.err = w.f.WriteAt(w.buf, w.off); w.err != nil {
		return
	}
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	if w.off-w.synced >= snapshotSyncEvery {
		w.synced, w.err = w.off, w.f.Sync()
	}
}

// Snapshot implements journal.Journal.
func (j *Journal) Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error) {
	return j.SnapshotAt(ctx, ^interlock.Index(0))
}

// SnapshotAt implements journal.Journal. The reader stays good when the snapshot is
// removed meanwhile.
func (j *Journal) SnapshotAt(_ context.Context, upTo interlock.Index) (interlock.Index, io.ReadCloser, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return 0, nil, errClosed
	}
	for _, s := range slices.Backward(j.snapshots) {
		if s.Index > upTo {
			continue
		}
		r, err := openSnapshot(j.dir, j.path, s.Index)
		if err != nil {
			return 0, nil, err
		}
		return s.Index, r, nil
	}
	return 0, nil, nil
}

// snapshotReader shows the state and checks the checksum before it returns io.EOF.
type snapshotReader struct {
	f    file
	path string
	at   interlock.Index
	off  int64
	end  int64 // of the state
	crc  uint32
	want uint32
}

// openSnapshot makes the checks that need not read the state.
func openSnapshot(dir directory, path string, at interlock.Index) (*snapshotReader, error) {
	name := indexName(at, snapshotSuffix)
	f, err := dir.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, failedOpening(err)
	}
	r := &snapshotReader{f: f, path: filepath.Join(path, name), at: at, off: snapshotHeaderSize}
	if err := r.begin(); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (r *snapshotReader) begin() error {
	size, err := r.f.Size()
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrFailed, err)
	}
	r.end = size - snapshotTrailerSize
	var header [snapshotHeaderSize]byte
	var trailer [snapshotTrailerSize]byte
	for _, part := range []struct {
		b   []byte
		off int64
	}{{header[:], 0}, {trailer[:], max(r.end, 0)}} {
		if _, err := r.f.ReadAt(part.b, part.off); err != nil && err != io.EOF {
			return fmt.Errorf("%w: reading %s: %w", journal.ErrFailed, r.path, err)
		}
	}
	if err := checkPreamble(header[:], snapshotMagic); err != nil {
		if isNewer(err) {
			return fmt.Errorf("%s: %w", r.path, err)
		}
		return r.damage(0, err.Error())
	}
	switch {
	case order.Uint64(header[16:]) != uint64(r.at):
		return r.damage(16, "the file's name is not that of its index")
	case r.end < snapshotHeaderSize || string(trailer[12:]) != snapshotEnd:
		return r.damage(max(r.end, 0), "the snapshot has no end")
	case order.Uint64(trailer[:]) != uint64(r.end-snapshotHeaderSize):
		return r.damage(r.end, "the snapshot's length is wrong")
	}
	// The checksum also covers the length behind the state; Read adds it at the end.
	r.crc = checksum(header[:])
	r.want = order.Uint32(trailer[8:])
	return nil
}

func (r *snapshotReader) damage(off int64, reason string) error {
	return &journal.DamageError{File: r.path, Offset: off, Index: r.at, Reason: reason}
}

func (r *snapshotReader) Read(p []byte) (int, error) {
	if r.off == r.end {
		length := order.AppendUint64(nil, uint64(r.end-snapshotHeaderSize))
		if crc32.Update(r.crc, castagnoli, length) != r.want {
			return 0, r.damage(r.end, "checksum of the snapshot")
		}
		return 0, io.EOF
	}
	n, err := r.f.ReadAt(p[:min(int64(len(p)), r.end-r.off)], r.off)
	r.crc = crc32.Update(r.crc, castagnoli, p[:n])
	r.off += int64(n)
	if err == io.EOF && n == 0 {
		return 0, r.damage(r.off, "the file became shorter")
	}
	if err != nil && err != io.EOF {
		return n, fmt.Errorf("%w: reading %s: %w", journal.ErrFailed, r.path, err)
	}
	return n, nil
}

func (r *snapshotReader) Close() error { return r.f.Close() }

// checkSnapshot checks a snapshot, and with whole reads all of it. It returns its size.
func checkSnapshot(
	ctx context.Context, dir directory, path string, at interlock.Index, whole bool,
) (size int64, err error) {
	r, err := openSnapshot(dir, path, at)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	size = r.end + snapshotTrailerSize
	b := make([]byte, max(1, min(windowSize, r.end-r.off)))
	for whole {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		if _, err := r.Read(b); err == io.EOF {
			break
		} else if err != nil {
			return size, err
		}
	}
	return size, nil
}
