package datadir

import (
	"fmt"
	"os"
	"path/filepath"
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
