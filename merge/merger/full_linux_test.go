package merger

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The disk of the repository is full: the merger reports that in git's words, and lands and returns nothing. It goes
// on by itself when there is room.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		return // mounting needs root
	}
	r := newRig(t)
	r.work(good)
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	moved := filepath.Join(disk, "web.git")
	if err := os.CopyFS(moved, os.DirFS(r.git.Dir)); err != nil {
		t.Fatal(err)
	}
	r.git.Dir = moved
	a := Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})}
	b := Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})}
	ballast := filepath.Join(disk, "ballast")
	c := r.config("merger")
	reports := make(chan string, 100)
	c.Log = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), reporter(reports)), nil))
	for i, s := range []Submission{a, b} { // when the seat is taken, and while a merger has it
		head := r.head()
		f, err := os.Create(ballast)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(f, zeroes{}); err == nil {
			t.Fatalf("the disk has room for %d bytes", n)
		}
		f.Close()
		task := r.submit(s)
		if i == 0 {
			r.start(c)
		}
		for range 2 {
			if report := <-reports; !strings.Contains(report, "No space left on device") {
				t.Errorf("the merger reports %s", report)
			}
		}
		if r.head() != head {
			t.Errorf("the head is %s, and was %s", r.head(), head)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if o := r.result(task); o.Code != Landed {
			t.Errorf("%+v", o)
		}
		for len(reports) > 0 {
			<-reports
		}
	}
	r.verify(c, nil)
}

// zeroes is an endless file.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// reporter passes on the lines of a log that are warnings.
type reporter chan<- string

func (r reporter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("level=WARN")) {
		select {
		case r <- string(p):
		default:
		}
	}
	return len(p), nil
}
