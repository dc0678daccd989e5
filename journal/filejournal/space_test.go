package filejournal

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

var spaceOptions = Options{SegmentBytes: 16 << 10, ReserveBytes: 8 << 10}

// fillUp appends until there is no space, and returns how much went in.
func fillUp(t *testing.T, j *Journal) (n int) {
	t.Helper()
	for {
		err := j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)})
		if errors.Is(err, journal.ErrNoSpace) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if n++; n > 1000 {
			t.Fatal("the disk never gets full")
		}
	}
}

// The way down and up again: space for everything, the next segment cannot be made,
// the spare and the reserve are used up, nothing fits any more, space comes back.
func TestSpaceRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdisk.New()
		j, err := open(t.Context(), d, "", spaceOptions)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		synctest.Wait() // the spare and the reserve are there
		if d.Files[spareName] == nil || d.Files[reserveName] == nil || j.Low() {
			t.Fatalf("not ready: low %v", j.Low())
		}
		// Log, spare and reserve fit, and 100 bytes for the identity.
		d.SetLimit(16<<10 + 16<<10 + 8<<10 + 100)
		low := 0
		for n := 0; ; n++ {
			if n > 1000 {
				t.Fatal("the disk never gets full")
			}
			err := j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)})
			synctest.Wait()
			if j.Low() && low == 0 {
				low = n
			}
			if errors.Is(err, journal.ErrNoSpace) {
				if !j.Low() || n-low < 15+7 {
					t.Errorf("low from append %d on, full at %d", low, n)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		tail := j.Tail()
		for range 3 {
			if err := j.Append(t.Context(), tail+1, [][]byte{make([]byte, 1000)}); !errors.Is(err, journal.ErrNoSpace) {
				t.Fatalf("append to a full disk: %v", err)
			}
		}
		if err := j.Barrier(t.Context()); err != nil {
			t.Errorf("barrier on a full disk: %v", err)
		}
		if j.Tail() != tail {
			t.Errorf("tail moved to %d", j.Tail())
		}
		if err := j.SaveSnapshot(t.Context(), tail, func(w io.Writer) error {
			_, err := w.Write(make([]byte, 1<<20))
			return err
		}); !errors.Is(err, journal.ErrNoSpace) {
			t.Errorf("snapshot on a full disk: %v", err)
		}

		// Nothing is called, and it is noticed all the same.
		d.SetLimit(0)
		time.Sleep(2 * retryEvery)
		synctest.Wait()
		if j.Low() {
			t.Error("still low with all the space in the world")
		}
		if err := j.Append(t.Context(), tail+1, [][]byte{make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
		n := interlock.Index(0)
		if err := j.Read(t.Context(), 1, func(journal.Entry) error { n++; return nil }); err != nil || n != tail+1 {
			t.Errorf("read %d entries of %d: %v", n, tail+1, err)
		}
	})
}

// An append finds new space at once, and truncation makes some.
func TestSpaceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdisk.New()
		j, err := open(t.Context(), d, "", spaceOptions)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		synctest.Wait()
		d.SetLimit(100 << 10)
		fillUp(t, j)
		d.SetLimit(120 << 10)
		if err := j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)}); err != nil {
			t.Errorf("append after space came back: %v", err)
		}
		for _, at := range []interlock.Index{j.Tail() - 1, j.Tail()} {
			if err := j.SaveSnapshot(t.Context(), at, func(io.Writer) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if !j.Low() {
			t.Error("not low on a full disk")
		}
		if err := j.Truncate(t.Context(), j.Tail()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if j.Low() {
			t.Error("low after a truncation")
		}
	})
}

