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
}
