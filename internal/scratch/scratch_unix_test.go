//go:build unix

package scratch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// childFolder tells TestChild that another test has started it.
const childFolder = "INTERLOCK_TEST_SCRATCH_CHILD"

// TestChild is a process that makes a folder, and lives until it is killed.
func TestChild(t *testing.T) {
	if os.Getenv(childFolder) == "" {
		return // it was not started by start
	}
	f, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(f.Path("git", "objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	folder := f.Path()
	runtime.GC() // a forgotten folder is in use as well
	runtime.GC()
	fmt.Println(folder)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// start starts a process with a folder, and returns the folder and what kills the process.
func start(t *testing.T) (folder string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childFolder+"=1")
	_, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the process has no folder: %v", lines.Err())
	}
	return lines.Text(), kill
}

// A folder stays while its process lives, and the first folder made after that process was killed replaces it.
func TestKilled(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	living, _ := start(t)
	killed, kill := start(t)
	own, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{living, killed, own.Path()} {
		if _, err := os.Stat(filepath.Join(want, lockName)); err != nil {
			t.Errorf("while all live: %v", err)
		}
	}
	kill()
	other, err := New("another-purpose")
	if err != nil {
		t.Fatal(err)
	}
	next, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{living, own.Path(), other.Path(), next.Path()}
	slices.Sort(want)
	if got, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || !slices.Equal(got, want) {
		t.Errorf("left are %q, %v; want %q", got, err, want)
	}
	for _, f := range []*Folder{own, other, next} {
		if err := f.Remove(); err != nil {
			t.Error(err)
		}
	}
	if got, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || !slices.Equal(got, []string{living}) {
		t.Errorf("after Remove there are %q, %v", got, err)
	}
}

// What looks like a left folder and is none stays: one without the lock file, links, a file, and another user's.
func TestStays(t *testing.T) {
	temp, kept := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	write := func(parts ...string) {
		t.Helper()
		name := filepath.Join(parts...)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(kept, lockName)
	write(temp, "interlock-test-file")
	write(temp, "interlock-test-earlier", "git", "config")
	write(temp, "interlock-test-linked", "data")
	write(temp, "interlock-test-left", "data")
	write(temp, "interlock-test-left", lockName)
	stay := []string{"interlock-test-earlier", "interlock-test-file", "interlock-test-link", "interlock-test-linked"}
	for name, target := range map[string]string{
		"interlock-test-link": kept, "interlock-test-linked/" + lockName: filepath.Join(kept, lockName),
		"interlock-test-left/link": kept,
	} {
		if err := os.Symlink(target, filepath.Join(temp, name)); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(temp, "interlock-test-other-user")
		write(foreign, lockName)
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		stay = append(stay, filepath.Base(foreign))
	}
	f, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	var got []string
	left, err := os.ReadDir(temp)
	for _, e := range left {
		got = append(got, e.Name())
	}
	if err != nil || !slices.Equal(got, stay) {
		t.Errorf("left are %q, %v; want %q", got, err, stay)
	}
	if _, err := os.Stat(filepath.Join(kept, lockName)); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

// Many that begin at once take no folder from each other.
func TestTogether(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				f, err := New("test")
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(f.Path("data"), nil, 0o600); err != nil {
					t.Error(err)
				}
				if err := f.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
