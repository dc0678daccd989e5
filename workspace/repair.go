package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
)

// Repair makes a workspace work again after its repository, or the folder of all workspaces, was moved. path is in the
// repository as it is now; it has to keep the workspace's first commit, so no other one is taken for it. It returns
// what was repaired, nothing if all was in place. It may be repeated.
func (w *Workspace) Repair(ctx context.Context, path string) (done []string, err error) {
	if w.Phase != Ready {
		return nil, problem(CodeUnknown, "workspace %s/%s was left %s: delete it", w.Repo, w.Name, w.Phase)
	}
	before := w.Record
	if !exists(w.Source) {
		if err := w.findSource(ctx, path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	moved := before.Source != w.Source
	if moved {
		done = append(done, "the repository is "+w.Source)
		if err := w.movePruning(before.Source); err != nil {
			return nil, err
		}
		if err := w.relink(root, &before); err != nil {
			return nil, err
		}
	}
	put := func(name string, content []byte) error {
		old, err := readRegular(root, name, 4<<20)
		if err == nil && bytes.Equal(old, content) {
			return nil
		}
		if !slices.Contains(done, "its own paths") {
			done = append(done, "its own paths")
		}
		return (&view{root: root}).put(name, content, time.Now())
	}
	link := "tree/.git"
	if w.Kind == Overlay {
		link = "upper/.git"
	}
	for _, name := range []string{"git/config", "git/config.worktree"} { // a sparse checkout has its path in the second
		config, readErr := w.repairedConfig(ctx, root, name)
		if readErr == nil {
			readErr = put(name, config)
		}
		if !errors.Is(readErr, fs.ErrNotExist) {
			err = errors.Join(err, readErr)
		}
	}
	if err = errors.Join(err, put(link, []byte("gitdir: "+w.GitDir()+"\n"))); err != nil {
		return done, err
	}
	if err := put("git/objects/info/alternates", []byte(w.store()+"\n")); err != nil {
		return done, err
	}
	if exists(w.vaultDir()) && !w.Copied {
		if err := put("vault/objects/info/alternates", []byte(w.store()+"\n")); err != nil {
			return done, err
		}
	}
	if !moved {
		return done, nil
	}
	return done, w.write(w.dir)
}

// findSource takes the repository of a path for that of the workspace, if it is the one.
func (w *Workspace) findSource(ctx context.Context, path string) error {
	s, err := openNamed(ctx, path)
	if err != nil {
		return fmt.Errorf("the repository of %s/%s is no more at %s: run this in it, or name it with --repo (%w)",
			w.Repo, w.Name, w.Source, err)
	}
	kept, err := s.repository().Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", w.keepRef(w.Start))
	if !w.Copied && (err != nil || kept != w.Start) || w.Copied && !s.has(ctx, w.Start) {
		return problem(
			CodeSource, "%s is not the repository of %s/%s, which was at %s: run this in it, or name it with --repo", s.dir,
			w.Repo, w.Name, w.Source,
		)
	}
	if w.Upstream == w.Source {
		w.Upstream = s.dir
	}
	w.Source, w.Checkout = s.dir, s.tree
	return nil
}

// repairedConfig is a configuration of the private git directory with its paths as they are now.
func (w *Workspace) repairedConfig(ctx context.Context, root *os.Root, name string) ([]byte, error) {
	content, err := readRegular(root, name, bounds["config"])
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, w.broken("%s cannot be read (%v)", filepath.Join(w.dir, name), err)
	}
	// Git edits a copy of it, apart from the workspace.
	dir, err := os.MkdirTemp("", "interlock-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return nil, err
	}
	r := git.Repository{Folder: dir}
	for key, value := range map[string]string{"core.worktree": w.Path(), "remote.origin.url": w.Upstream} {
		now, err := r.Run(ctx, git.Call{
			Args: []string{"config", "--file", file, "--no-includes", "--get", key}, Answers: []int{1, 2},
		})
		if err != nil {
			return nil, w.broken("%s is no configuration of git", filepath.Join(w.dir, name))
		}
		if now.Exit != 0 || strings.TrimSuffix(string(now.Out), "\n") == value {
			continue
		}
		if _, err := r.Output(ctx, "config", "--file", file, "--replace-all", key, value); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(file)
}

// movePruning tells restorePruning where the source is.
func (w *Workspace) movePruning(from string) error {
	var p expiry
	err := readJSON(w.host.pruningFile(w.Repo), &p)
	if errors.Is(err, fs.ErrNotExist) || err == nil && p.Source != from {
		return nil
	}
	if err != nil {
		return err
	}
	p.Source = w.Source
	return writeJSON(w.host.pruningFile(w.Repo), &p, true)
}

// relink makes links to shared folders lead to the source as it is now. What is no such link any more stays.
func (w *Workspace) relink(root *os.Root, before *Record) error {
	into := "tree/"
	if w.Kind == Overlay {
		into = "upper/"
	}
	for _, path := range w.Share {
		name := into + filepath.ToSlash(path)
		if to, err := root.Readlink(name); err != nil || to != filepath.Join(filepath.Dir(before.Source), path) {
			continue
		}
		if err := errors.Join(root.Remove(name), root.Symlink(filepath.Join(w.Checkout, path), name)); err != nil {
			return err
		}
	}
	return nil
}
