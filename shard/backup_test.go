package shard

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/backup"
	"github.com/interlockdev/interlock/journal/filejournal"
)

// restored writes a backup to a file, and reads its state.
func (r *rig) restored(b *Backup) (*State, *backup.File) {
	r.Helper()
	path := filepath.Join(r.TempDir(), "backup")
	f, err := os.Create(path)
	if err != nil {
		r.Fatal(err)
	}
	length, err := b.WriteTo(r.Context(), f)
	if err != nil {
		r.Fatal(err)
	}
	b.Close()
	if err := f.Close(); err != nil {
		r.Fatal(err)
	}
	file, err := backup.Open(r.Context(), path)
	if err != nil {
		r.Fatal(err)
	}
	if file.Header != b.Header || file.Length != length {
		r.Errorf("%+v of %d bytes, written were %+v of %d", file.Header, file.Length, b.Header, length)
	}
	state, err := ReadBackup(r.Context(), file)
	if err != nil {
		r.Fatal(err)
	}
	return state, file
}

func (r *rig) backup() *Backup {
	r.Helper()
	b, err := r.shard.Backup(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(b.Close)
	return b
}

// A backup has the state of the moment when it was begun, with the head of the hash chain, and
// without what came later: with a snapshot and without one.
func TestBackup(t *testing.T) {
	for name, bytes := range map[string]int64{"journal alone": -1, "with snapshots": 2000} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = bytes, -1 })
			for i := range 40 {
				r.expect(engine.Granted, acquire(nil, keyNumber(i)))
			}
			r.shard.background.Wait()
			want := r.hash()
			head, at, err := r.shard.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b := r.backup()
			if b.Header.Index != at.Index || b.Header.Epoch != at.Epoch || b.Header.Shard != 7 ||
				b.Header.Snapshot > 0 != (bytes > 0) {
				t.Errorf("%+v, and the shard is at %+v", b.Header, at)
			}
			for i := range 40 {
				r.expect(engine.Granted, acquire(nil, keyNumber(100+i)))
			}
			state, _ := r.restored(b)
			if state.Hash() != want || state.Head() != head || state.Index != at.Index || state.Epoch != at.Epoch {
				t.Errorf("%d, epoch %d, head %s: not the state at %+v, head %s",
					state.Index, state.Epoch, state.Head(), at, head)
			}
		})
	}
}

// One backup is made at a time, and its end makes room for the next.
func TestOneBackup(t *testing.T) {
	r := newRig(t)
	first := r.backup()
	_, err := r.shard.Backup(t.Context())
	if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeOverloaded {
		t.Errorf("a second backup: %v", err)
	}
	first.Close()
	r.backup().Close()
	r.close()
	if _, err := r.shard.Backup(t.Context()); err == nil {
		t.Error("a backup of a closed shard")
	}
}

// A reader that stands still keeps the entries that it has not read, and holds up neither callers
// nor snapshots. With its end the journal is cut again.
func TestBackupIsReadSlowly(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = 1000, -1 })
	work := func() {
		t.Helper()
		for i := range 200 {
			got := r.expect(engine.Granted, acquire(nil, keyNumber(i)))
			r.expect(engine.Done, release(nil, got.Lease.ID))
		}
		r.shard.background.Wait()
	}
	work()
	want, b := r.hash(), r.backup()
	from := b.Header.Snapshot + 1
	if b.Header.Snapshot == 0 {
		t.Fatal("there is no snapshot")
	}
	work()
	if at := interlock.Index(r.shard.snapshotAt.Load()); r.shard.First() > from || at <= b.Header.Index {
		t.Errorf("the oldest entry is %d, the newest snapshot of %d, and the backup began at %d", r.shard.First(), at, from)
	}
	state, _ := r.restored(b)
	if state.Hash() != want {
		t.Error("the state is not that of the moment when the backup was begun")
	}
	work()
	if r.shard.First() <= from {
		t.Errorf("the journal still begins with %d", r.shard.First())
	}
}

