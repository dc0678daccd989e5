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
	// Kept is a folder with the private git directory and the files, in git and files, where a commit cannot hold all
	// of the work, or git could not read it; else "". What could make git run a program of the agent's is in settings.
	// That of a repository inside files is as it was, so git must not run there.
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
	if err := w.refuseBorrowed(); err != nil {
		return err
	}
	r, err := w.Open(ctx, Access{})
	if err == nil {
		err = w.secureWork(ctx, r, force, d)
		err = errors.Join(err, r.Close())
	}
	if _, refusal := errors.AsType[*Error](err); err == nil || !force || !refusal || errors.Is(err, ErrLimit) {
		return err
	}
	// Git cannot take the work out as it is. What can be read is saved, and all of it is kept.
	if d.Had = "what could be read"; errors.Is(err, ErrBaseChanged) {
		d.Had = "commits, and the changed files apart"
	}
	if err := w.salvage(ctx, d); err != nil {
		d.Saved, d.In = "", ""
		d.Had = "nothing: " + err.Error()
	}
	return w.setAside(d)
}

// secureWork saves what the workspace alone has, if it may.
func (w *Workspace) secureWork(ctx context.Context, r *Room, force bool, d *Deleted) error {
	s, f, hang, err := w.lookAll(ctx, r)
	if err != nil {
		return err
	}
	nested, tags := hang.nested, hang.tags
	if !s.Unsubmitted() && s.Replaced == 0 {
		return nil
	}
	if s.Unsubmitted() && !force {
		return problem(CodeUnsubmitted,
			"workspace %s/%s has work that was not submitted (%s): submit it, or use --force, "+
				"which saves it under refs/interlock/saved/%s",
			w.Repo, w.Name, s, w.Name)
	}
	heads, err := w.heads(ctx, r, s, f)
	if err != nil {
		return err
	}
	if d.Had = s.String(); d.Had == "" {
		d.Had = plural(s.Replaced, "commit") + " that only a reflog had"
	}
	message := fmt.Sprintf(
		"Saved workspace %s/%s\n\nUnsubmitted when it was deleted: %s.\nThe tree is that of the files; further "+
			"parents are other branches, stashes, and commits that only a reflog had.\n",
		w.Repo, w.Name, d.Had,
	)
	var commit string
	if nested == nil {
		commit, err = w.snapshot(ctx, r, f, message, heads...)
	} else {
		commit, err = w.join(ctx, r.Git, s.Head, message, heads)
	}
	if err != nil {
		return err
	}
	if err := r.take(ctx, append([]string{commit}, tags...), true); err != nil {
		return err
	}
	v, err := w.vault(ctx)
	if err != nil {
		return err
	}
	if err := w.save(ctx, v, commit, tags, d); err != nil {
		return err
	}
	if len(s.Other) > 1 || len(s.Other) == 1 && len(tags) == 0 {
		return w.setAside(d)
	}
	return nil
}

// hangers are what Status does not look for, since it takes a walk through the tree.
type hangers struct {
	nested []string // repositories inside the tree that have work
	tags   []string // objects of refs that are no commits, which the source has no ref to
}

// lookAll returns the status of all work.
func (w *Workspace) lookAll(ctx context.Context, r *Room) (s *Status, f *facts, h hangers, err error) {
	if s, f, err = w.look(ctx, r, "refs"); err != nil {
		return nil, nil, h, err
	}
	if h.nested, err = w.nested(ctx, r); err != nil {
		return nil, nil, h, err
	}
	for _, name := range h.nested {
		s.Other = append(s.Other, "the git repository "+name+" inside the workspace")
	}
	if h.tags = w.foreignTags(ctx, f); len(h.tags) > 0 {
		s.Other = append(s.Other, plural(len(h.tags), "tag"))
	}
	return s, f, h, nil
}

// Work looks for all that Delete would lose: what Status finds, and also repositories inside the tree, and tags.
func (w *Workspace) Work(ctx context.Context) (*Status, error) {
	r, err := w.Open(ctx, Access{})
	if err != nil {
		return nil, err
	}
	s, _, _, err := w.lookAll(ctx, r)
	return s, errors.Join(err, r.Close())
}

// join makes a commit with the tree of another one.
func (w *Workspace) join(
	ctx context.Context, r *git.Repository, tree, message string, parents []string,
) (commit string, err error) {
	args := []string{"commit-tree", tree + "^{tree}", "-m", message}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	commit, err = r.Output(ctx, args...)
	return commit, w.gitFailed(err)
}

// heads are the commits that reach all work: HEAD first, then those that it does not reach, of all refs, stashes, other
// heads and reflogs.
func (w *Workspace) heads(ctx context.Context, r *Room, s *Status, f *facts) ([]string, error) {
	args := []string{"rev-list", "--ignore-missing", "--all", "--reflog"}
	for id := range strings.FieldsSeq(f.heads) {
		if git.CheckObject(id) == nil {
			args = append(args, id)
		}
	}
	args = append(args, "--not", s.Head)
	args = slices.Concat(args, w.known(), w.submitted(ctx), []string{"--parents", "--"})
	out, err := r.Git.Run(ctx, git.Call{Args: args})
	if err != nil {
		return nil, w.gitFailed(err)
	}
	// The tips are those that are no parent of another one. A repository may have thousands of commits, and an argument
	// list has room for some hundred.
	var all []string
	parent := map[string]bool{}
	for line := range strings.Lines(string(out.Out)) {
		ids := strings.Fields(line)
		for i, id := range ids {
			if git.CheckObject(id) != nil {
				return nil, w.broken("git prints %.40q as a commit in %s", id, w.GitDir())
			}
			if i == 0 {
				all = append(all, id)
			} else {
				parent[id] = true
			}
		}
	}
	heads := []string{s.Head}
	for _, id := range all {
		if !parent[id] {
			heads = append(heads, id)
		}
	}
	for len(heads) > maxParents {
		join, err := w.join(ctx, r.Git, s.Head, "More saved commits", heads[len(heads)-maxParents:])
		if err != nil {
			return nil, err
		}
		heads = append(heads[:len(heads)-maxParents], join)
	}
	return heads, nil
}

