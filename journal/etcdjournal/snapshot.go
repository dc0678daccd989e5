package etcdjournal

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// chunkBytes is how large a chunk of a snapshot is: small enough that an append does not
// wait long behind it.
const chunkBytes = 256 << 10

// snapshot is the content of the key state.
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
func (s *Store) folder(n *snapshot) string {
	return fmt.Sprintf("%sstate/%020d-%010d/", s.prefix, uint64(n.epoch), n.number)
}

func chunkKey(folder string, i int) string { return fmt.Sprintf("%s%010d", folder, i) }

// newest reads which snapshot is the newest; its index is 0 when there is none.
func (s *Store) newest(ctx context.Context) (snapshot, error) {
	n, _, err := s.newestAt(ctx)
	return n, err
}

// newestAt also returns the revision of etcd that it was read at.
func (s *Store) newestAt(ctx context.Context) (n snapshot, revision int64, err error) {
	var got *clientv3.GetResponse
	err = s.read(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Get(ctx, s.key("state"))
		return err
	})
	switch {
	case err != nil:
		return n, 0, fmt.Errorf("%w: reading which snapshot is the newest: %w", journal.ErrFailed, err)
	case len(got.Kvs) == 0:
		return n, got.Header.Revision, nil
	}
	if n, err = parseSnapshot(string(got.Kvs[0].Value)); err != nil {
		return n, 0, s.damaged("state", err.Error())
	}
	return n, got.Header.Revision, nil
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
	earlier, err := s.newest(ctx)
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
	n := snapshot{index: at, epoch: j.epoch, number: j.snapshots}
	folder := s.folder(&n)
	if err := n.fill(write, func(i int, chunk []byte) error {
		return j.guarded(ctx, clientv3.OpPut(chunkKey(folder, i), string(chunk)))
	}); err != nil {
		// Keys that are left behind go with the next snapshot.
		_ = j.guarded(context.WithoutCancel(ctx), clientv3.OpDelete(folder, clientv3.WithPrefix()))
		return err
	}
	if err := j.guarded(ctx, clientv3.OpPut(s.key("state"), n.String())); err != nil {
		return err
	}
	// The snapshot is in force, whether or not the room of the earlier ones is freed.
	_ = j.guarded(ctx, clientv3.OpDelete(s.key("state/"), clientv3.WithRange(folder)))
	return nil
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
// that too.
func (j *Journal) Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error) {
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return 0, nil, fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	}
	n, revision, err := j.store.newestAt(ctx)
	if err != nil || n.index == 0 {
		return 0, nil, err
	}
	return n.index, &chunkReader{ctx: ctx, store: j.store, snapshot: n, revision: revision}, nil
}

// chunkReader reads a snapshot as it was at a revision, because it may be replaced
// meanwhile. Chunks never change, so where etcd has forgotten that revision the newest
// one is as good, as long as it has them.
type chunkReader struct {
	ctx      context.Context
	store    *Store
	snapshot snapshot
	revision int64 // 0: the newest
	next     int
	rest     []byte
	size     int64
	crc      uint32
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
	key := chunkKey(r.store.folder(&r.snapshot), r.next)
	var got *clientv3.GetResponse
	err := r.store.read(r.ctx, func(ctx context.Context) (err error) {
		got, err = r.store.client.Get(ctx, key, clientv3.WithRev(r.revision))
		if compacted(err) {
			r.revision = 0
			got, err = r.store.client.Get(ctx, key)
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: reading the snapshot of index %d: %w", journal.ErrFailed, r.snapshot.index, err)
	case len(got.Kvs) == 0 && r.revision == 0:
		return fmt.Errorf(
			"%w: the snapshot of index %d was replaced and compacted while it was read", journal.ErrFailed, r.snapshot.index,
		)
	case len(got.Kvs) == 0:
		return r.damaged("a chunk is missing")
	}
	r.rest = got.Kvs[0].Value
	r.next++
	r.size += int64(len(r.rest))
	r.crc = crc32.Update(r.crc, castagnoli, r.rest)
	return nil
}

func (r *chunkReader) damaged(reason string) error {
	return &journal.DamageError{
		File: chunkKey(r.store.folder(&r.snapshot), max(0, r.next-1)), Offset: 0, Index: r.snapshot.index, Reason: reason,
	}
}

func (r *chunkReader) Close() error { return nil }