// Where space is low, the journal is cut and the backup fails.
func TestBackupGivesWay(t *testing.T) {
	var k backups
	if !k.begin(10) || k.begin(11) {
		t.Error("two backups were begun")
	}
	if low, much := k.spare(50, true), k.spare(50, false); low != 50 || much != 10 {
		t.Errorf("cut up to %d where space is low, else up to %d", low, much)
	}
	if k.end(); k.spare(50, false) != 50 {
		t.Error("entries are kept for a backup that has ended")
	}
}

// What was answered before a backup was begun is in it, whole, and nothing else is, while callers
// acquire: each lease has both of its keys or none.
func TestBackupUnderLoad(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = 20_000, -1 })
	const callers, keys = 4, 3000
	first := func(n int) interlock.Key { return interlock.Key(keyNumber(n)) }
	second := func(n int) interlock.Key { return interlock.Key(keyNumber(callers*keys + n)) }
	var answered [callers * keys]atomic.Uint64 // the index of the answer, by the first key
	var granted atomic.Int64
	var done sync.WaitGroup
	for caller := range callers {
		done.Go(func() {
			for i := range keys {
				n := callers*i + caller
				c := acquire(nil, string(first(n)))
				c.Claims = append(c.Claims, interlock.Claim{Key: second(n), Mode: interlock.Exclusive})
				eff, at, err := r.shard.Do(t.Context(), c)
				if err != nil || eff.Outcome != engine.Granted {
					t.Errorf("%v %s, %v", eff.Outcome, eff.Code, err)
					return
				}
				answered[n].Store(uint64(at.Index))
				granted.Add(1)
			}
		})
	}
	for round := range 5 {
		for granted.Load() < int64(1000*(round+1)) && !t.Failed() {
			runtime.Gosched()
		}
		state, file := r.restored(r.backup())
		held := func(key interlock.Key) bool {
			v, err := state.engine.Key("test", key)
			return err == nil && len(v.Holders) == 1
		}
		inIt := 0
		for n := range answered {
			at, one := interlock.Index(answered[n].Load()), held(first(n))
			if one != held(second(n)) {
				t.Fatalf("round %d: half of a lease is in the backup", round)
			}
			if at > 0 && one != (at <= file.Header.Index) {
				t.Fatalf("round %d: lease of entry %d in the backup of %d: %v", round, at, file.Header.Index, one)
			}
			if one {
				inIt++
			}
		}
		if inIt < 1000*(round+1) {
			t.Errorf("round %d: %d leases are in the backup", round, inIt)
		}
	}
	done.Wait()
}

// A directory that is seeded with a backup is replayed to its state, and the hash chain goes on.
func TestBackupSeedsDirectory(t *testing.T) {
	r := newRig(t)
	for i := range 10 {
		r.expect(engine.Granted, acquire(nil, keyNumber(i)))
	}
	state, file := r.restored(r.backup())
	dir := filepath.Join(t.TempDir(), "data")
	opts := filejournal.Options{SegmentBytes: 16 << 10, ReserveBytes: 8 << 10}
	if err := filejournal.Seed(t.Context(), dir, opts, state.Epoch, state.Index, state.WriteSnapshot); err != nil {
		t.Fatal(err)
	}
	j, err := filejournal.Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	var l links
	made, err := replay(t.Context(), j, engine.New(), file.Header.Index, inTurn, &l)
	if err != nil || made.engine.Hash() != state.Hash() {
		t.Errorf("the directory is not replayed to the state of the backup: %v", err)
	}
	if head := l.record(0).Last().Head().String(); head != state.Head() {
		t.Errorf("head %s, in the backup it is %s", head, state.Head())
	}
	s, err := Open(t.Context(), Config{Journal: j, SnapshotBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A backup with an entry that cannot be decoded is refused, though all its checksums hold.
func TestBackupCannotBeDecoded(t *testing.T) {
	var out bytes.Buffer
	w := backup.NewWriter(&out, backup.Header{Epoch: 1, Index: 1})
	if err := w.Entry(journal.Entry{Index: 1, Epoch: 1, Data: []byte{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, slices.Clone(out.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := backup.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadBackup(t.Context(), f); err == nil || err == io.EOF {
		t.Errorf("read: %v", err)
	}
}
