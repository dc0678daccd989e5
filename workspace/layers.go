package workspace

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Layers are the folders of an overlay that is mounted for each command anew: see Rootless. All are "" for others.
func (w *Workspace) Layers(ctx context.Context) (lower, upper, work string, err error) {
	if w.Kind != Overlay || !w.Rootless {
		return "", "", "", nil
	}
	lower, err = w.lower(ctx)
	return lower, w.upper(), w.work(), err
}

// Borrowed lists the folders of objects that the private git directory reads: those of the source, and those that the
// source borrows itself.
func (w *Workspace) Borrowed() (list []string) {
	return stores(w.store())
}

// stores lists a folder of objects, and those that it borrows from.
func stores(objects string) (list []string) {
	next := []string{objects}
	for len(next) > 0 && len(list) < 32 {
		dir := next[0]
		list, next = append(list, dir), next[1:]
		f, err := os.Open(filepath.Join(dir, "info", "alternates"))
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			line := lines.Text()
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if !filepath.IsAbs(line) {
				line = filepath.Join(dir, line)
			}
			next = append(next, line)
		}
		f.Close()
	}
	return list
}

// Needed lists what filters need to read: programs, further paths, and the objects of Git LFS of the source.
func (w *Workspace) Needed(ctx context.Context) ([]string, error) {
	c, err := w.converting(ctx)
	if err != nil {
		return nil, err
	}
	a, err := w.refresh(c)
	return a.Read, err
}

// Shared lists the folders of the source that the tree links to. It trusts the record, not the links: a command could
// have changed those.
func (w *Workspace) Shared() (list []string) {
	if filepath.Base(w.Source) != ".git" {
		return nil
	}
	for _, name := range w.Share {
		if path := filepath.Join(filepath.Dir(w.Source), name); exists(path) {
			list = append(list, path)
		}
	}
	return list
}

// Folder is where the record is. Files that other packages keep there go with the workspace.
func (w *Workspace) Folder() string { return w.dir }