// A full disk at the start: the epoch record goes to what is allocated already, and
// without that there is a clear answer.
func TestOpenOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdisk.New()
		d.Limit = 6 << 10
		if _, err := open(t.Context(), d, "", spaceOptions); !errors.Is(err, journal.ErrNoSpace) {
			t.Fatalf("open: %v", err)
		}
		d.Limit = 0
		j, err := open(t.Context(), d, "", spaceOptions)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d.SetLimit(16<<10 + 16<<10 + 8<<10 + 100)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, err = open(t.Context(), d, "", spaceOptions); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if j.Low() {
			t.Error("low although spare and reserve were found")
		}
		fillUp(t, j)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, err = open(t.Context(), d, "", spaceOptions); err == nil {
			j.Close()
		} else if !errors.Is(err, journal.ErrNoSpace) {
			t.Fatalf("open of a full journal: %v", err)
		}
	})
}

// badSpare fails to open one file.
type badSpare struct{ *simdisk.Disk }

func (d *badSpare) Open(name string, flag int) (file, error) {
	if name == spareName+tempSuffix && d.Files[spareName] == nil && len(d.Files) > 3 {
		return nil, syscall.EIO
	}
	return d.Disk.Open(name, flag)
}

// A failure that is not want of space, while the next segment is made, ends the
// journal like every other.
func TestPreparingFails(t *testing.T) {
	opts := spaceOptions
	opts.inline = true
	j, err := open(t.Context(), &badSpare{simdisk.New()}, "", opts)
	for n := 0; err == nil; n++ {
		err = j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)})
		if n > 100 {
			t.Fatal("it never failed")
		}
	}
	if !errors.Is(err, journal.ErrFailed) || !errors.Is(err, syscall.EIO) || errors.Is(err, journal.ErrNoSpace) {
		t.Error(err)
	}
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFailed) {
		t.Errorf("barrier: %v", err)
	}
}

// seenRenames reports every rename before it happens.
type seenRenames struct {
	*simdisk.Disk
	see func(from, to string)
}

func (d *seenRenames) Rename(from, to string) error {
	d.see(from, to)
	return d.Disk.Rename(from, to)
}

// While a file of the pool is on its way to become a segment it still has its old
// name. If the pool made the next one of that name meanwhile, the log would go on in
// a file that no name leads to.
func TestTakenFileKeepsItsName(t *testing.T) {
	var opened atomic.Pointer[Journal] // the pool renames in its goroutine as soon as it is open
	seen := 0
	d := &seenRenames{simdisk.New(), func(from, to string) {
		j := opened.Load()
		if j == nil || from != spareName && from != reserveName {
			return
		}
		seen++
		if j.pool.filling.TryLock() {
			j.pool.filling.Unlock()
			t.Errorf("the pool could make a new %s before the taken one became %s", from, to)
		}
	}}
	j, err := open(t.Context(), d, "", spaceOptions)
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(j)
	for range 50 {
		if err := j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if seen < 3 {
		t.Errorf("%d rotations", seen)
	}
}

// While space is low one snapshot is enough to cut the log, if it can be read back: else the
// older one stays, and what it needs.
func TestLowSpaceCutsToTheNewestSnapshot(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := simdisk.New()
			j, err := open(t.Context(), d, "", spaceOptions)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			d.SetLimit(100 << 10)
			save := func(at interlock.Index) {
				if err := j.SaveSnapshot(t.Context(), at, func(w io.Writer) error {
					_, err := w.Write([]byte("state"))
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
			save(1)
			for !j.Low() {
				if err := j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			tail := j.Tail()
			save(tail)
			synctest.Wait() // the pool uses the disk as well
			if damaged {
				d.Files[indexName(tail, snapshotSuffix)].Data[snapshotHeaderSize] ^= 1
			}
			if err := j.Truncate(t.Context(), tail+1); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if cut := j.First() > 1; cut == damaged || j.Low() == cut {
				t.Errorf("damaged %v: the log begins at %d, low %v", damaged, j.First(), j.Low())
			}
			d.SetLimit(0)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := open(t.Context(), d, "", spaceOptions)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			want := tail
			if damaged {
				want = 1
			}
			if at, r, err := again.Snapshot(t.Context()); err != nil || at != want {
				t.Errorf("damaged %v: snapshot of %d, want %d: %v", damaged, at, want, err)
			} else if r != nil {
				r.Close()
			}
		})
	}
}
