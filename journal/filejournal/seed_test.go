package filejournal

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

const seededState = "the state after entry 41"

func writeSeeded(w io.Writer) error {
	_, err := io.WriteString(w, seededState)
	return err
}

// mustBeSeeded checks that a journal is what Seed has made.
func mustBeSeeded(t *testing.T, j *Journal) {
	t.Helper()
	at, r, err := j.Snapshot(t.Context())
	if err != nil || r == nil {
		t.Fatalf("snapshot: %v", err)
	}
	defer r.Close()
	if state, err := io.ReadAll(r); err != nil || string(state) != seededState || at != 41 {
		t.Errorf("snapshot of %d: %q, %v", at, state, err)
	}
	if !j.Copied() || j.Epoch() != 8 || j.First() != 42 || j.Tail() != 42 {
		t.Errorf("copied %v, epoch %d, entries %d to %d", j.Copied(), j.Epoch(), j.First(), j.Tail())
	}
}

// A seeded directory goes on behind the state, as a copy.
func TestSeed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := CheckEmpty(dir); err != nil {
		t.Errorf("a directory that is missing: %v", err)
	}
	if err := Seed(t.Context(), dir, diskOptions, 7, 41, writeSeeded); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(t.Context(), dir, nil); err != nil || r.Tail != 41 || r.Entries != 0 || !r.Copied {
		t.Errorf("%+v, %v", r, err)
	}
	j := mustOpen(t, dir)
	mustBeSeeded(t, j)
	mustAppend(t, j, "a", "b")
	if err := j.Adopt(); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if j = mustOpen(t, dir); j.Copied() || j.Tail() != 45 || j.Epoch() != 9 {
		t.Errorf("opened again: copied %v, tail %d, epoch %d", j.Copied(), j.Tail(), j.Epoch())
	}
	j.Close()
	for _, err := range []error{CheckEmpty(dir), Seed(t.Context(), dir, diskOptions, 7, 41, writeSeeded)} {
		if !errors.Is(err, ErrNotEmpty) {
			t.Errorf("a directory with a journal: %v", err)
		}
	}
	if err := Seed(t.Context(), t.TempDir(), diskOptions, 7, 0, writeSeeded); !errors.Is(err, journal.ErrMisuse) {
		t.Errorf("a state after no entry: %v", err)
	}
}

// A state that cannot be written leaves a directory that no server starts from, and that can be
// seeded again.
func TestSeedFails(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	err := Seed(t.Context(), dir, diskOptions, 7, 41, func(w io.Writer) error {
		if err := writeSeeded(w); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, diskOptions); !errors.Is(err, journal.ErrFilling) {
		t.Errorf("a directory that was half restored: %v", err)
	}
	if _, err := Verify(t.Context(), dir, nil); !errors.Is(err, journal.ErrFilling) {
		t.Errorf("verify: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fence-keys.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Seed(t.Context(), dir, diskOptions, 7, 41, writeSeeded); err != nil {
		t.Fatal(err)
	}
	mustBeSeeded(t, mustOpen(t, dir))
}

// Seed is stopped at every system call. Then no server can start from a part of the state: it
// starts from all of it, is refused, or finds a directory without a file of a journal. And unless
// all is there, the directory can be seeded again.
func TestCrashInSeed(t *testing.T) {
	opts, err := Options{SegmentBytes: 8 << 10, ReserveBytes: 4 << 10}.check()
	if err != nil {
		t.Fatal(err)
	}
	opts.inline, opts.salt, opts.page = true, func() uint32 { return 5 }, 512
	h := segmentHeader{first: 42, epoch: 7, capacity: opts.SegmentBytes, salt: 5}
	refused, whole, empty := 0, 0, 0
	judge := func(t *testing.T, d *simdisk.Disk) {
		t.Helper()
		names, err := d.Names()
		if err != nil {
			t.Fatal(err)
		}
		again := d.Fork()
		j, err := open(t.Context(), d, "", opts)
		switch {
		case errors.Is(err, journal.ErrFilling):
			refused++
		case err != nil:
			t.Fatalf("%v: %v", names, err)
		case len(names) == 0:
			empty++
		default:
			whole++
			mustBeSeeded(t, j)
			if err := seed(t.Context(), again, opts, h, writeSeeded); !errors.Is(err, ErrNotEmpty) {
				t.Errorf("%v: seeded again: %v", names, err)
			}
			return
		}
		if err := seed(t.Context(), again, opts, h, writeSeeded); err != nil {
			t.Fatalf("%v: seeded again: %v", names, err)
		}
		if j, err = open(t.Context(), again, "", opts); err != nil {
			t.Fatal(err)
		}
		mustBeSeeded(t, j)
	}
	for stop, done := 1, false; !done; stop++ {
		d := simdisk.New()
		d.StopAt = stop
		done = seed(t.Context(), d, opts, h, writeSeeded) == nil
		d.Restart()
		for kind := range simdisk.Losses {
			for cut := range 8 {
				judge(t, d.PowerCut(kind, rand.New(rand.NewPCG(uint64(stop), uint64(cut)))))
			}
		}
		judge(t, d.Fork())
	}
	if refused < 100 || whole < 8 || empty < 8 {
		t.Errorf("%d were refused, %d were whole and %d empty", refused, whole, empty)
	}
}
