package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Status is what a workspace has that its target has not, and the other way round.
type Status struct {
	// Changed, Untracked and Unmerged count files that no commit has as they are. A folder that is
	// untracked as a whole counts as one.
	Changed, Untracked, Unmerged int
	// Commits counts those that are neither in the target nor submitted, stashes included.
	Commits int
	// Ahead and Behind count the commits of the branch and of the target that the other has not.
	Ahead, Behind int
	Head          string // the commit of the workspace
	Tip           string // the commit of the target now
}

// Dirty reports whether files differ from the last commit.
func (s *Status) Dirty() bool { return s.Changed+s.Untracked+s.Unmerged > 0 }

// Unsubmitted reports whether there is work that only the workspace has.
func (s *Status) Unsubmitted() bool { return s.Dirty() || s.Commits > 0 }

// String names what is unsubmitted, such as "2 changed files, 1 commit".
func (s *Status) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{s.Unmerged, "unmerged file"}, {s.Changed, "changed file"}, {s.Untracked, "untracked file"}, {s.Commits, "commit"},
	} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.what)
		case p.n > 1:
			parts = append(parts, strconv.Itoa(p.n)+" "+p.what+"s")
		}
	}
	return strings.Join(parts, ", ")
}

// Status looks at the files, the commits and the target.
func (w *Workspace) Status(ctx context.Context) (*Status, error) {
	r, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	return w.status(ctx, r)
}

func (w *Workspace) status(ctx context.Context, r *git.Repository) (*Status, error) {
	var s Status
	// The index is refreshed: the next status need not read the same files again.
	result, err := r.Run(ctx, git.Call{
		Args: []string{"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"},
		Env:  []string{"GIT_OPTIONAL_LOCKS=1"},
	})
	if err != nil {
		return nil, err
	}
	for items := strings.Split(string(result.Out), "\x00"); len(items) > 0; items = items[1:] {
		switch item := items[0]; {
		case item == "":
		case item[0] == '#':
			if oid, ok := strings.CutPrefix(item, "# branch.oid "); ok {
				s.Head = oid
			}
		case item[0] == '2':
			s.Changed++
			items = items[1:] // the path before the rename
		case item[0] == '1':
			s.Changed++
		case item[0] == '?':
			s.Untracked++
		case item[0] == 'u':
			s.Unmerged++
		}
	}
	if git.CheckObject(s.Head) != nil { // it is "(initial)"
		return nil, problem(CodeSource, "workspace %s/%s has no commit checked out: check out %s", w.Repo, w.Name, w.Branch)
	}
	if s.Tip, err = w.tip(ctx, r); err != nil {
		return nil, err
	}
	if s.Head != s.Tip {
		counts, err := r.Output(ctx, "rev-list", "--count", "--left-right", s.Head+"..."+s.Tip)
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Sscan(counts, &s.Ahead, &s.Behind); err != nil {
			return nil, fmt.Errorf("git counts %q: %w", counts, err)
		}
	}
	s.Commits, err = w.unsubmitted(ctx, r, &s)
	return &s, err
}

// tip is the commit of the target as it is now, if it can be read without a fetch, else as it was
// fetched last.
func (w *Workspace) tip(ctx context.Context, r *git.Repository) (string, error) {
	if w.Upstream == w.Source && !w.Copied {
		source := git.Repository{Dir: w.Source}
		if commit, err := branchCommit(ctx, &source, w.Target); err == nil {
			return commit, nil
		}
	}
	return r.Output(ctx, "rev-parse", "--verify", w.targetRef()+"^{commit}")
}

// tips are the commits that hold the work of the workspace: its head, all branches and tags, all
// stashes, and the other side of a merge.
func (w *Workspace) tips(ctx context.Context, r *git.Repository, head string) ([]string, error) {
	refs, err := r.Output(
		ctx, "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/tags", "refs/notes", "refs/stash",
	)
	if err != nil {
		return nil, err
	}
	tips := append([]string{head}, strings.Fields(refs)...)
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD"} {
		if exists(filepath.Join(w.GitDir(), name)) {
			tips = append(tips, name)
		}
	}
	if exists(filepath.Join(w.GitDir(), "refs", "stash")) {
		// The stashes below the newest one are in its log alone.
		stashes, err := r.Output(ctx, "log", "--walk-reflogs", "--format=%H", "refs/stash", "--")
		if err != nil {
			return nil, err
		}
		tips = append(tips, strings.Fields(stashes)...)
	}
	return tips, nil
}

