package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/internal/filelock"
)

func TestTry(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	try := func(f *os.File, want bool) {
		t.Helper()
		if held, err := filelock.Try(f); err != nil || held != want {
			t.Fatalf("held by another: %v, %v; want %v", held, err, want)
		}
	}
	open := func() *os.File {
		t.Helper()
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	try(first, false)
	try(first, false) // it has the lock already
	try(second, true)
	waited := make(chan error)
	go func() { waited <- filelock.Wait(second) }()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	third := open()
	defer third.Close()
	try(third, true)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	fourth := open()
	defer fourth.Close()
	for _, f := range []*os.File{third, fourth} {
		if held, err := filelock.TryShared(f); err != nil || held {
			t.Fatalf("a shared lock: held by another: %v, %v", held, err)
		}
	}
	fifth := open()
	defer fifth.Close()
	try(fifth, true)
	third.Close()
	try(fourth, false)
	if held, err := filelock.TryShared(fifth); err != nil || !held {
		t.Errorf("a shared lock beside the exclusive one: held by another: %v, %v", held, err)
	}
}
