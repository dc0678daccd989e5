package filejournal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

var diskOptions = Options{SegmentBytes: 16 << 10, ReserveBytes: 8 << 10}

func mustOpen(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(t.Context(), dir, diskOptions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func mustAppend(t *testing.T, j *Journal, entries ...string) {
	t.Helper()
	group := make([][]byte, len(entries))
	for i, e := range entries {
		group[i] = []byte(e)
	}
	if err := j.Append(t.Context(), j.Tail()+1, group); err != nil {
		t.Fatal(err)
	}
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	j := mustOpen(t, dir)
	if _, err := Open(t.Context(), dir, diskOptions); !errors.Is(err, journal.ErrLocked) ||
		!strings.Contains(err.Error(), dir) {
		t.Fatalf("second open: %v", err)
	}
	mustAppend(t, j, "still mine")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if tail := mustOpen(t, dir).Tail(); tail != 3 {
		t.Errorf("tail %d", tail)
	}
}

func TestOptions(t *testing.T) {
	for _, opts := range []Options{{SegmentBytes: 1}, {ReserveBytes: -1}, {SegmentBytes: 4095}} {
		if _, err := Open(t.Context(), t.TempDir(), opts); !errors.Is(err, journal.ErrMisuse) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// A copy is noticed until it is adopted, and a rename is no copy.
func TestCopied(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "one")
	j := mustOpen(t, dir)
	mustAppend(t, j, "a")
	if j.Copied() {
		t.Error("a new journal says that it was copied")
	}
	j.Close()
	moved := filepath.Join(parent, "two")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	j = mustOpen(t, moved)
	if j.Copied() {
		t.Error("a moved journal says that it was copied")
	}
	j.Close()
	if err := os.CopyFS(dir, os.DirFS(moved)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r, err := Verify(t.Context(), dir, nil); err != nil || !r.Copied {
			t.Errorf("verify: copied %v, %v", r.Copied, err)
		}
		j = mustOpen(t, dir)
		if !j.Copied() {
			t.Error("a copy does not say so")
		}
		mustAppend(t, j, "b")
		j.Close()
	}
	j = mustOpen(t, dir)
	if err := j.Adopt(); err != nil {
		t.Fatal(err)
	}
	if j.Copied() {
		t.Error("copied after Adopt")
	}
	j.Close()
	j = mustOpen(t, dir)
	if j.Copied() {
		t.Error("copied at the Open after Adopt")
	}
	j.Close()
	if err := os.Remove(filepath.Join(dir, identityName)); err != nil {
		t.Fatal(err)
	}
	if !mustOpen(t, dir).Copied() {
		t.Error("a journal without identity does not say that it was copied")
	}
}

// The process is killed in the middle of its appends: what it said is stored is
// there.
func TestKilledProcess(t *testing.T) {
	if dir := os.Getenv("FILEJOURNAL_KILL_DIR"); dir != "" {
		appendForEver(dir)
	}
	dir := t.TempDir()
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
		cmd.Env = append(os.Environ(), "FILEJOURNAL_KILL_DIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var acknowledged interlock.Index
		for range 50 {
			if _, err := fmt.Fscanln(out, &acknowledged); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		j := mustOpen(t, dir)
		if j.Tail() <= acknowledged {
			t.Errorf("tail %d with the epoch record, but %d was acknowledged", j.Tail(), acknowledged)
		}
		err = j.Read(t.Context(), 1, func(e journal.Entry) error {
			if len(e.Data) > 0 && string(e.Data) != e.Index.String() {
				return fmt.Errorf("entry %d is %q", e.Index, e.Data)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// appendForEver is the process that gets killed. It prints what was acknowledged.
func appendForEver(dir string) {
	ctx := context.Background()
	j, err := Open(ctx, dir, diskOptions)
	for err == nil {
		i := j.Tail() + 1
		if err = j.Append(ctx, i, [][]byte{[]byte(i.String()), []byte((i + 1).String())}); err == nil {
			fmt.Println(i + 1)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestVerifyAndDump(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	if r, err := Verify(ctx, dir, nil); err != nil || r.Tail != 0 {
		t.Errorf("empty directory: %+v, %v", r, err)
	}
	if err := Dump(ctx, dir, 0, nil); err != nil {
		t.Errorf("empty directory: %v", err)
	}
	j := mustOpen(t, dir)
	want := []string{""}
	for i := range 50 {
		want = append(want, fmt.Sprint("entry ", i), strings.Repeat("x", 500))
		mustAppend(t, j, want[len(want)-2:]...)
	}
	dumped := func(from interlock.Index) (got []string) {
		t.Helper()
		if err := Dump(ctx, dir, from, func(e journal.Entry) error {
			got = append(got, string(e.Data))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if !slices.Equal(dumped(0), want) || !slices.Equal(dumped(40), want[39:]) || dumped(1000) != nil {
		t.Error("the dump is not what was appended")
	}
	var checked int64
	r, err := Verify(ctx, dir, func(n int64) { checked = n })
	if err != nil || r.First != 1 || r.Tail != 101 || r.Epoch != 1 || r.Entries != 101 || r.Segments < 2 || r.Clean ||
		r.Copied || r.Unfinished || checked < 50*500 {
		t.Errorf("beside the server: %+v, checked %d, %v", r, checked, err)
	}
	j.Close()
	if r, err = Verify(ctx, dir, nil); err != nil || !r.Clean {
		t.Errorf("after close: %+v, %v", r, err)
	}
	stop := errors.New("stop")
	if err := Dump(ctx, dir, 0, func(journal.Entry) error { return stop }); err != stop {
		t.Errorf("dump returned %v instead of the visitor's error", err)
	}

	// A damaged byte: both say where, and nothing is repaired.
	path := filepath.Join(dir, indexName(1, logSuffix))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[5000] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *journal.DamageError
	if r, err := Verify(ctx, dir, nil); !errors.As(err, &damage) || damage.File != path || r.Tail != damage.Index {
		t.Errorf("verify: %+v, %v", r, err)
	}
	n := interlock.Index(0)
	err = Dump(ctx, dir, 0, func(journal.Entry) error { n++; return nil })
	if !errors.As(err, &damage) || damage.Index != n {
		t.Errorf("dump of %d entries: %v", n, err)
	}
	if _, err := Open(ctx, dir, diskOptions); !errors.As(err, &damage) {
		t.Errorf("open: %v", err)
	}
	if after, _ := os.ReadFile(path); !slices.Equal(after, b) {
		t.Error("the damaged file was changed")
	}
}

// Readers without a lock never take what is being written for damage.
func TestVerifyBesideServer(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	j := mustOpen(t, dir)
	done := make(chan error, 1)
	go func() {
		for i := range 300 {
			first := j.Tail() + 1
			if err := j.Append(ctx, first, [][]byte{[]byte(first.String()), make([]byte, 1+i*37%9000)}); err != nil {
				done <- err
				return
			}
			if i%40 == 39 {
				err := errors.Join(
					j.SaveSnapshot(ctx, first-1, text("older")),
					j.SaveSnapshot(ctx, first, text("newer")),
					j.Truncate(ctx, first),
				)
				if err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		before := j.Tail()
		r, err := Verify(ctx, dir, nil)
		if err != nil {
			t.Fatalf("verify: %v", err)
		}
		if r.Tail < before {
			t.Fatalf("verified up to %d, the tail was %d before", r.Tail, before)
		}
		next := interlock.Index(0)
		err = Dump(ctx, dir, 0, func(e journal.Entry) error {
			if next != 0 && e.Index != next {
				return fmt.Errorf("index %d where %d should be", e.Index, next)
			}
			next = e.Index + 1
			return nil
		})
		if err != nil && !errors.Is(err, journal.ErrTrimmed) {
			t.Fatalf("dump: %v", err)
		}
	}
}

// laggingDisk shows a file without its last two frames to the first reader.
type laggingDisk struct {
	*simdisk.Disk
	reads   int
	missing int64 // what is behind it cannot be seen at first
}

type laggingFile struct {
	file
	d *laggingDisk
}

func (d *laggingDisk) Open(name string, flag int) (file, error) {
	f, err := d.Disk.Open(name, flag)
	return &laggingFile{f, d}, err
}

func (f *laggingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.file.ReadAt(p, off)
	if f.d.reads++; f.d.reads == 2 { // the first read is that of the identity
		clear(p[f.d.missing-off : n])
	}
	return n, err
}

// A reader without a lock that sees the next frame before the current one looks
// again.
func TestVerifyLooksAgain(t *testing.T) {
	d := &laggingDisk{Disk: simdisk.New()}
	j, err := open(t.Context(), d.Disk, "", crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, "a")
	d.missing = j.off
	mustAppend(t, j, "b")
	mustAppend(t, j, "c")
	r, err := verify(t.Context(), d, "", nil)
	if err != nil || r.Tail != 4 || r.Unfinished {
		t.Errorf("%+v, %v", r, err)
	}
	if d.reads < 3 {
		t.Errorf("%d reads", d.reads)
	}
}

// A file system that loses nothing and is not the local disk is refused only where
// it is known; the directories of tests are local.
func TestNetworkFileSystem(t *testing.T) {
	d, err := openDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if name := networkFileSystem(d.handle); name != "" {
		t.Errorf("temporary directories are on %s, where no journal may be: set TMPDIR to a local one", name)
	}
}
