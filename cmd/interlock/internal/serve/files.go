package serve

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/file"
)

// openFiles opens the directories that namespaces share. None of them may have to do
// with the data directory: agents would read the keys there, and write the journal.
func openFiles(list []string, data string) (dirs map[interlock.Namespace]*file.Dir, err error) {
	dirs = map[interlock.Namespace]*file.Dir{}
	for _, text := range list {
		name, dir, named := strings.Cut(text, "=")
		if !named {
			name, dir = string(interlock.DefaultNamespace), text
		}
		ns := interlock.Namespace(name)
		if dirs[ns] != nil {
			return nil, fmt.Errorf("--files %s: the namespace %s has a directory already", cli.Clean(text), cli.Clean(name))
		}
		var overlaps bool
		if data != "" {
			overlaps, err = overlap(dir, data)
		}
		if err == nil && overlaps {
			err = fmt.Errorf("agents would read and write the data directory %s: share another directory", cli.Clean(data))
		}
		if err == nil {
			dirs[ns], err = file.Open(dir)
		}
		if err != nil {
			return nil, fmt.Errorf("--files %s: %w", cli.Clean(text), err)
		}
	}
	return dirs, nil
}

// overlap reports whether one of two directories is the other, or below it.
func overlap(a, b string) (bool, error) {
	a, err := resolved(a)
	if err != nil {
		return false, err
	}
	if b, err = resolved(b); err != nil {
		return false, err
	}
	for _, two := range [][2]string{{a, b}, {b, a}} {
		if way, err := filepath.Rel(two[0], two[1]); err == nil && filepath.IsLocal(way) {
			return true, nil
		}
	}
	return false, nil
}

// resolved is the path without symbolic links, as far as it is there.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for end := path; ; end = filepath.Dir(end) {
		if there, err := filepath.EvalSymlinks(end); err == nil {
			return filepath.Join(there, strings.TrimPrefix(path, end)), nil
		}
		if end == filepath.Dir(end) {
			return path, nil
		}
	}
}
