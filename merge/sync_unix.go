//go:build unix

package merge

import (
	"errors"
	"os"
)

// syncFolder syncs a folder, so that the names in it survive a loss of power. A folder that is not there has none.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
