package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Status is what a workspace has that its target has not, and the other way round.
type Status struct {
	// Changed, Untracked and Unmerged count files that no commit has as they are, those included that the index hides
	// from git status. A folder that is untracked as a whole counts as one.
	Changed, Untracked, Unmerged int
	// Commits counts those that are neither in the target nor submitted: of all refs, stashes, and other heads.
	Commits int
	// Replaced counts commits that only a reflog has, such as those before an amend. Delete saves them unasked.
	Replaced int
	// Other names work that is no file and no commit of this workspace, such as "a linked worktree at PATH".
	Other []string
	// Ahead and Behind count the commits of the branch and of the target that the other has not.
	Ahead, Behind int
	Head          string // the commit of the workspace
	Tip           string // the commit of the target now
}

// Dirty reports whether files differ from the last commit.
func (s *Status) Dirty() bool { return s.Changed+s.Untracked+s.Unmerged > 0 }

// Unsubmitted reports whether there is work that only the workspace has.
func (s *Status) Unsubmitted() bool { return s.Dirty() || s.Commits > 0 || len(s.Other) > 0 }

// String names what is unsubmitted, such as "2 changed files, 1 commit".
func (s *Status) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{s.Unmerged, "unmerged file"}, {s.Changed, "changed file"}, {s.Untracked, "untracked file"}, {s.Commits, "commit"},
	} {
		if p.n > 0 {
			parts = append(parts, plural(p.n, p.what))
		}
	}
	return strings.Join(append(parts, s.Other...), ", ")
}

// Status looks at the files, the commits and the target.
func (w *Workspace) Status(ctx context.Context) (*Status, error) {
	r, err := w.Open(ctx, Access{})
	if err != nil {
		return nil, err
	}
	s, err := w.status(ctx, r)
	return s, errors.Join(err, r.Close())
}

// statusScript prints what git has to tell in one run, as sections that end with the line of $1. $2 are commits that
// others have, $3 is the target's. The names of refs are printed if $4 is not empty.
const statusScript = `ulimit -d 8388608 2> /dev/null || :
end() { printf '\0%s\0' "$nonce"; }
nonce=$1 safe=$2 tip=$3 refs=$4
GIT_OPTIONAL_LOCKS=1 git status --porcelain=v2 --branch -z --untracked-files=normal --ignore-submodules=none || exit
end
git ls-files -v -z || exit
end
if [ -e "$GIT_DIR/logs/refs/stash" ]; then stashes=$(git log -g --format=%H refs/stash --); fi
heads=
for f in "$GIT_DIR"/*_HEAD "$GIT_DIR"/rebase-merge/autostash "$GIT_DIR"/rebase-merge/orig-head; do
	if [ -f "$f" ]; then
		case $f in
		*/FETCH_HEAD | */ORIG_HEAD) ;;
		*) heads="$heads $(head -c 4096 "$f" | grep -a -x '[0-9a-f]*')" ;;
		esac
	fi
done
known="$safe $tip" commits=0 replaced=0
all=$(git rev-list --count --ignore-missing --all --reflog $stashes $heads --not $known --) || exit
if [ "$all" != 0 ]; then
	commits=$(git rev-list --count --ignore-missing --all $stashes $heads --not $known --) || exit
	replaced=$((all - commits))
fi
printf %s "$commits"
end
printf %s "$replaced"
end
git rev-list --count --left-right "HEAD...$tip" -- || exit
end
if [ -n "$refs" ]; then git for-each-ref --format='%(objecttype) %(*objecttype) %(objectname) %(refname)' || exit; fi
end
printf '%s\n' $stashes $heads
end
`

// facts are the sections of statusScript.
type facts struct {
	files, hidden, commits, replaced, sides, refs, heads string
}

