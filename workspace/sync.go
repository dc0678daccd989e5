package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Synced is what Sync did.
type Synced struct {
	// From and To are commits of the target: the one that was in before, and the one that is now.
	From, To string
	// Commits is how many commits of the target came in. It is 0 if there were none.
	Commits int
	// Conflicts are the files that have markers now.
	Conflicts []Conflict
}

// Conflict is a file that the workspace and the target changed differently.
type Conflict struct {
	Path string
	// Landed are the commits of the target that changed it, the newest first, at most 4.
	Landed []Landed
}

// Landed is a commit of the target.
type Landed struct {
	Commit, Author, Purpose string
}

// fetch makes the target's commit known to the workspace, and returns it.
func (w *Workspace) fetch(ctx context.Context, r *git.Repository) (string, error) {
	if w.Upstream == w.Source && !w.Copied {
		tip, err := branchCommit(ctx, &git.Repository{Dir: w.Source}, w.Target)
		if err != nil {
			return "", err
		}
		// The source keeps the commit before the workspace has a ref to it.
		if err := w.keep(ctx, tip); err != nil {
			return "", err
		}
		_, err = r.Output(ctx, "update-ref", w.targetRef(), tip)
		return tip, err
	}
	remote := w.remote()
	if _, err := remote.Output(
		ctx,
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", w.Upstream,
		"+refs/heads/"+w.Target+":"+w.targetRef(),
	); err != nil {
		return "", fmt.Errorf("the target could not be fetched from %s: %w", w.Upstream, err)
	}
	return r.Output(ctx, "rev-parse", "--verify", w.targetRef()+"^{commit}")
}

// remote is how git is called to reach the upstream. It needs no files.
func (w *Workspace) remote() *git.Repository {
	return &git.Repository{Dir: w.GitDir(), Folder: w.dir, Env: git.Remote(os.Environ())}
}

// Sync merges the target into the branch. Changed files that the target does not touch stay as they
// are; others must be committed first. Where both changed a file differently, it has conflict markers,
// which tell the purposes of both sides. Resolve them, git add the files, and submit.
func (w *Workspace) Sync(ctx context.Context) (*Synced, error) {
	r, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	before, err := w.status(ctx, r)
	if err != nil {
		return nil, err
	}
	if before.Unmerged > 0 || exists(filepath.Join(w.GitDir(), "MERGE_HEAD")) {
		return nil, problem(
			CodeConflict, "workspace %s/%s is in the middle of a merge: resolve it and commit, or git merge --abort",
			w.Repo, w.Name,
		)
	}
	tip, err := w.fetch(ctx, r)
	if err != nil {
		return nil, err
	}
	from, err := r.Output(ctx, "merge-base", "HEAD", tip)
	if err != nil {
		return nil, problem(
			CodeSource,
			"%s and the workspace have no common commit: was it replaced? Delete the workspace with --force, "+
				"which saves its work",
			w.Target,
		)
	}
	result := &Synced{From: from, To: tip}
	count, err := r.Output(ctx, "rev-list", "--count", "HEAD.."+tip)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscan(count, &result.Commits); err != nil {
		return nil, err
	}
	if result.Commits > 0 {
		if err := w.merge(ctx, r, tip, result); err != nil {
			return nil, err
		}
	}
	w.Base = tip
	return result, w.write(w.dir)
}

func (w *Workspace) merge(ctx context.Context, r *git.Repository, tip string, result *Synced) error {
	merged, err := r.Run(ctx, git.Call{
		Args: []string{
			"merge", "--quiet", "--no-edit", "-m", "Merge " + w.Target + " into " + w.Branch, tip,
		}, Answers: []int{1, 2},
	})
	if err != nil || merged.Exit == 0 {
		return err
	}
	if !exists(filepath.Join(w.GitDir(), "MERGE_HEAD")) {
		return problem(
			CodeUncommitted, "files that %s changed, too, are not committed: commit them, then sync again (%s)",
			w.Target, firstLines(merged.Stderr, 4),
		)
	}
	out, err := r.Output(ctx, "diff", "--name-only", "--diff-filter=U", "-z")
	if err != nil {
		return err
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if path == "" {
			continue
		}
		c := Conflict{Path: path}
		if c.Landed, err = landed(ctx, r, result.From, tip, path); err != nil {
			return err
		}
		if err := w.label(ctx, r, &c, tip); err != nil {
			return err
		}
		result.Conflicts = append(result.Conflicts, c)
	}
	return nil
}

func firstLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(n, len(lines))], " ")
}

// landed lists the commits of the target that changed a file.
func landed(ctx context.Context, r *git.Repository, from, tip, path string) (list []Landed, err error) {
	out, err := r.Output(ctx, "log", "--max-count=4", "--no-merges", "--format=%H%x00%an%x00%s", from+".."+tip, "--", path)
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(out, "\n") {
		if parts := strings.SplitN(line, "\x00", 3); len(parts) == 3 {
			list = append(list, Landed{Commit: parts[0], Author: parts[1], Purpose: parts[2]})
		}
	}
	return list, nil
}

// label writes the purposes of both sides into the conflict markers of a file.
func (w *Workspace) label(ctx context.Context, r *git.Repository, c *Conflict, tip string) error {
	ours := w.Name
	if w.Purpose != "" {
		ours += " (" + w.Purpose + ")"
	}
	theirs := w.Target
	if len(c.Landed) > 0 {
		theirs += ": " + c.Landed[0].Author + " (" + c.Landed[0].Purpose + ")"
	}
	if len(r.Through) > 0 {
		// The file is visible in the user namespace only.
		argv := append(slices.Clone(r.Through), "sh", "-c", labelScript, "sh", c.Path, tip, forSed(ours), forSed(theirs))
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = w.dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the markers of %s could not be labelled: %w: %.200s", c.Path, err, out)
		}
		return nil
	}
	root, err := os.OpenRoot(w.Path())
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(c.Path)
	if err != nil || !info.Mode().IsRegular() {
		return nil // deleted on one side, or a symbolic link
	}
	content, err := root.ReadFile(c.Path)
	if err != nil {
		return err
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	for i, line := range lines {
		switch string(bytes.TrimRight(line, "\r\n")) {
		case "<<<<<<< HEAD":
			lines[i] = append([]byte("<<<<<<< "+ours), line[len("<<<<<<< HEAD"):]...)
		case ">>>>>>> " + tip:
			lines[i] = append([]byte(">>>>>>> "+theirs), line[len(">>>>>>> "+tip):]...)
		}
	}
	return root.WriteFile(c.Path, bytes.Join(lines, nil), info.Mode().Perm())
}

// labelScript does the same in a user namespace.
const labelScript = `f=$1; test -f "$f" && test ! -L "$f" || exit 0
sed -i -e 's/^<<<<<<< HEAD$/<<<<<<< '"$3"'/' -e 's/^>>>>>>> '"$2"'$/>>>>>>> '"$4"'/' -- "$f"`

// forSed makes a text the replacement of a sed command.
func forSed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `/`, `\/`, `&`, `\&`, "\n", " ").Replace(text)
}
