package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
)

// baseFolder has the base checkouts of a repository, one for each commit.
//
//	.base/COMMIT/files      the checkout, which no program writes any more
//	.base/COMMIT/index      git's index of it, with the times of all files
//	.base/COMMIT/base.json  which folder it is, and when all files were last compared
const baseFolder = ".base"

type base struct {
	Commit  string    `json:"commit"`
	Folder  folderID  `json:"folder"`
	Changed time.Time `json:"changed"` // the modification time of the top folder
	Checked time.Time `json:"checked"`

	dir string
}

// folderID tells a folder from another one at the same path.
type folderID struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// checkEvery is how long the comparison of all files of a base holds. It takes about 5 microseconds a
// file; that the folder is still the same is looked at each time.
const checkEvery = 10 * time.Minute

func (b *base) files() string { return filepath.Join(b.dir, "files") }
func (b *base) index() string { return filepath.Join(b.dir, "index") }
func (b *base) record() string {
	return filepath.Join(b.dir, "base.json")
}

func (h *Host) baseDir(repo, name string) string {
	return filepath.Join(h.Root, repo, baseFolder, name)
}

// openBase opens a base checkout and refuses one that has changed.
func (h *Host) openBase(ctx context.Context, store opener, repo, name string) (*base, error) {
	b := &base{dir: h.baseDir(repo, name)}
	if err := readJSON(b.record(), b); err != nil {
		return nil, err
	}
	info, err := os.Stat(b.files())
	switch {
	case err != nil:
		return nil, b.changed("its files are gone")
	case identity(info) != b.Folder:
		return nil, b.changed("it is another folder")
	case !info.ModTime().Equal(b.Changed):
		return nil, b.changed("entries of its top folder were added or removed")
	case time.Since(b.Checked) < checkEvery:
		return b, nil
	}
	r, err := store(ctx)
	if err != nil {
		return nil, err
	}
	return b, b.compare(ctx, r.Dir)
}

// indexAhead is how much later than its making a base's index is dated: git compares the content of a file that is as
// new as its index, and no filter runs where a base is compared.
const indexAhead = time.Minute

// opener opens a git directory that no agent writes, and that has the commit of a base.
type opener func(ctx context.Context) (*git.Repository, error)

func (b *base) changed(how string) error {
	return problem(CodeBase,
		"the base checkout %s is not what it was (%s), and overlays over it cannot be trusted: "+
			"delete those workspaces with --force, which saves their commits and keeps their changed files",
		b.dir, how)
}

// compare compares all files with the base's own index. The HEAD of gitDir is of no interest.
func (b *base) compare(ctx context.Context, gitDir string) error {
	r := git.Repository{
		Dir: gitDir, WorkTree: b.files(), Env: []string{"GIT_INDEX_FILE=" + b.index()},
		Config: []string{"core.trustctime=true", "core.checkStat=default", "core.sparseCheckout=false"},
	}
	out, err := r.Output(ctx, "ls-files", "--modified", "--deleted", "--others")
	if err != nil {
		return err
	}
	if first, _, _ := bytes.Cut([]byte(out), []byte("\n")); len(first) > 0 {
		return b.changed("such as " + string(first))
	}
	b.Checked = time.Now()
	return b.write()
}

// baseName is the name of the base checkout: the commit, and what tells it from others of that commit.
func (r *Record) baseName() string {
	if r.Converted == "" {
		return r.Start
	}
	return r.Start + "-" + r.Converted
}

// makeBase makes the base checkout of a new workspace, or opens the one that is there. The caller has the lock of the
// repository's workspaces.
func (w *Workspace) makeBase(ctx context.Context) (*base, error) {
	h, repo, name := w.host, w.Repo, w.baseName()
	b, err := h.openBase(ctx, func(context.Context) (*git.Repository, error) {
		return &git.Repository{Dir: w.GitDir()}, nil
	}, repo, name)
	if err == nil {
		return b, nil
	}
	dir := h.baseDir(repo, name)
	used, listErr := h.usersOf(repo, name)
	if listErr != nil {
		return nil, listErr
	}
	if used > 0 {
		return nil, err
	}
	// What is left of an attempt that was killed, or a base that changed while no workspace used it.
	if err := removeAll(dir); err != nil {
		return nil, err
	}
	unfinished := dir + ".new"
	if err := errors.Join(removeAll(unfinished), os.MkdirAll(filepath.Join(unfinished, "files"), 0o700)); err != nil {
		return nil, err
	}
	b = &base{Commit: w.Start, dir: unfinished, Checked: time.Now()}
	if err := w.checkOut(ctx, b.files(), b.index()); err != nil {
		return nil, errors.Join(err, removeAll(unfinished))
	}
	later := time.Now().Add(indexAhead)
	if err := os.Chtimes(b.index(), later, later); err != nil {
		return nil, err
	}
	// The files are as permissive as git makes them: an overlay shows their modes.
	info, err := os.Stat(b.files())
	if err != nil {
		return nil, err
	}
	b.Folder, b.Changed = identity(info), info.ModTime()
	if err := b.write(); err != nil {
		return nil, err
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return nil, err
	}
	b.dir = dir
	return b, nil
}

func (b *base) write() error { return writeJSON(b.record(), b, false) }

// checkOut writes the files of the commit Start into an empty folder, and an index of them, on all processors.
func (w *Workspace) checkOut(ctx context.Context, tree, index string) error {
	r := w.plainIn(git.Repository{
		Dir: w.GitDir(), WorkTree: tree, Env: []string{"GIT_INDEX_FILE=" + index},
		Config: []string{"checkout.workers=0", "core.sparseCheckout=false"},
	}, tree, w.GitDir(), filepath.Dir(index))
	if _, err := r.Output(ctx, "read-tree", w.Start); err != nil {
		return err
	}
	if !w.filtered {
		_, err := r.Output(ctx, "checkout-index", "--all", "--index", "--quiet")
		return err
	}
	// A filter may be a script of the repository: what needs none comes first.
	out, err := r.Output(ctx, "ls-files", "-z")
	if err != nil {
		return err
	}
	var first, last strings.Builder
	for path := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		to := &first
		if w.drivers[path] != "" {
			to = &last
		}
		to.WriteString(path + "\x00")
	}
	for _, paths := range []string{first.String(), last.String()} {
		if _, err := r.Feed(ctx, []byte(paths), "checkout-index", "--index", "--quiet", "-z", "--stdin"); err != nil {
			return w.filterFailed(ctx, err)
		}
	}
	return nil
}

// usersOf counts the workspaces that were made of a base checkout. A reflink needs it only while it is
// made, and counts, so that the next one finds it.
func (h *Host) usersOf(repo, name string) (n int, err error) {
	list, err := h.List(repo)
	for _, w := range list {
		if w.Kind.usesBase() && w.baseName() == name && w.Phase != Creating {
			n++
		}
	}
	return n, err
}

// dropBase removes a base checkout that no workspace uses. The caller has the lock.
func (h *Host) dropBase(repo, name string) error {
	n, err := h.usersOf(repo, name)
	if err != nil || n > 0 {
		return err
	}
	if err := removeAll(h.baseDir(repo, name)); err != nil {
		return fmt.Errorf("the base checkout is left: %w", err)
	}
	return nil
}
