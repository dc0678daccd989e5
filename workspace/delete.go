package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Deleted is what Delete did.
type Deleted struct {
	// Saved is the ref that has the unsubmitted work, and In the git directory that has the ref. Both
	// are "" if there was no such work.
	Saved, In string
	// Had names what was saved.
	Had string
	// Kept is a folder with changed files that could not be saved as a commit, because the base of
	// their overlay changed; else "".
	Kept string
}

// savedRef is the first ref for saved work of a name; the next ones end in "@2", "@3" and so on, which
// no name of a workspace does.
func savedRef(name string, n int) string {
	if n == 1 {
		return "refs/interlock/saved/" + name
	}
	return fmt.Sprintf("refs/interlock/saved/%s@%d", name, n)
}

// Delete removes a workspace. It refuses while there is work that was not submitted (ErrUnsubmitted),
// and while a program works in a mounted tree. With force it saves that work first. Files that git
// ignores are removed, those that were included as well; a shared folder stays where it is.
func (h *Host) Delete(ctx context.Context, repo, name string, force bool) (*Deleted, error) {
	unlock, err := h.lock(repo)
	if err != nil {
		return nil, err
	}
	defer unlock()
	w, err := h.Find(repo, name)
	if err != nil {
		return nil, err
	}
	var d Deleted
	if w.Phase == Ready {
		if err := w.secure(ctx, force, &d); err != nil {
			return nil, err
		}
		w.Phase = Deleting
		if err := w.write(w.dir); err != nil {
			return nil, err
		}
	}
	if err := w.destroy(ctx); err != nil {
		if w.Phase == Deleting && exists(filepath.Join(w.dir, "git")) {
			// It may have been used since: the next Delete looks again.
			w.Phase = Ready
			_ = w.write(w.dir)
		}
		return nil, err
	}
	return &d, nil
}

// secure makes sure that nothing of value is in the workspace alone.
func (w *Workspace) secure(ctx context.Context, force bool, d *Deleted) error {
	r, err := w.open(ctx)
	if errors.Is(err, ErrBaseChanged) && force {
		return w.secureUnreadable(ctx, d)
	}
	if err != nil {
		return err
	}
	s, err := w.status(ctx, r)
	if err != nil {
		return err
	}
	if !s.Unsubmitted() {
		return nil
	}
	if !force {
		return problem(CodeUnsubmitted,
			"workspace %s/%s has work that was not submitted (%s): submit it, or use --force, "+
				"which saves it under refs/interlock/saved/%s",
			w.Repo, w.Name, s, w.Name)
	}
	all, err := w.heads(ctx, r, s.Head)
	if err != nil {
		return err
	}
	d.Had = s.String()
	message := fmt.Sprintf(
		"Saved workspace %s/%s\n\nUnsubmitted when it was deleted: %s.\nThe tree is that of the files; further "+
			"parents are other branches and stashes.\n",
		w.Repo, w.Name, s,
	)
	commit, err := w.snapshot(ctx, r, message, all...)
	if err != nil {
		return err
	}
	return w.save(ctx, commit, d)
}

// heads are the commits that reach all work: HEAD first, then those that it does not reach.
func (w *Workspace) heads(ctx context.Context, r *git.Repository, head string) ([]string, error) {
	tips, err := w.tips(ctx, r, head)
	if err != nil {
		return nil, err
	}
	independent, err := r.Output(ctx, append([]string{"merge-base", "--independent"}, tips...)...)
	if err != nil {
		return nil, err
	}
	all := []string{head}
	for p := range strings.FieldsSeq(independent) {
		if p != head {
			all = append(all, p)
		}
	}
	return all, nil
}