// ask runs statusScript. What it prints is the agent's word.
func (r *Room) ask(ctx context.Context, safe []string, tip, refs string) (*facts, error) {
	nonce, err := randomID()
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	if err := r.Run(
		ctx, nil, &writeLimit{to: &out, left: maxFacts}, "sh", "-c", statusScript, "sh", nonce,
		strings.Join(safe, " "), tip, refs,
	); err != nil {
		return nil, r.w.gitFailed(err)
	}
	var f facts
	sections := strings.Split(out.String(), "\x00"+nonce+"\x00")
	if len(sections) != 8 {
		return nil, r.w.broken("git fails in %s", r.w.GitDir())
	}
	for i, to := range []*string{&f.files, &f.hidden, &f.commits, &f.replaced, &f.sides, &f.refs, &f.heads} {
		*to = sections[i]
	}
	return &f, nil
}

// maxFacts bounds what is read of statusScript.
const maxFacts = 256 << 20

// writeLimit refuses to write more than so many bytes.
type writeLimit struct {
	to   io.Writer
	left int
}

func (l *writeLimit) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("git prints more than %d bytes", maxFacts)
	}
	return l.to.Write(p)
}

func (w *Workspace) status(ctx context.Context, r *Room) (*Status, error) {
	s, _, err := w.look(ctx, r, "")
	return s, err
}

// look returns the status, and the facts that it is made of, those about refs if refs is not empty.
func (w *Workspace) look(ctx context.Context, r *Room, refs string) (*Status, *facts, error) {
	c, err := w.examine()
	if err != nil {
		return nil, nil, err
	}
	s := &Status{Other: w.others(c)}
	if s.Tip, err = w.tip(ctx); err != nil {
		return nil, nil, err
	}
	f, err := r.ask(ctx, append([]string{w.Start, w.Base}, w.submitted(ctx)...), s.Tip, refs)
	if err != nil {
		return nil, nil, err
	}
	w.countFiles(s, f.files)
	if git.CheckObject(s.Head) != nil { // it is "(initial)"
		return nil, nil, w.broken("no commit is checked out in %s", w.GitDir())
	}
	for _, n := range []struct {
		text string
		to   []any
	}{{f.commits, []any{&s.Commits}}, {f.replaced, []any{&s.Replaced}}, {f.sides, []any{&s.Ahead, &s.Behind}}} {
		if _, err := fmt.Sscan(n.text, n.to...); err != nil {
			return nil, nil, w.broken("git counts %.40q in %s", n.text, w.GitDir())
		}
	}
	return s, f, w.countHidden(ctx, r, s, f.hidden)
}

// countFiles reads the output of git status.
func (w *Workspace) countFiles(s *Status, text string) {
	for items := strings.Split(text, "\x00"); len(items) > 0; items = items[1:] {
		switch item := items[0]; {
		case item == "":
		case item[0] == '#':
			if oid, ok := strings.CutPrefix(item, "# branch.oid "); ok {
				s.Head = oid
			}
		case item[0] == '2':
			s.Changed++
			items = items[min(1, len(items)-1):] // the path before the rename
		case item[0] == '1':
			s.Changed++
		case item[0] == '?':
			s.Untracked++
		case item[0] == 'u':
			s.Unmerged++
		}
	}
}

// countHidden adds the changed files that the index hides by assume-unchanged or skip-worktree. hidden are lines of
// git ls-files -v.
func (w *Workspace) countHidden(ctx context.Context, r *Room, s *Status, hidden string) error {
	paths := w.shown(hidden)
	if len(paths) == 0 {
		return nil
	}
	index, err := r.openIndex(ctx, paths)
	if err != nil {
		return err
	}
	defer index.close()
	out, err := index.git.Output(ctx, "diff-files", "--name-only", "-z", "--ignore-submodules=none")
	if err != nil {
		return w.gitFailed(err)
	}
	for path := range strings.SplitSeq(out, "\x00") {
		if slices.Contains(paths, path) {
			s.Changed++
		}
	}
	return nil
}

