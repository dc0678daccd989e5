package remote

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// chunkBytes is how large a chunk of a snapshot is: small enough that an append does not
// wait long behind it.
const chunkBytes = 256 << 10

// stateName is the value that names the newest snapshot, and olderName has a line for each older one.
const (
	stateName = "state"
	olderName = "older"
)

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
		return j.must(ctx, func(ctx context.Context, by Head) (done bool, err error) {
			_, done, err = s.driver.Put(ctx, by, chunkName(folder, i), chunk, AnyVersion)
			return done, err
		})
	}); err != nil {
		// What is left behind goes with the next snapshot.
		_ = j.remove(context.WithoutCancel(ctx), folder, behind(folder))
		return err
	}
	older, err := s.older(ctx)
	if err != nil {
		return err
	}
	kept := retained(append(older, earlier), n, j.First())
	// First the older ones: a crash between leaves one that is named twice, and none that is forgotten.
	if !slices.Equal(kept, older) {
		if err := j.must(ctx, func(ctx context.Context, by Head) (done bool, err error) {
			_, done, err = s.driver.Put(ctx, by, olderName, listed(kept), AnyVersion)
			return done, err
		}); err != nil {
			return err
		}
	}
	if _, err := j.replace(ctx, stateName, []byte(n.String()), version); err != nil {
		return err
	}
	// The snapshot is in force, whether or not the room of the others is freed.
	_ = j.removeBetween(ctx, append(kept, n))
	return nil
}

// maxOldBytes bounds the snapshots that only the past needs: some engines have room for few GiB.
const maxOldBytes = 64 << 20

// older reads which older snapshots are kept, oldest first.
func (s *Store) older(ctx context.Context) (list []snapshot, err error) {
	v, err := s.get(ctx, olderName)
	if err != nil {
		return nil, failed("reading which older snapshots there are", err)
	}
	for line := range strings.Lines(string(v.Data)) {
		n, err := parseSnapshot(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, s.damaged(olderName, err.Error())
		}
		list = append(list, n)
	}
	return list, nil
}

func listed(list []snapshot) []byte {
	var b strings.Builder
	for i := range list {
		fmt.Fprintln(&b, &list[i])
	}
	return []byte(b.String())
}

// retained returns which of the snapshots before the newest are kept. Of those with one index the last
// counts.
func retained(before []snapshot, newest snapshot, first interlock.Index) (list []snapshot) {
	byIndex := map[interlock.Index]snapshot{}
	var saved []journal.Saved
	for _, n := range before {
		if n.index == 0 || n.index >= newest.index {
			continue
		}
		if _, known := byIndex[n.index]; !known {
			saved = append(saved, journal.Saved{Index: n.index, Bytes: n.size})
		}
		byIndex[n.index] = n
	}
	saved = append(saved, journal.Saved{Index: newest.index, Bytes: newest.size})
	for _, x := range journal.Retain(saved, first, maxOldBytes) {
		if n, ok := byIndex[x.Index]; ok {
			list = append(list, n)
		}
	}
	return list
}

// stretch is what lies between the chunks of one snapshot and those of a later one.
type stretch struct{ from, to string }

// removeBetween removes the chunks of all snapshots but the kept ones and those with an open reader. The
// last of the kept ones is the newest, and all that is made later lies above it. So a stretch that was
// empty once stays empty.
func (j *Journal) removeBetween(ctx context.Context, kept []snapshot) error {
	var folders []string
	for i := range kept {
		folders = append(folders, kept[i].folder())
	}
	newest := folders[len(folders)-1]
	j.mu.Lock()
	for folder := range j.open {
		folders = append(folders, folder)
	}
	j.mu.Unlock()
	slices.Sort(folders)
	emptied := map[stretch]bool{}
	gap := stretch{from: stateName + "/"}
	for _, folder := range folders {
		if gap.to = folder; folder > newest {
			break
		}
		if gap.from < gap.to && !j.emptied[gap] {
			if err := j.remove(ctx, gap.from, gap.to); err != nil {
				return err
			}
		}
		emptied[gap] = true
		gap.from = behind(folder)
	}
	j.emptied = emptied
	return nil
}

// behind is above all names in a folder, which ends in a slash.
func behind(folder string) string { return folder[:len(folder)-1] + string(rune('/'+1)) }

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

// Snapshot implements journal.Journal.
func (j *Journal) Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error) {
	return j.SnapshotAt(ctx, ^interlock.Index(0))
}

// SnapshotAt implements journal.Journal. The reader reads chunk by chunk, and ctx bounds
// that too. As long as it is open no later snapshot of this owner removes what it reads.
func (j *Journal) SnapshotAt(ctx context.Context, upTo interlock.Index) (interlock.Index, io.ReadCloser, error) {
	for {
		n, err := j.newestAt(ctx, upTo)
		if err != nil || n.index == 0 {
			return 0, nil, err
		}
		folder := n.folder()
		j.hold(folder, 1)
		// It may have been removed before it was held.
		again, err := j.newestAt(ctx, upTo)
		if err == nil && again == n {
			return n.index, &chunkReader{ctx: ctx, j: j, snapshot: n, folder: folder}, nil
		}
		j.hold(folder, -1)
		if err != nil {
			return 0, nil, err
		}
	}
}

// newestAt returns the newest snapshot at or below an index; its own index is 0 when there is none.
func (j *Journal) newestAt(ctx context.Context, upTo interlock.Index) (snapshot, error) {
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return snapshot{}, fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	}
	n, _, err := j.store.newest(ctx)
	if err != nil || n.index <= upTo {
		return n, err
	}
	older, err := j.store.older(ctx)
	for _, n := range slices.Backward(older) {
		if n.index <= upTo {
			return n, err
		}
	}
	return snapshot{}, err
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
		if again, err := r.j.newestAt(r.ctx, r.snapshot.index); err != nil || again != r.snapshot {
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
