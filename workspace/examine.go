package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// contents is what lies in a private git directory besides commits and files.
type contents struct {
	linked     []string // the .git files of linked worktrees that are there, by their paths
	operations []string // such as "a rebase"
	large      []string // objects of Git LFS, as paths below lfs/objects
	modules    []string // git directories of submodules, below modules
}

// bounds are the sizes that files of a git directory have at most, by the first part of their names. What is larger
// was not written by git.
var bounds = map[string]int64{
	"HEAD": 4 << 10, "config": 4 << 20, "config.worktree": 4 << 20, "index": 1 << 30, "packed-refs": 256 << 20,
	"shallow": 64 << 20, "refs": 4 << 10, "logs": 256 << 20, "info": 64 << 20, "worktrees": 1 << 30,
}

// ended are the operations of git that go on over several commands, by the file or folder that each has meanwhile.
var ended = map[string]string{
	"rebase-merge": "a rebase", "rebase-apply": "a rebase or git am", "sequencer": "a series of picks",
	"CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisection",
}

// examine looks at the names, types and sizes in the private git directory. It refuses what git would follow out of
// it, would wait for, or never wrote (ErrBroken). It follows no link and runs no program.
func (w *Workspace) examine() (*contents, error) {
	root, err := os.OpenRoot(w.GitDir())
	if err != nil {
		return nil, w.broken("%s cannot be opened (%v)", w.GitDir(), err)
	}
	defer root.Close()
	for name, dir := range map[string]bool{"HEAD": false, "config": false, "objects": true, "refs": true} {
		info, err := root.Lstat(name)
		if err != nil {
			return nil, w.broken("%s is missing", filepath.Join(w.GitDir(), name))
		}
		if info.IsDir() != dir || !dir && !info.Mode().IsRegular() {
			return nil, w.broken("%s is %s", filepath.Join(w.GitDir(), name), typeName(info.Mode().Type()))
		}
	}
	c := new(contents)
	err = walk(root, ".", func(name string, e fs.DirEntry) (bool, error) {
		at := filepath.Join(w.GitDir(), filepath.FromSlash(name))
		first, rest, below := strings.Cut(name, "/")
		if !below {
			if what, ok := ended[name]; ok {
				c.operations = append(c.operations, what)
			}
			switch first {
			case "hooks", "annex":
				return false, nil // not read
			case "commondir":
				return false, w.broken("%s leads git to another folder", at)
			case "modules":
				if e.IsDir() {
					c.modules = findModules(root, name)
					return false, nil
				}
			}
		}
		switch e.Type() {
		case fs.ModeSocket, 0, fs.ModeDir:
		default:
			return false, w.broken("%s is %s", at, typeName(e.Type()))
		}
		if limit, ok := bounds[first]; ok && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil && info.Size() > limit {
				return false, w.broken("%s has %d bytes, and git writes at most %d there", at, info.Size(), limit)
			}
		}
		if first == "lfs" && strings.HasPrefix(rest, "objects/") && e.Type().IsRegular() {
			c.large = append(c.large, strings.TrimPrefix(rest, "objects/"))
		}
		if ok, _ := path.Match("worktrees/*", name); ok && e.IsDir() {
			if at := linkedWorktree(root, name); at != "" {
				c.linked = append(c.linked, at)
			}
		}
		return true, nil
	})
	if err != nil {
		if _, ok := err.(*Error); !ok {
			err = w.broken("%s cannot be read (%v)", w.GitDir(), err)
		}
		return nil, err
	}
	return c, nil
}

// broken is a private git directory in which git cannot be run.
func (w *Workspace) broken(format string, args ...any) error {
	return problem(
		CodeBroken, "%s: repair that, or take the work out by `interlock workspace rescue %s/%s`, or by delete --force",
		fmt.Sprintf(format, args...), w.Repo, w.Name,
	)
}

// linkedWorktree returns the .git file of a linked worktree, or "" if it is gone, as git worktree prune would find.
func linkedWorktree(root *os.Root, name string) string {
	text, err := readRegular(root, name+"/gitdir", 4<<10)
	if err != nil {
		return ""
	}
	at := string(bytes.TrimRight(text, "\n"))
	if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return at
}

// findModules finds the git directories of submodules, which may have slashes in their names.
func findModules(root *os.Root, dir string) (list []string) {
	_ = walk(root, dir, func(name string, e fs.DirEntry) (bool, error) {
		switch e.Name() {
		case "HEAD":
			list = append(list, path.Dir(name))
		case "objects", "refs", "logs", "hooks", "info", "lfs":
			return false, nil
		}
		return true, nil
	})
	return list
}

// guard bounds a run of git in the workspace. It ends git that waits for a pipe.
func (w *Workspace) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, late := context.WithTimeoutCause(ctx, roomTime, w.broken(
		"git did not end within %s in %s", roomTime, w.GitDir(),
	))
	ctx, stop := context.WithCancelCause(ctx)
	watch := time.AfterFunc(roomPatience, func() {
		if at := w.findPipe(); at != "" {
			stop(w.broken("%s is a named pipe, for which git waits", at))
		}
	})
	return ctx, func() {
		watch.Stop()
		late()
		stop(nil)
	}
}

// roomTime is how long a run of git takes at most in a workspace, and roomPatience how long it takes before
// this program looks for a named pipe.
const (
	roomTime     = 15 * time.Minute
	roomPatience = 3 * time.Second
)

// findPipe finds a named pipe that git opens: any in the private git directory, and those in the tree that have the
// names of git's own files.
func (w *Workspace) findPipe() (found string) {
	for _, dir := range []string{w.GitDir(), w.Path(), w.upper()} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue
		}
		_ = walk(root, ".", func(name string, e fs.DirEntry) (bool, error) {
			if e.Type() == fs.ModeNamedPipe && (dir == w.GitDir() || strings.HasPrefix(e.Name(), ".git")) {
				found = filepath.Join(dir, filepath.FromSlash(name))
				return false, fs.SkipAll
			}
			return true, nil
		})
		root.Close()
		if found != "" {
			return found
		}
	}
	return ""
}