// shown are the paths of hidden entries that are files in the tree. A file that a sparse checkout leaves out is absent.
func (w *Workspace) shown(hidden string) (paths []string) {
	if hidden == "" {
		return nil
	}
	for line := range strings.SplitSeq(hidden, "\x00") {
		if len(line) < 3 || line[0] != 'S' && (line[0] < 'a' || line[0] > 'z') || !filepath.IsLocal(line[2:]) {
			continue
		}
		if line[0] == 'S' && w.Kind == Sparse {
			continue // git itself shows such a file in a sparse checkout
		}
		paths = append(paths, line[2:])
	}
	return paths
}

// temporaryIndex is a copy of the agent's index, in which no entry is hidden.
type temporaryIndex struct {
	git  *git.Repository
	r    *Room
	file string
}

func (r *Room) openIndex(ctx context.Context, hidden []string) (*temporaryIndex, error) {
	id, err := randomID()
	if err != nil {
		return nil, err
	}
	at := *r.Git
	t := &temporaryIndex{git: &at, r: r, file: filepath.Join(r.Git.Dir, "interlock-"+id)}
	at.Env = append(slices.Clone(r.Git.Env), "GIT_INDEX_FILE="+t.file)
	if err := r.Run(
		ctx, nil, nil, "sh", "-c", `if [ -e "$1" ]; then cp -p -- "$1" "$2"; fi`, "sh",
		filepath.Join(r.Git.Dir, "index"), t.file,
	); err != nil {
		return nil, r.w.gitFailed(err)
	}
	if err := r.unhide(ctx, t.git, hidden); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// unhide takes the flags assume-unchanged and skip-worktree from entries of an index that have a file. One without
// stays as it is: a sparse checkout left it out.
func (r *Room) unhide(ctx context.Context, index *git.Repository, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	var present strings.Builder
	if err := r.Run(
		ctx, strings.NewReader(strings.Join(paths, "\x00")+"\x00"), &present, "xargs", "-0", "sh", "-c",
		`for f; do if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\0' "$f"; fi; done`, "sh",
	); err != nil || present.Len() == 0 {
		return r.w.gitFailed(err)
	}
	for _, flag := range []string{"--no-skip-worktree", "--no-assume-unchanged"} {
		if _, err := index.Feed(ctx, []byte(present.String()), "update-index", "-z", flag, "--stdin"); err != nil {
			return r.w.gitFailed(err)
		}
	}
	return nil
}

func (t *temporaryIndex) close() {
	// The name is random, so that it is no link; and one would be removed itself.
	if root, err := os.OpenRoot(t.r.Git.Dir); err == nil {
		_ = root.Remove(filepath.Base(t.file))
		_ = root.Remove(filepath.Base(t.file) + ".lock")
		root.Close()
	}
}

// others names the work in the private git directory that is neither a file of the tree nor a commit.
func (w *Workspace) others(c *contents) (list []string) {
	for _, at := range c.linked {
		list = append(list, "a linked worktree at "+filepath.Dir(at))
	}
	for _, what := range c.operations {
		list = append(list, what+" that is not finished")
	}
	if n := w.largeOnlyHere(c.large); n > 0 {
		list = append(list, plural(n, "file")+" of Git LFS")
	}
	return list
}

// tip is the commit of the target as it is now, if it can be read without a fetch, else as it was
// fetched last.
func (w *Workspace) tip(ctx context.Context) (string, error) {
	if w.Upstream == w.Source && !w.Copied {
		source := git.Repository{Dir: w.Source}
		if commit, err := branchCommit(ctx, &source, w.Target); err == nil {
			return commit, nil
		}
	}
	return w.Base, nil
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
	ctx context.Context, r *Room, f *facts, message string, parents ...string,
) (commit string, err error) {
	if err := w.refuseLarge(f.files); err != nil {
		return "", err
	}
	index, err := r.openIndex(ctx, w.shown(f.hidden))
	if err != nil {
		return "", err
	}
	defer index.close()
	var out strings.Builder
	at := *r
	at.Git = index.git
	if err := at.Run(
		ctx, nil, &out, append([]string{"sh", "-c", snapshotScript, "sh", message}, parents...)...,
	); err != nil {
		return "", w.notAdded(err)
	}
	added, commit, ok := strings.Cut(out.String(), "\x00")
	if err := refuseNested(added); err != nil {
		return "", err
	}
	if commit = strings.TrimSpace(commit); !ok || git.CheckObject(commit) != nil {
		return "", w.broken("git makes no commit in %s", w.GitDir())
	}
	return commit, nil
}

// snapshotScript takes all files into the index, and prints what is new there, and a commit with the message $1.
const snapshotScript = `git add --all --sparse -- . || exit
git diff-index --cached --diff-filter=A --no-renames --raw HEAD -- || exit
printf '\0'
tree=$(git write-tree) || exit
message=$1 parents=; shift
for p; do parents="$parents -p $p"; done
exec git commit-tree "$tree" -m "$message" $parents`

// addAll takes all files into the index. It refuses a repository inside the tree: git would keep no
// more of it than the id of a commit.
func (w *Workspace) addAll(ctx context.Context, r *git.Repository) error {
	if _, err := r.Output(ctx, "add", "--all", "--sparse", "--", "."); err != nil {
		return w.notAdded(err)
	}
	out, err := r.Output(ctx, "diff-index", "--cached", "--diff-filter=A", "--no-renames", "--raw", "HEAD", "--")
	if err != nil {
		return w.gitFailed(err)
	}
	return refuseNested(out)
}

// notAdded is why files cannot be taken into the index.
func (w *Workspace) notAdded(err error) error {
	failure, ok := errors.AsType[*git.Error](err)
	if !ok || failure.DiskFull() {
		return err
	}
	if refused := w.filterFailed(context.Background(), err); refused != err {
		return refused
	}
	return problem(CodeUncommitted, "the files of %s/%s cannot be taken into a commit: %v", w.Repo, w.Name, err)
}

// refuseNested refuses a repository among the new entries of an index.
func refuseNested(added string) error {
	for line := range strings.SplitSeq(added, "\n") {
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
	v, commit, err := w.capture(ctx)
	if err != nil {
		return err
	}
	base, err := v.Output(ctx, "merge-base", commit, w.Base)
	if err != nil {
		return err
	}
	_, err = v.Run(ctx, git.Call{Args: append(append([]string{"diff"}, args...), base, commit, "--"), Out: out})
	return err
}

// capture brings a commit of all files, as they are, into the vault.
func (w *Workspace) capture(ctx context.Context) (v *git.Repository, commit string, err error) {
	r, err := w.Open(ctx, Access{})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	_, f, err := w.look(ctx, r, "")
	if err != nil {
		return nil, "", err
	}
	if commit, err = w.snapshot(ctx, r, f, "snapshot", "HEAD"); err != nil {
		return nil, "", err
	}
	if err := r.take(ctx, []string{commit}, false); err != nil {
		return nil, "", err
	}
	v, err = w.vault(ctx)
	return v, commit, err
}

// Merged writes what the target would become if the workspace was submitted as it is. Files in
// conflict are returned, and shown with markers.
func (w *Workspace) Merged(ctx context.Context, out io.Writer, args ...string) (conflicts []string, err error) {
	v, commit, err := w.capture(ctx)
	if err != nil {
		return nil, err
	}
	tip, err := w.fetch(ctx)
	if err != nil {
		return nil, err
	}
	result, err := v.Run(ctx, git.Call{
		Args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", tip, commit}, Answers: []int{1},
	})
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.TrimSuffix(string(result.Out), "\x00"), "\x00")
	if result.Exit == 1 {
		conflicts = parts[1:]
	}
	_, err = v.Run(ctx, git.Call{Args: append(append([]string{"diff"}, args...), tip, parts[0], "--"), Out: out})
	return conflicts, err
}
