//go:build unix

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/interlockdev/interlock/internal/filelock"
)

// hold makes and locks the lock file of a new folder. It is not ours if another process took it for a left one before
// it was locked; then it is removed, or will be. Where the file system has no locks, there is no file either, so that
// the folder is never removed by others.
func hold(path string) (lock *os.File, ours bool, err error) {
	name := filepath.Join(path, lockName)
	lock, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	held, err := filelock.Try(lock)
	if err != nil {
		return nil, true, errors.Join(lock.Close(), os.Remove(name))
	}
	if info, err := os.Lstat(name); held || err != nil || !isSame(lock, info) {
		lock.Close()
		return nil, false, nil
	}
	return lock, true, nil
}

// removeLeft removes the folders of dead processes. What fails is tried again by the next process.
func removeLeft(temp, prefix string) {
	root, err := os.OpenRoot(temp)
	if err != nil {
		return
	}
	defer root.Close()
	folders, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	for _, f := range folders {
		if strings.HasPrefix(f.Name(), prefix) && f.IsDir() {
			removeDead(root, f.Name())
		}
	}
}

// removeDead removes a folder if it is this user's and no process holds its lock.
func removeDead(root *os.Root, folder string) {
	name := filepath.Join(folder, lockName)
	for path, kind := range map[string]fs.FileMode{folder: fs.ModeDir, name: 0} {
		info, err := root.Lstat(path)
		if err != nil || info.Mode().Type() != kind || !isOwn(info) {
			return
		}
	}
	lock, err := root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer lock.Close()
	if held, err := filelock.Try(lock); held || err != nil {
		return
	}
	// Another process may have removed the folder since, and a third one have made its own with the same name.
	if info, err := root.Lstat(name); err == nil && isSame(lock, info) {
		_ = root.RemoveAll(folder)
	}
}

// isSame reports whether an open file is the one that a name had.
func isSame(f *os.File, named fs.FileInfo) bool {
	open, err := f.Stat()
	return err == nil && os.SameFile(open, named)
}

// isOwn reports whether a file belongs to the user of this process.
func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