// secureUnreadable saves the commits of an overlay that cannot be mounted, and moves the files that it
// had changed out of the workspace.
func (w *Workspace) secureUnreadable(ctx context.Context, d *Deleted) error {
	r := git.Repository{Dir: w.GitDir(), Env: w.Author.env()}
	head, err := r.Output(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return err
	}
	all, err := w.heads(ctx, &r, head)
	if err != nil {
		return err
	}
	d.Had = "commits, and the changed files apart"
	args := []string{
		"commit-tree", head + "^{tree}", "-m",
		"Saved workspace " + w.Repo + "/" + w.Name + ", its changed files excepted",
	}
	for _, p := range all {
		args = append(args, "-p", p)
	}
	commit, err := r.Output(ctx, args...)
	if err != nil {
		return err
	}
	if err := w.save(ctx, commit, d); err != nil {
		return err
	}
	d.Kept = filepath.Join(w.host.Root, w.Repo, ".kept", w.Name+"-"+w.ID)
	if exists(d.Kept) {
		return nil // moved by an attempt that went no further
	}
	if err := os.MkdirAll(filepath.Dir(d.Kept), 0o700); err != nil {
		return err
	}
	if err := w.unmountTree(); err != nil {
		return err
	}
	return os.Rename(w.upper(), d.Kept)
}

// save copies a commit into the source, under a ref that was not there. A source that this user cannot
// write has a repository beside it, below the host's root.
func (w *Workspace) save(ctx context.Context, commit string, d *Deleted) error {
	private := git.Repository{Dir: w.GitDir()}
	const here = "refs/interlock/save"
	if _, err := private.Output(ctx, "update-ref", here, commit); err != nil {
		return err
	}
	to := git.Repository{Dir: w.Source}
	if w.Copied || !exists(w.Source) {
		to.Dir = filepath.Join(w.host.Root, w.Repo, ".saved.git")
		if !exists(to.Dir) {
			format, err := private.Output(ctx, "rev-parse", "--show-object-format")
			if err != nil {
				return err
			}
			init := git.Repository{Folder: w.dir}
			if _, err := init.Output(
				ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+format, to.Dir,
			); err != nil {
				return err
			}
		}
	}
	for n := 1; n < 10_000; n++ {
		ref := savedRef(w.Name, n)
		taken, err := to.Run(ctx, git.Call{Args: []string{"show-ref", "--verify", "--quiet", ref}, Answers: []int{1}})
		if err != nil {
			return err
		}
		if taken.Exit == 0 {
			if old, err := to.Output(ctx, "rev-parse", ref); err == nil && old == commit {
				d.Saved, d.In = ref, to.Dir // saved by an attempt that went no further
				return nil
			}
			continue
		}
		// Without a +, a ref that was made meanwhile is not replaced, unless it is an ancestor.
		if _, err := to.Output(
			ctx,
			"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--end-of-options", w.GitDir(), here+":"+ref,
		); err != nil {
			return fmt.Errorf("the work could not be saved in %s, so nothing is deleted: %w", to.Dir, err)
		}
		if got, err := to.Output(ctx, "rev-parse", ref); err != nil || got != commit {
			return fmt.Errorf("the work could not be saved in %s, so nothing is deleted: %s is at %q", to.Dir, ref, got)
		}
		d.Saved, d.In = ref, to.Dir
		return nil
	}
	return fmt.Errorf("there are 10,000 saved workspaces of the name %s: delete some of refs/interlock/saved", w.Name)
}

// unmountTree unmounts the tree if it is mounted.
func (w *Workspace) unmountTree() error {
	mounted, err := mountsBelow(w.Path())
	if err != nil || !slices.Contains(mounted, w.Path()) {
		return err
	}
	return unmount(w.Path())
}

// destroy removes a workspace that has no work, or none that is not safe. The caller has the lock.
func (w *Workspace) destroy(ctx context.Context) error {
	if err := w.unmountTree(); err != nil {
		return err
	}
	mounted, err := mountsBelow(w.dir)
	if err != nil {
		return err
	}
	if len(mounted) > 0 {
		return problem(CodeUnsubmitted, "%s is mounted inside the workspace: unmount it first", mounted[0])
	}
	if err := w.release(ctx); err != nil {
		return fmt.Errorf("the source still keeps the base: %w", err)
	}
	// The record goes last: until then the rest can be removed again.
	entries, err := os.ReadDir(w.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() != recordFile {
			if err := removeAll(filepath.Join(w.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := removeAll(w.dir); err != nil {
		return err
	}
	if w.Kind.usesBase() {
		return w.host.dropBase(w.Repo, w.Start)
	}
	return nil
}
