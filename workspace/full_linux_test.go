//go:build unix

package workspace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The disk of the workspaces is full: a new one and a submission are refused in words that name the disk, nothing is
// lost, and both work when there is room.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		return // mounting needs root
	}
	r := newRig(t)
	if err := os.MkdirAll(r.host.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", r.host.Root, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(r.host.Root, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := r.create(Options{Name: "a", Kind: Worktree})
	r.in(w, "echo c > c.txt")
	ballast := filepath.Join(r.host.Root, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(f, zeroes{}); err == nil {
		t.Fatalf("the disk has room for %d bytes", n)
	}
	f.Close()
	full := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("%s on a full disk: %v", what, err)
		}
	}
	_, err = w.Submit(r.ctx, "all", true)
	full("submit", err)
	_, err = r.tryCreate(Options{Name: "b", Kind: Worktree})
	full("new", err)
	r.want("file", r.in(w, "cat c.txt"), "c")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if w, err = r.host.Open("web", "a"); err != nil {
		t.Fatal(err)
	}
	s, err := w.Submit(r.ctx, "all", true)
	if err != nil {
		t.Fatal(err)
	}
	r.want("submitted", r.git("show", s.Ref+":c.txt"), "c")
	r.create(Options{Name: "b", Kind: Worktree})
}

// zeroes is an endless file.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
