package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// view is a git directory of ours that shows what an agent's private git directory has: commits, refs, reflogs, index
// and the state of a merge. It has none of its configuration, hooks and links, so git may run on it without a sandbox.
// Objects are the same files by another name; the rest is copied.
type view struct {
	dir  string
	w    *Workspace
	was  map[string][]byte // what was copied, by name
	root *os.Root          // of the workspace's folder
}

// copiedFiles are the files that are copied, by the first part of their names. All in refs, logs and worktrees is.
var copiedFiles = strings.Fields(`HEAD ORIG_HEAD MERGE_HEAD MERGE_MSG MERGE_MODE AUTO_MERGE CHERRY_PICK_HEAD REVERT_HEAD
	FETCH_HEAD packed-refs index shallow info refs logs worktrees rebase-merge rebase-apply sequencer`)

func (w *Workspace) makeView() (*view, error) {
	dir, err := os.MkdirTemp(w.dir, "view-*")
	if err != nil {
		return nil, err
	}
	v := &view{dir: dir, w: w, was: map[string][]byte{}}
	if v.root, err = os.OpenRoot(w.dir); err == nil {
		err = v.fill()
	}
	if err != nil {
		return nil, errors.Join(err, v.remove())
	}
	return v, nil
}

func (v *view) remove() error {
	if v.root != nil {
		v.root.Close()
	}
	return removeAll(v.dir)
}

func (v *view) fill() error {
	private, err := os.OpenRoot(v.w.GitDir())
	if err != nil {
		return err
	}
	defer private.Close()
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(v.dir, filepath.FromSlash(folder)), 0o700); err != nil {
			return err
		}
	}
	config := v.w.config()
	if v.w.Kind == Sparse {
		config += "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n"
	}
	if err := os.WriteFile(filepath.Join(v.dir, "config"), []byte(config), 0o600); err != nil {
		return err
	}
	if store := v.w.store(); store != "" {
		if err := os.WriteFile(filepath.Join(v.dir, "objects/info/alternates"), []byte(store+"\n"), 0o600); err != nil {
			return err
		}
	}
	copied := map[string]bool{}
	for _, name := range copiedFiles {
		copied[name] = true
	}
	return walk(private, ".", func(name string, e fs.DirEntry) (bool, error) {
		first, rest, _ := strings.Cut(name, "/")
		at := filepath.Join(v.dir, filepath.FromSlash(name))
		switch {
		case first == "objects" && e.IsDir() || copied[first] && e.IsDir():
			return true, os.MkdirAll(at, 0o700)
		case !e.Type().IsRegular():
			return false, nil
		case first == "objects" && !strings.HasPrefix(rest, "info/"):
			return false, v.link("git/"+name, filepath.Base(v.dir)+"/"+name)
		case copied[first]:
			// Git compares a file again that is not older than the index: a copy must not look newer.
			info, err := e.Info()
			var content []byte
			if err == nil {
				content, err = readRegular(private, name, bounds["index"])
			}
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			if err == nil {
				v.was[name] = content
				err = errors.Join(os.WriteFile(at, content, 0o600), os.Chtimes(at, info.ModTime(), info.ModTime()))
			}
			return false, err
		}
		return false, nil
	})
}

// link makes a second name of a regular file below the workspace's folder. What is a link, or vanished, is left.
func (v *view) link(from, to string) error {
	err := v.root.Link(filepath.FromSlash(from), filepath.FromSlash(to))
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info, err := v.root.Lstat(filepath.FromSlash(to)); err == nil && !info.Mode().IsRegular() {
		return v.root.Remove(filepath.FromSlash(to))
	}
	return nil
}

// close carries what git has written into the private git directory: objects first, then the rest.
func (v *view) close() error {
	err := walkView(v.dir, func(name string, _ fs.FileInfo) error {
		if strings.HasPrefix(name, "objects/") {
			if strings.HasPrefix(name, "objects/info/") || strings.Contains(name, "/tmp_") {
				return nil
			}
			if err := v.root.MkdirAll("git/"+path.Dir(name), 0o700); err != nil {
				return err
			}
			return v.link(filepath.Base(v.dir)+"/"+name, "git/"+name)
		}
		return nil
	})
	left := map[string]bool{}
	err = errors.Join(err, walkView(v.dir, func(name string, info fs.FileInfo) error {
		first, _, _ := strings.Cut(name, "/")
		if first == "objects" || first == "config" {
			return nil
		}
		left[name] = true
		text, err := os.ReadFile(filepath.Join(v.dir, filepath.FromSlash(name)))
		if old, ok := v.was[name]; err != nil || ok && bytes.Equal(old, text) {
			return err
		}
		return v.put("git/"+name, text, info.ModTime())
	}))
	for name := range v.was {
		if !left[name] && err == nil {
			if gone := v.root.Remove("git/" + name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = gone
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("the private git directory %s could not be written: %w", v.w.GitDir(), err)
	}
	return errors.Join(err, v.remove())
}

// put replaces a file below the workspace's folder, and follows no link at its name.
func (v *view) put(name string, content []byte, changed time.Time) error {
	if err := v.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	fresh := name + ".interlock"
	_ = v.root.Remove(fresh)
	f, err := v.root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close(), v.root.Chtimes(fresh, changed, changed)); err != nil {
		return err
	}
	return v.root.Rename(fresh, name)
}

// walkView visits the files of a folder of ours.
func walkView(dir string, visit func(name string, info fs.FileInfo) error) error {
	return filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(name), info)
	})
}