// maxParents is how many parents a saved commit has at most.
const maxParents = 100

// foreignTags are the objects that refs of the workspace name, are no commits, and have no ref in the source.
func (w *Workspace) foreignTags(ctx context.Context, f *facts) (list []string) {
	var ids []string
	for line := range strings.Lines(f.refs) {
		// A tag of a commit that has no object of its own is a commit here. Between the types there may be nothing.
		fields := strings.Fields(line)
		if len(fields) >= 3 && fields[0] != "commit" {
			if id := fields[len(fields)-2]; git.CheckObject(id) == nil && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	source := git.Repository{Dir: w.Source}
	there, _ := source.Output(ctx, "for-each-ref", "--format=%(objectname)") // nothing is saved twice: it is kept
	for _, id := range ids {
		if !strings.Contains("\n"+there+"\n", "\n"+id+"\n") {
			list = append(list, id)
		}
	}
	return list
}

// refuseBorrowed refuses to delete what another workspace of this host was made of.
func (w *Workspace) refuseBorrowed() error {
	list, err := w.host.List("")
	if err != nil {
		return err
	}
	for _, other := range list {
		if rel, err := filepath.Rel(w.dir, other.Source); err == nil && filepath.IsLocal(rel) {
			return problem(
				CodeUnsubmitted, "workspace %s/%s was made of %s/%s, and needs its objects: delete that one first",
				other.Repo, other.Name, w.Repo, w.Name,
			)
		}
	}
	return nil
}

// setAside moves the private git directory, and the files that the workspace wrote, out of it.
func (w *Workspace) setAside(d *Deleted) error {
	d.Kept = filepath.Join(w.host.Root, w.Repo, ".kept", w.Name+"-"+w.ID)
	if err := os.MkdirAll(d.Kept, 0o700); err != nil {
		return err
	}
	files := w.Path()
	if w.Kind == Overlay {
		if err := w.unmountTree(); err != nil {
			return err
		}
		files = w.upper()
	}
	for name, from := range map[string]string{"git": w.GitDir(), "files": files} {
		// What is there already was moved by an attempt that went no further.
		if to := filepath.Join(d.Kept, name); exists(from) && !exists(to) {
			if err := os.Rename(from, to); err != nil {
				return err
			}
		}
	}
	w.keepsObjects = true
	return w.disarm(d.Kept)
}

// disarm moves the agent's settings and hooks out of a kept git directory, so that git can show its commits there
// and runs no program of the agent's. It can be repeated.
func (w *Workspace) disarm(kept string) error {
	at := filepath.Join(kept, "git")
	if info, err := os.Lstat(at); err != nil || !info.IsDir() {
		return nil // the agent has removed or replaced it
	}
	root, err := os.OpenRoot(kept)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir("settings", 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range []string{"config", "config.worktree", "commondir", "hooks", "info"} {
		// A second time, this is the configuration below.
		if _, err := root.Lstat("settings/" + name); err == nil {
			continue
		}
		if err := root.Rename("git/"+name, "settings/"+name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// A link in its place is removed, and not followed.
	if err := root.RemoveAll("git/config"); err != nil {
		return err
	}
	return root.WriteFile("git/config", []byte(bareConfig(w.Start)), 0o600)
}

// save copies a commit, and tags, from a git directory of ours into the source, under refs that were not there. A
// source that this user cannot write has a repository beside it, below the host's root.
func (w *Workspace) save(ctx context.Context, from *git.Repository, commit string, tags []string, d *Deleted) error {
	if _, err := from.Output(ctx, "update-ref", savedHead, commit); err != nil {
		return err
	}
	to := git.Repository{Dir: w.Source}
	if w.Copied || !exists(w.Source) {
		to.Dir = filepath.Join(w.host.Root, w.Repo, ".saved.git")
		if !exists(to.Dir) {
			format := "sha1"
			if len(w.Start) == 64 {
				format = "sha256"
			}
			init := git.Repository{Folder: w.dir}
			if _, err := init.Output(
				ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+format, to.Dir,
			); err != nil {
				return err
			}
		}
	}
	specs := []string{}
	for _, id := range tags {
		if _, err := from.Output(ctx, "update-ref", "refs/interlock/tags/"+id, id); err != nil {
			return err
		}
		specs = append(specs, "refs/interlock/tags/"+id+":refs/interlock/saved-objects/"+id)
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
		args := []string{
			"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--end-of-options", from.Dir,
			savedHead + ":" + ref,
		}
		if _, err := to.Output(ctx, append(args, specs...)...); err != nil {
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
	if !w.keepsObjects {
		if err := w.release(ctx); err != nil {
			return fmt.Errorf("the source still keeps the base: %w", err)
		}
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
		return w.host.dropBase(w.Repo, w.baseName())
	}
	return nil
}
