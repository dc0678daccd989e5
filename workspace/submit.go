package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
)

// Work is what a submission has, as the task of the merge queue describes it.
type Work struct {
	Submission
	// Paths are the changed files, sorted by git.
	Paths []string
	// Message is that of the last commit.
	Message string
}

// submissionID names a submission by its workspace and commit. It is a name by git.CheckName.
func submissionID(name, head string) string {
	const digits = 12
	return name[:min(len(name), git.MaxName-1-digits)] + "-" + head[:digits]
}

// submitRef is where the upstream keeps a submission.
func submitRef(id string) string { return "refs/interlock/sub/" + id }

// Submit pushes the commits of the workspace to the upstream, under a ref of their own. With all it
// commits every file first that git does not ignore, with the message: by default that of the last
// commit if it ends a merge, else the purpose. Without it changed files are refused. The same commit
// is the same submission, however often it is submitted, also when it has landed meanwhile. The caller
// makes the task of the merge queue and calls Queued.
//
// Errors: ErrUncommitted, ErrConflict, ErrNothing, ErrLimit on a full disk, and those of git.
func (w *Workspace) Submit(ctx context.Context, message string, all bool) (_ *Work, err error) {
	defer nameFullDisk(&err)
	r, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	s, err := w.status(ctx, r)
	if err != nil {
		return nil, err
	}
	merging := exists(filepath.Join(w.GitDir(), "MERGE_HEAD"))
	switch {
	case s.Unmerged > 0:
		return nil, problem(CodeConflict, "workspace %s/%s has %s: resolve them and git add them first", w.Repo, w.Name, s)
	case (s.Dirty() || merging) && !all:
		return nil, problem(
			CodeUncommitted, "workspace %s/%s has %s that no commit has: commit them, or submit with --all", w.Repo,
			w.Name, orMerge(s),
		)
	case s.Dirty() || merging:
		if message == "" && merging {
			// The target was merged into the last commit: its message is still what the change is about.
			if message, err = r.Output(ctx, "log", "--max-count=1", "--format=%B", "HEAD", "--"); err != nil {
				return nil, err
			}
		}
		if err := w.commit(ctx, r, message); err != nil {
			return nil, err
		}
	}
	head, err := r.Output(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return nil, err
	}
	base, err := r.Output(ctx, "merge-base", head, s.Tip)
	if err != nil {
		return nil, err
	}
	if base == head {
		i := slices.IndexFunc(w.Submissions, func(s Submission) bool { return s.Head == head })
		if i < 0 {
			return nil, problem(
				CodeNothing, "workspace %s/%s has no commit that %s has not: there is nothing to submit", w.Repo, w.Name,
				w.Target,
			)
		}
		base = w.Submissions[i].Base // it has landed
	}
	work := &Work{Submission: Submission{
		ID: submissionID(w.Name, head), Base: base, Head: head, At: time.Now().UTC().Truncate(time.Second),
	}}
	work.Ref = submitRef(work.ID)
	if work.Paths, err = changedPaths(ctx, r, base, head); err != nil {
		return nil, err
	}
	if work.Message, err = r.Output(ctx, "log", "--max-count=1", "--format=%B", head, "--"); err != nil {
		return nil, err
	}
	work.Message = strings.TrimSpace(work.Message)
	// No +: a ref that is there already has this very commit.
	if _, err := w.remote().Output(
		ctx, "push", "--quiet", "--no-verify", "--end-of-options", w.Upstream, head+":"+work.Ref,
	); err != nil {
		return nil, fmt.Errorf("the commits could not be pushed to %s: %w", w.Upstream, err)
	}
	return work, w.remember(&work.Submission)
}

func orMerge(s *Status) string {
	if s.Dirty() {
		return s.String()
	}
	return "a merge"
}

// remember notes a submission, or its task.
func (w *Workspace) remember(s *Submission) error {
	for i := range w.Submissions {
		if w.Submissions[i].ID == s.ID {
			if s.Task == "" {
				s.Task = w.Submissions[i].Task
			}
			w.Submissions[i] = *s
			return w.write(w.dir)
		}
	}
	w.Submissions = append(w.Submissions, *s)
	return w.write(w.dir)
}

// Queued notes the task of a submission.
func (w *Workspace) Queued(work *Work, task string) error {
	work.Task = task
	return w.remember(&work.Submission)
}

// commit commits all files.
func (w *Workspace) commit(ctx context.Context, r *git.Repository, message string) error {
	if err := w.addAll(ctx, r); err != nil {
		return err
	}
	if message == "" {
		message = w.Purpose
	}
	if message == "" {
		message = "Work of " + w.Name
	}
	_, err := r.Output(ctx, "commit", "--quiet", "--no-verify", "--allow-empty", "-m", message)
	return err
}

func changedPaths(ctx context.Context, r *git.Repository, base, head string) (paths []string, err error) {
	out, err := r.Output(ctx, "diff", "--name-only", "--no-renames", "-z", base, head, "--")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}
