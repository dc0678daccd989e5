package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Folder is a temporary folder of this process.
type Folder struct {
	lock *os.File // nil: it is not locked
	path string
}

// lockName is the file in a folder that is locked as long as the folder is in use.
const lockName = ".in-use"

// folders are those in use. A lock file that nothing refers to would be closed with the garbage, and its lock be gone.
var folders sync.Map

// attempts bounds how often a new folder may be taken for a left one before its lock is held.
const attempts = 100

// New makes the folder interlock-PURPOSE-NUMBER in the temporary directory, for this user alone. Before that it removes
// the folders of the same purpose that dead processes have left; one that cannot be removed stays.
func New(purpose string) (*Folder, error) {
	temp, prefix := os.TempDir(), "interlock-"+purpose+"-"
	removeLeft(temp, prefix)
	for range attempts {
		path, err := os.MkdirTemp(temp, prefix)
		if err != nil {
			return nil, err
		}
		lock, ours, err := hold(path)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
		if ours {
			f := &Folder{lock, path}
			folders.Store(f, nil)
			return f, nil
		}
	}
	return nil, fmt.Errorf("other processes removed %d new folders of %s", attempts, temp)
}

// Path returns the path of a part of the folder, or of the folder itself.
func (f *Folder) Path(parts ...string) string {
	return filepath.Join(append([]string{f.path}, parts...)...)
}

// Remove removes the folder with all that is in it.
func (f *Folder) Remove() error {
	folders.Delete(f)
	err := os.RemoveAll(f.path)
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}
