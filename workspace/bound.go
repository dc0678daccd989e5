package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile is the size in bytes of the largest file that is taken into a commit. Git would read all of a larger one for
// minutes, and forges refuse it.
const maxFile = 1 << 30

// refuseLarge refuses a file of the tree that is too large for a commit. files is the output of git status; an empty
// one stands for all files.
func (w *Workspace) refuseLarge(files string) error {
	dir := w.Path()
	if w.Kind == Overlay && w.Rootless {
		dir = w.upper()
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	check := func(name string, e fs.DirEntry) (bool, error) {
		if name == ".git" || !e.Type().IsRegular() {
			return e.IsDir() && name != ".git", nil
		}
		if info, err := e.Info(); err == nil && info.Size() > maxFile {
			return false, problem(
				CodeUncommitted,
				"%s has %d bytes, and a commit takes files of at most %d: move it out, or let git ignore it",
				name, info.Size(), int64(maxFile),
			)
		}
		return false, nil
	}
	if files == "" {
		return walk(root, ".", check)
	}
	for items := strings.Split(files, "\x00"); len(items) > 0; items = items[1:] {
		name := changedPath(items[0])
		if name == "" || !filepath.IsLocal(name) {
			continue
		}
		info, err := root.Lstat(filepath.FromSlash(name))
		if err != nil {
			continue
		}
		into, err := check(strings.TrimSuffix(name, "/"), fs.FileInfoToDirEntry(info))
		if err == nil && into {
			err = walk(root, strings.TrimSuffix(name, "/"), check)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changedPath is the path of an entry of git status, or "".
func changedPath(item string) string {
	fields := map[byte]int{'1': 9, '2': 10, 'u': 11, '?': 2}
	if item == "" || fields[item[0]] == 0 {
		return ""
	}
	parts := strings.SplitN(item, " ", fields[item[0]])
	return parts[len(parts)-1]
}
