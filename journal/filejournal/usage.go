package filejournal

import "os"

// Usage returns how many bytes the files of a directory take, and how many are free where it is; ok
// is false if the system does not tell.
func Usage(dir string) (used, free int64, ok bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, false
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			used += info.Size()
		}
	}
	free, ok = freeBytes(dir)
	return used, free, ok
}
