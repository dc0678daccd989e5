package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// fetch makes the target's commit known to the vault, and returns it.
func (w *Workspace) fetch(ctx context.Context) (string, error) {
	if w.Upstream == w.Source && !w.Copied {
		tip, err := branchCommit(ctx, &git.Repository{Dir: w.Source}, w.Target)
		if err != nil {
			return "", err
		}
		// The source keeps the commit before the workspace has a ref to it.
		return tip, w.keep(ctx, tip)
	}
	v, err := w.remote(ctx)
	if err != nil {
		return "", err
	}
	if _, err := v.Output(
		ctx,
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", w.Upstream,
		"+refs/heads/"+w.Target+":"+vaultTarget,
	); err != nil {
		return "", fmt.Errorf("the target could not be fetched from %s: %w", w.Upstream, err)
	}
	return v.Output(ctx, "rev-parse", "--verify", vaultTarget+"^{commit}")
}

// remote is how git is called to reach the upstream: from the vault.
func (w *Workspace) remote(ctx context.Context) (*git.Repository, error) {
	v, err := w.vault(ctx)
	if err != nil {
		return nil, err
	}
	v.Env = append(v.Env, git.Remote(os.Environ())...)
	return v, nil
}

// Sync merges the target into the branch. Changed files that the target does not touch stay as they
// are; others must be committed first. Where both changed a file differently, it has conflict markers,
// which tell the purposes of both sides. Resolve them, git add the files, and submit.
func (w *Workspace) Sync(ctx context.Context) (result *Synced, err error) {
	if err := os.WriteFile(w.grafts(), nil, 0o600); err != nil {
		return nil, err
	}
	r, err := w.Open(ctx, Access{Read: []string{w.grafts()}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	before, err := w.status(ctx, r)
	if err != nil {
		return nil, err
	}
	if before.Unmerged > 0 || r.hasFile("MERGE_HEAD") {
		return nil, problem(
			CodeConflict, "workspace %s/%s is in the middle of a merge: resolve it and commit, or git merge --abort",
			w.Repo, w.Name,
		)
	}
	tip, err := w.fetch(ctx)
	if err != nil {
		return nil, err
	}
	if w.Upstream != w.Source || w.Copied {
		if err := r.give(ctx, tip); err != nil {
			return nil, err
		}
	}
	if _, err := r.Git.Output(ctx, "update-ref", w.targetRef(), tip); err != nil {
		return nil, w.gitFailed(err)
	}
	if err := w.seeSquashes(ctx, r.Git, tip); err != nil {
		return nil, w.gitFailed(err)
	}
	from, err := r.Git.Output(ctx, "merge-base", "HEAD", tip)
	if err != nil {
		return nil, problem(
			CodeSource,
			"%s and the workspace have no common commit: was it replaced? Delete the workspace with --force, "+
				"which saves its work",
			w.Target,
		)
	}
	result = &Synced{From: from, To: tip}
	commits, err := r.Git.Output(ctx, "rev-list", "--count", "HEAD.."+tip)
	if err != nil {
		return nil, w.gitFailed(err)
	}
	if _, err := fmt.Sscan(commits, &result.Commits); err != nil {
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

func (w *Workspace) merge(ctx context.Context, r *Room, tip string, result *Synced) error {
	merged, err := r.Git.Run(ctx, git.Call{
		Args: []string{
			"merge", "--quiet", "--no-edit", "-m", "Merge " + w.Target + " into " + w.Branch, tip,
		}, Answers: []int{1, 2},
	})
	if err != nil || merged.Exit == 0 {
		return w.gitFailed(err)
	}
	if !r.hasFile("MERGE_HEAD") {
		return problem(
			CodeUncommitted, "files that %s changed, too, are not committed: commit them, then sync again (%s)",
			w.Target, firstLines(merged.Stderr, 4),
		)
	}
	out, err := r.Git.Output(ctx, "diff", "--name-only", "--diff-filter=U", "-z")
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
func landed(ctx context.Context, r *Room, from, tip, path string) (list []Landed, err error) {
	out, err := r.Git.Output(
		ctx, "log", "--max-count=4", "--no-merges", "--format=%H%x00%an%x00%s", from+".."+tip, "--", path,
	)
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
func (w *Workspace) label(ctx context.Context, r *Room, c *Conflict, tip string) error {
	ours := w.Name
	if w.Purpose != "" {
		ours += " (" + w.Purpose + ")"
	}
	theirs := w.Target
	if len(c.Landed) > 0 {
		theirs += ": " + c.Landed[0].Author + " (" + c.Landed[0].Purpose + ")"
	}
	if err := r.Run(
		ctx, nil, nil, "sh", "-c", labelScript, "sh", c.Path, tip, forSed(ours), forSed(theirs),
	); err != nil {
		return fmt.Errorf("the markers of %s could not be labelled: %w", c.Path, err)
	}
	return nil
}

// labelScript changes the markers, in lines that may end with CR LF. A file that one side has deleted, and a symbolic
// link, has none.
const labelScript = `f=./$1; test -f "$f" && test ! -L "$f" || exit 0
r=$(printf '\r'); new=$f.interlock-$$
sed -e 's/^<<<<<<< HEAD\('"$r"'*\)$/<<<<<<< '"$3"'\1/' \
	-e 's/^>>>>>>> '"$2"'\('"$r"'*\)$/>>>>>>> '"$4"'\1/' < "$f" > "$new" &&
cat "$new" > "$f"; s=$?; rm -f "$new"; exit $s`

// forSed makes a text the replacement of a sed command.
func forSed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `/`, `\/`, `&`, `\&`, "\n", " ").Replace(text)
}
