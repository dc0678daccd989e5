package memory

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/interlockdev/interlock/internal/filelock"
)

// shm is the file system in memory that Linux has for all processes.
const shm = "/dev/shm"

// Main runs the tests of a package with their temporary folders in memory, where that is possible: TestMain calls it.
// If TMPDIR is set, the folders are there.
func Main(m interface{ Run() int }) { os.Exit(run(m, shm)) }

func run(m interface{ Run() int }, root string) int {
	if os.Getenv("TMPDIR") == "" {
		if end, err := use(filepath.Join(root, fmt.Sprintf("interlock-test-%d", os.Getuid()))); err == nil {
			defer end()
		}
	}
	return m.Run()
}

// use has the temporary folders of this process in a new folder below base, until end. It removes what ended processes
// have left there: the file "lock" is locked while folders appear and go, and the lock of each folder tells that its
// process lives.
func use(base string) (end func(), err error) {
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if !roomy(base) {
		return nil, errors.New("there is too little memory")
	}
	lock, err := open(filepath.Join(base, "lock"))
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := filelock.Wait(lock); err != nil {
		return nil, err
	}
	sweep(base)
	folder, err := os.MkdirTemp(base, "")
	if err != nil {
		return nil, err
	}
	alive, err := open(filepath.Join(folder, "lock"))
	if err != nil {
		return nil, err
	}
	if _, err := filelock.Try(alive); err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	end = func() {
		_ = os.Unsetenv("TMPDIR")
		_ = os.RemoveAll(folder)
		_ = alive.Close()
	}
	if err := errors.Join(runs(folder), os.Setenv("TMPDIR", folder)); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

func open(name string) (*os.File, error) { return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) }

// sweep removes the folders of processes that have ended without an end.
func sweep(base string) {
	list, _ := filepath.Glob(filepath.Join(base, "*", "lock"))
	for _, name := range list {
		f, err := open(name)
		if err != nil {
			continue
		}
		if held, err := filelock.Try(f); err == nil && !held {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		f.Close()
	}
}

// runs returns an error if no program can be run in the folder. Tests put hooks there, and containers forbid it.
func runs(folder string) error {
	name := filepath.Join(folder, "true")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o700); err != nil {
		return err
	}
	defer os.Remove(name)
	return exec.Command(name).Run()
}
