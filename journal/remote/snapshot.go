package remote

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// chunkBytes is how large a chunk of a snapshot is: small enough that an append does not
// wait long behind it.
const chunkBytes = 256 << 10

// stateName is the value that names the newest snapshot.
const stateName = "state"

// snapshot is the content of that value.
type snapshot struct {
	index  interlock.Index
	epoch  interlock.Epoch // of the owner that made it
	number int             // which of its snapshots
	chunks int
	size   int64
	crc    uint32
}

func (n *snapshot) String() string {
	return fmt.Sprintf("%d %d-%d %d %d %08x", uint64(n.index), uint64(n.epoch), n.number, n.chunks, n.size, n.crc)
}

func parseSnapshot(text string) (n snapshot, err error) {
	_, err = fmt.Sscanf(
		text, "%d %d-%d %d %d %x", (*uint64)(&n.index), (*uint64)(&n.epoch), &n.number, &n.chunks, &n.size, &n.crc,
	)
	if err != nil || n.String() != text {
		return n, errors.New("it names no snapshot")
	}
	return n, nil
}

// folder is where the chunks of a snapshot are. Those of an older one sort below.
func (n *snapshot) folder() string {
	return fmt.Sprintf("state/%020d-%010d/", uint64(n.epoch), n.number)
}

func chunkName(folder string, i int) string { return fmt.Sprintf("%s%010d", folder, i) }

// newest reads which snapshot is the newest, and the version of the value; the snapshot's index is
// 0 when there is none.
func (s *Store) newest(ctx context.Context) (n snapshot, version string, err error) {
	v, err := s.get(ctx, stateName)
	switch {
	case err != nil:
		return n, "", failed("reading which snapshot is the newest", err)
	case v.Version == "":
		return n, "", nil
	}
	if n, err = parseSnapshot(string(v.Data)); err != nil {
		return n, "", s.damaged(stateName, err.Error())
	}
	return n, v.Version, nil
}

// SaveSnapshot implements journal.Journal. After an error that is not ErrFenced the journal
// continues; when it is unknown whether the new snapshot is in force, either is as good as the
// other.
func (j *Journal) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	s := j.store
	earlier, version, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if tail := j.Tail(); at == 0 || at > tail || at < earlier.index {
		if err := j.stillOwner(ctx); err != nil {
			return err
		}
		return fmt.Errorf(
			"%w: snapshot at index %d; the earlier one is at %d, the tail at %d", journal.ErrMisuse, at, earlier.index, tail,
		)
	}
	j.snapshots++
	n := snapshot{index: at, epoch: j.owner.Epoch, number: j.snapshots}
	folder := n.folder()
	if err := n.fill(write, func(i int, chunk []byte) error {
		return j.must(ctx, func(ctx context.Context) (done bool, err error) {
			_, done, err = s.driver.Put(ctx, j.owner, chunkName(folder, i), chunk, AnyVersion)
			return done, err
		})
	}); err != nil {
		// What is left behind goes with the next snapshot.
		_ = j.remove(context.WithoutCancel(ctx), folder, behind(folder))
		return err
	}
	if _, err := j.replace(ctx, stateName, []byte(n.String()), version); err != nil {
		return err
	}
	// The snapshot is in force, whether or not the room of the earlier ones is freed.
	_ = j.remove(ctx, stateName+"/", j.oldestRead(folder))
	return nil
}

// behind is above all names in a folder, which ends in a slash.
func behind(folder string) string { return folder[:len(folder)-1] + string(rune('/'+1)) }

// oldestRead is the oldest folder with an open reader, or newest if there is none below.
func (j *Journal) oldestRead(newest string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for folder := range j.open {
		newest = min(newest, folder)
	}
	return newest
}

// fill hands a state over in chunks, and notes what there was of it.
func (n *snapshot) fill(write func(io.Writer) error, put func(i int, chunk []byte) error) error {
	w := &chunker{snapshot: n, put: put}
	if err := write(w); err != nil {
		return err
	}
	return w.flush()
}

type chunker struct {
	*snapshot
	put func(i int, chunk []byte) error
	buf []byte
	err error
}

func (w *chunker) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if w.err != nil {
			return n, w.err
		}
		if w.buf == nil {
			w.buf = make([]byte, 0, chunkBytes)
		}
		part := p[n:min(len(p), n+chunkBytes-len(w.buf))]
		w.buf = append(w.buf, part...)
		n += len(part)
		if len(w.buf) == chunkBytes {
			_ = w.flush()
		}
	}
	return n, w.err
}

func (w *chunker) flush() error {
	if w.err != nil || len(w.buf) == 0 {
		return w.err
	}
	w.crc = crc32.Update(w.crc, castagnoli, w.buf)
	w.size += int64(len(w.buf))
	w.err = w.put(w.chunks, w.buf)
	w.chunks++
	w.buf = w.buf[:0]
	return w.err
}

// Snapshot implements journal.Journal. The reader reads chunk by chunk, and ctx bounds
// that too. As long as it is open no later snapshot of this owner removes what it reads.
func (j *Journal) Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error) {
	for {
		n, _, err := j.newest(ctx)
		if err != nil || n.index == 0 {
			return 0, nil, err
		}
		folder := n.folder()
		j.hold(folder, 1)
		// It may have been replaced before it was held.
		again, _, err := j.newest(ctx)
		if err == nil && again == n {
			return n.index, &chunkReader{ctx: ctx, j: j, snapshot: n, folder: folder}, nil
		}
		j.hold(folder, -1)
		if err != nil {
			return 0, nil, err
		}
	}
}

func (j *Journal) newest(ctx context.Context) (snapshot, string, error) {
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return snapshot{}, "", fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	}
	return j.store.newest(ctx)
}

// hold counts the readers of a folder.
func (j *Journal) hold(folder string, more int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open[folder] += more; j.open[folder] == 0 {
		delete(j.open, folder)
	}
}

// chunkReader reads a snapshot, which may be replaced meanwhile.
type chunkReader struct {
	ctx      context.Context
	j        *Journal
	snapshot snapshot
	folder   string
	next     int
	rest     []byte
	size     int64
	crc      uint32
	closed   bool
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.next == r.snapshot.chunks {
			if r.size != r.snapshot.size || r.crc != r.snapshot.crc {
				return 0, r.damaged("the checksum does not hold")
			}
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *chunkReader) fetch() error {
	chunk, err := r.j.store.get(r.ctx, chunkName(r.folder, r.next))
	if err != nil {
		return failed(fmt.Sprintf("reading the snapshot of index %d", r.snapshot.index), err)
	}
	if chunk.Version == "" {
		// A later owner removes what no reader of its own needs.
		if newest, _, err := r.j.store.newest(r.ctx); err != nil || newest != r.snapshot {
			return failed(fmt.Sprintf("the snapshot of index %d was replaced while it was read", r.snapshot.index), err)
		}
		return r.damaged("a chunk is missing")
	}
	r.rest = chunk.Data
	r.next++
	r.size += int64(len(r.rest))
	r.crc = crc32.Update(r.crc, castagnoli, r.rest)
	return nil
}

func (r *chunkReader) damaged(reason string) error {
	return &journal.DamageError{
		File: r.j.store.driver.Place(chunkName(r.folder, max(0, r.next-1))), Index: r.snapshot.index, Reason: reason,
	}
}

// Close lets a later snapshot remove the chunks.
func (r *chunkReader) Close() error {
	if !r.closed {
		r.closed = true
		r.j.hold(r.folder, -1)
	}
	return nil
}