// unsubmitted counts the commits that no other place keeps: others have the start, the target, and what
// was submitted.
func (w *Workspace) unsubmitted(ctx context.Context, r *git.Repository, s *Status) (int, error) {
	tips, err := w.tips(ctx, r, s.Head)
	if err != nil {
		return 0, err
	}
	safe := append([]string{w.Start, w.Base, s.Tip}, w.submitted(ctx)...)
	if !slices.ContainsFunc(tips, func(tip string) bool { return !slices.Contains(safe, tip) }) {
		return 0, nil
	}
	// The workspace may not have all of them.
	out, err := r.Feed(ctx, []byte(strings.Join(safe, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype) %(objectname)")
	if err != nil {
		return 0, err
	}
	in := strings.Join(tips, "\n") + "\n"
	for line := range strings.SplitSeq(out, "\n") {
		if commit, ok := strings.CutPrefix(line, "commit "); ok {
			in += "^" + commit + "\n"
		}
	}
	if out, err = r.Feed(ctx, []byte(in), "rev-list", "--count", "--stdin"); err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// submitted are the heads of the submissions that the upstream has, as far as can be seen: one that was
// withdrawn may be gone there.
func (w *Workspace) submitted(ctx context.Context) (heads []string) {
	if len(w.Submissions) == 0 {
		return nil
	}
	refs := ""
	if local := filepath.IsAbs(w.Upstream); local {
		upstream := git.Repository{Folder: w.Upstream, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(w.Upstream)}}
		out, err := upstream.Output(ctx, "for-each-ref", "--format=%(refname)", submitRef(""))
		if err != nil {
			return nil // what cannot be seen counts as gone
		}
		refs = "\n" + out + "\n"
	}
	for _, sub := range w.Submissions {
		if refs == "" || strings.Contains(refs, "\n"+sub.Ref+"\n") {
			heads = append(heads, sub.Head)
		}
	}
	return heads
}

// snapshot makes a commit of all files as they are, ignored ones excepted, on top of HEAD, and touches
// neither the index nor a branch. It is HEAD's own tree if nothing changed.
func (w *Workspace) snapshot(
	ctx context.Context, r *git.Repository, message string, parents ...string,
) (commit string, err error) {
	index := filepath.Join(w.GitDir(), "interlock-index")
	defer os.Remove(index)
	content, err := os.ReadFile(filepath.Join(w.GitDir(), "index"))
	if err == nil {
		err = os.WriteFile(index, content, 0o600)
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return "", err
	}
	at := *r
	at.Env = append([]string{"GIT_INDEX_FILE=" + index}, r.Env...)
	if err := w.addAll(ctx, &at); err != nil {
		return "", err
	}
	tree, err := at.Output(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree, "-m", message}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return at.Output(ctx, args...)
}

// addAll takes all files into the index. It refuses a repository inside the tree: git would keep no
// more of it than the id of a commit.
func (w *Workspace) addAll(ctx context.Context, r *git.Repository) error {
	if _, err := r.Output(ctx, "add", "--all", "--sparse", "--", "."); err != nil {
		return problem(CodeUncommitted, "the files of %s/%s cannot be taken into a commit: %v", w.Repo, w.Name, err)
	}
	out, err := r.Output(ctx, "diff-index", "--cached", "--diff-filter=A", "--no-renames", "--raw", "HEAD", "--")
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(out, "\n") {
		if meta, path, ok := strings.Cut(line, "\t"); ok && strings.HasPrefix(meta, ":000000 160000 ") {
			return problem(
				CodeUncommitted,
				"%s is a git repository inside the workspace, and its files would be lost: move it out, or "+
					"remove its .git",
				path,
			)
		}
	}
	return nil
}

// Diff writes what the workspace changed since it last took the target in, untracked files included.
// Further arguments of git diff, such as --stat, may be given.
func (w *Workspace) Diff(ctx context.Context, out io.Writer, args ...string) error {
	r, err := w.open(ctx)
	if err != nil {
		return err
	}
	base, err := r.Output(ctx, "merge-base", "HEAD", w.Base)
	if err != nil {
		return err
	}
	commit, err := w.snapshot(ctx, r, "snapshot", "HEAD")
	if err != nil {
		return err
	}
	_, err = r.Run(ctx, git.Call{Args: append(append([]string{"diff"}, args...), base, commit, "--"), Out: out})
	return err
}

// Merged writes what the target would become if the workspace was submitted as it is. Files in
// conflict are returned, and shown with markers.
func (w *Workspace) Merged(ctx context.Context, out io.Writer, args ...string) (conflicts []string, err error) {
	r, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	tip, err := w.fetch(ctx, r)
	if err != nil {
		return nil, err
	}
	commit, err := w.snapshot(ctx, r, "snapshot", "HEAD")
	if err != nil {
		return nil, err
	}
	result, err := r.Run(ctx, git.Call{
		Args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", tip, commit}, Answers: []int{1},
	})
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.TrimSuffix(string(result.Out), "\x00"), "\x00")
	if result.Exit == 1 {
		conflicts = parts[1:]
	}
	_, err = r.Run(ctx, git.Call{Args: append(append([]string{"diff"}, args...), tip, parts[0], "--"), Out: out})
	return conflicts, err
}
