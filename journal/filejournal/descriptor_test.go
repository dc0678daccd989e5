package filejournal

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

// fullTable opens nothing while the table of open files is full.
type fullTable struct {
	*simdisk.Disk
	full atomic.Bool
}

func (d *fullTable) Open(name string, flag int) (file, error) {
	if d.full.Load() {
		return nil, &os.PathError{Op: "openat", Path: name, Err: syscall.EMFILE}
	}
	return d.Disk.Open(name, flag)
}

func (d *fullTable) Names() ([]string, error) {
	if d.full.Load() {
		return nil, &os.PathError{Op: "openat", Path: ".", Err: syscall.EMFILE}
	}
	return d.Disk.Names()
}

// A full table of open files is no failed disk: what is prepared is used up, then appends are
// refused, and with descriptors again the journal continues by itself.
func TestDescriptorsRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fullTable{Disk: simdisk.New()}
		j, err := open(t.Context(), d, "", spaceOptions)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		synctest.Wait() // the spare and the reserve are there
		d.full.Store(true)
		appends := 0
		for ; err == nil; appends++ {
			err = j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)})
			synctest.Wait()
		}
		if !errors.Is(err, journal.ErrNoSpace) || !errors.Is(err, journal.ErrNoFiles) || errors.Is(err, journal.ErrFailed) {
			t.Fatalf("append number %d: %v", appends, err)
		}
		if appends < 15+15+7 {
			t.Errorf("refused after %d appends: the log, the spare and the reserve have room for more", appends)
		}
		if j.Low() {
			t.Error("there is no lack of space")
		}
		if err := j.SaveSnapshot(
			t.Context(), j.Tail(), func(io.Writer) error { return nil },
		); !errors.Is(err, journal.ErrNoFiles) {
			t.Errorf("snapshot: %v", err)
		}
		if err := j.Read(t.Context(), 1, func(journal.Entry) error { return nil }); !errors.Is(err, journal.ErrNoFiles) {
			t.Errorf("read: %v", err)
		}
		if err := j.Barrier(t.Context()); err != nil {
			t.Errorf("barrier: %v", err)
		}

		d.full.Store(false)
		time.Sleep(2 * retryEvery)
		synctest.Wait()
		if d.Files[spareName] == nil || d.Files[reserveName] == nil {
			t.Error("the spare and the reserve were not made by themselves")
		}
		if err := j.Append(t.Context(), j.Tail()+1, [][]byte{make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
		if err := j.SaveSnapshot(t.Context(), j.Tail(), func(io.Writer) error { return nil }); err != nil {
			t.Errorf("snapshot: %v", err)
		}
	})
}

// With the table of open files full, the journal opens what it writes all the same, and
// takes its reserve back when it closes a file.
func TestKeptDescriptors(t *testing.T) {
	var kept descriptors
	kept.fill()
	defer kept.close()
	free := 0
	open := func() (*os.File, error) {
		if len(kept.kept) >= keptDescriptors-free {
			return nil, syscall.EMFILE
		}
		return os.Open(os.DevNull)
	}
	for free = range keptDescriptors {
		f, err := open()
		if f, err = kept.instead(f, err, open); err != nil {
			t.Fatalf("file number %d: %v", free+1, err)
		}
		defer f.Close()
	}
	if _, err := kept.instead(
		nil, syscall.ENFILE, func() (*os.File, error) { return nil, syscall.ENFILE },
	); !errors.Is(err, syscall.ENFILE) {
		t.Errorf("with nothing kept: %v", err)
	}
	if kept.fill(); len(kept.kept) != keptDescriptors {
		t.Errorf("%d descriptors kept, want %d again", len(kept.kept), keptDescriptors)
	}
	if _, err := kept.instead(nil, syscall.EIO, nil); !errors.Is(err, syscall.EIO) || len(kept.kept) != keptDescriptors {
		t.Errorf("another error took a descriptor: %v", err)
	}
}
