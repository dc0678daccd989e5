package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"

	"github.com/interlockdev/interlock/internal/filelock"
	"github.com/interlockdev/interlock/internal/git"
)

// Limits of a host.
const (
	MaxWorkspaces  = 200 // of all repositories together
	DefaultMinFree = 10  // percent of the disk
)

// Host is the workspaces of one user on this machine; see NewHost. Its methods may be called by several
// processes.
type Host struct {
	// Root is the folder of the workspaces, absolute and without symbolic links.
	Root string
	// MinFree is how many percent of the disk of Root have to be free for a new workspace; below 0: any.
	MinFree int
	// Max is how many workspaces there may be; 0 is MaxWorkspaces.
	Max int

	noSandbox bool // of tests: as on a system that has none

	mu       sync.Mutex
	converts map[string]*conversions // by the path of the source
}

// NewHost returns the workspaces below a folder, which it makes.
func NewHost(root string) (*Host, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	// Mounts are listed by their real paths.
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	return &Host{Root: root, MinFree: DefaultMinFree}, nil
}

// Workspace is one that was opened. It belongs to one goroutine.
type Workspace struct {
	Record
	// Reused is set by Create for a workspace that was there already.
	Reused bool
	// Notes are sentences of Create about what the workspace has not, and its caller may expect.
	Notes []string

	host *Host
	dir  string
	// keepsObjects means that its git directory was moved, and still needs the source's objects.
	keepsObjects bool

	// While it is made: what git in a sandbox needs, whether a filter runs, and the settings for git without one.
	access     *Access
	filtered   bool
	drivers    map[string]string // of each path that has one
	unfiltered []string
}

// Path is the folder of the files. That of a rootless overlay is empty but for commands behind Enter.
func (w *Workspace) Path() string { return filepath.Join(w.dir, "tree") }

// GitDir is the private git directory.
func (w *Workspace) GitDir() string { return filepath.Join(w.dir, "git") }

func (w *Workspace) upper() string { return filepath.Join(w.dir, "upper") }
func (w *Workspace) work() string  { return filepath.Join(w.dir, "work") }

// Key is the key of the workspace's lease and document.
func (r *Record) Key() string { return "workspace:" + r.Repo + "/" + r.Name }

// Open opens a workspace that is ready.
func (h *Host) Open(repo, name string) (*Workspace, error) {
	w, err := h.Find(repo, name)
	if err != nil {
		return nil, err
	}
	if w.Phase != Ready {
		return nil, problem(CodeUnknown, "workspace %s/%s was left %s: delete it, or create it again", repo, name, w.Phase)
	}
	return w, nil
}

// Find opens a workspace in any phase.
func (h *Host) Find(repo, name string) (*Workspace, error) {
	if err := errors.Join(CheckName("repository", repo), CheckName("workspace", name)); err != nil {
		return nil, err
	}
	w := &Workspace{host: h, dir: filepath.Join(h.Root, repo, name)}
	var err error
	w.Record, err = readRecord(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem(CodeUnknown, "there is no workspace %s/%s: `interlock workspace list` shows all", repo, name)
	}
	return w, err
}

// List returns all workspaces in the order of their names, those of one repository if repo is not "".
func (h *Host) List(repo string) (list []*Workspace, err error) {
	pattern := filepath.Join(escapeGlob(h.Root), "*", "*", recordFile)
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		r, err := readRecord(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if repo == "" || r.Repo == repo {
			list = append(list, &Workspace{Record: r, host: h, dir: dir})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].dir < list[j].dir })
	return list, nil
}

// At returns the workspace that a path is in.
func (h *Host) At(path string) (*Workspace, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(h.Root)
	if err != nil {
		root = h.Root
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	rel, err := filepath.Rel(root, path)
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if err != nil || len(parts) < 2 || parts[0] == ".." {
		return nil, problem(CodeUnknown, "%s is in no workspace", path)
	}
	return h.Find(parts[0], parts[1])
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// lock takes the lock of a repository's workspaces, until unlock is called.
func (h *Host) lock(repo string) (unlock func(), err error) {
	dir := filepath.Join(h.Root, repo)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// admit refuses a new workspace where there are too many, or the disk is almost full.
func (h *Host) admit() error {
	list, err := h.List("")
	if err != nil {
		return err
	}
	limit := h.Max
	if limit == 0 {
		limit = MaxWorkspaces
	}
	if len(list) >= limit {
		return problem(CodeLimit, "there are %d workspaces on this host, the most that are allowed: delete some", len(list))
	}
	free, total, err := DiskFree(h.Root)
	if err != nil || total == 0 || h.MinFree < 0 {
		return nil // an unknown disk is no full one
	}
	if percent := float64(free) * 100 / float64(total); percent < float64(h.MinFree) {
		return problem(
			CodeLimit, "the disk of %s has %.1f %% free, and a new workspace needs %d %%: delete workspaces, or set --min-free",
			h.Root, percent, h.MinFree,
		)
	}
	return nil
}

// Usage is the disk use of a workspace, in bytes of allocated blocks. What base checkouts use is not in it.
func (w *Workspace) Usage(ctx context.Context) (int64, error) {
	if w.Kind == Overlay {
		upper, err := diskUse(ctx, w.upper())
		git, err2 := diskUse(ctx, w.GitDir())
		return upper + git, errors.Join(err, err2)
	}
	return diskUse(ctx, w.dir)
}

// BaseUsage is the disk use of all base checkouts, in bytes.
func (h *Host) BaseUsage(ctx context.Context) (use int64, count int, err error) {
	bases, err := filepath.Glob(filepath.Join(escapeGlob(h.Root), "*", baseFolder, "*"))
	for _, base := range bases {
		n, useErr := diskUse(ctx, base)
		use, err = use+n, errors.Join(err, useErr)
	}
	return use, len(bases), err
}

// diskUse adds up the blocks of a folder. What vanishes meanwhile, or cannot be read, counts nothing.
func diskUse(ctx context.Context, dir string) (use int64, err error) {
	walked := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil {
			use += allocated(info)
		}
		return nil
	})
	return use, walked
}

// removeAll removes a folder of ours, also where its folders may not be written, as in caches of Go.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
			if err != nil {
				// It is read again below, by RemoveAll.
				return fs.SkipDir
			}
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("%s cannot be removed: %w", dir, err)
	}
	return nil
}

// nameFullDisk makes a refusal of an error that a full disk has caused.
func nameFullDisk(err *error) {
	failure, ok := errors.AsType[*git.Error](*err)
	if ok && failure.DiskFull() || errors.Is(*err, syscall.ENOSPC) {
		*err = problem(CodeLimit, "a disk is full, and nothing is lost: make room on it, and repeat (%v)", *err)
	}
}
