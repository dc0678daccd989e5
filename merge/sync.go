package merge

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// syncParallel is how many files are synced at once. A file system that journals writes its log once for all of them.
const syncParallel = 16

// syncEach syncs files or folders, and returns when all are on disk. One that is not there has nothing to sync: git may
// have packed it meanwhile, and a pack is synced.
func syncEach(paths []string) error {
	slots := make(chan struct{}, syncParallel)
	failures := make([]error, len(paths))
	var all sync.WaitGroup
	for i, path := range paths {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f, err := os.Open(path)
			if err == nil {
				err = errors.Join(f.Sync(), f.Close())
			}
			if !errors.Is(err, fs.ErrNotExist) {
				failures[i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// syncFolders syncs folders, each once, so that the names in them survive a loss of power.
func syncFolders(folders []string) error {
	if !foldersSync {
		return nil
	}
	slices.Sort(folders)
	return syncEach(slices.Compact(folders))
}
