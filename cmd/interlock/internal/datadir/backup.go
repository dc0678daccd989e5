package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/interlockdev/interlock/placement"
)

// ShardBackup is the name of the file with the backup of a shard, in the directory of a backup.
func ShardBackup(number int) string { return fmt.Sprintf("shard-%04d.backup", number) }

// ShardBackups returns the files of a backup of several shards, in their order. All from 0 on must be there.
func ShardBackups(dir string) (files []string, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "shard-*.backup"))
	if err != nil {
		return nil, err
	}
	for n := range found {
		path := filepath.Join(dir, ShardBackup(n))
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("the backup has %d files, and %s is not one of them: %w", len(found), ShardBackup(n), err)
		}
		files = append(files, path)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no backup in %s: it has no file %s", dir, ShardBackup(0))
	}
	return files, nil
}

// DirectoryBackup is the name of the file that tells, in a backup of several shards, in which of them namespaces are.
const DirectoryBackup = "directory.json"

// BackedUpDirectory returns the directory of a backup of several shards. A backup without one is older than moves of
// namespaces.
func BackedUpDirectory(dir string, shards int) (placement.Directory, error) {
	data, err := os.ReadFile(filepath.Join(dir, DirectoryBackup))
	if errors.Is(err, fs.ErrNotExist) {
		return placement.NewDirectory(shards)
	}
	if err != nil {
		return placement.Directory{}, err
	}
	d, err := placement.DecodeDirectory(data)
	if err == nil && d.All() != shards {
		err = fmt.Errorf("%s is of %d shards, and the backup has %d", DirectoryBackup, d.All(), shards)
	}
	return d, err
}
