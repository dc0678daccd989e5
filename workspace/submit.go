package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// On is the submission that the workspace was made on, unless the target has that one's commit.
	On string
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
// Errors: ErrUncommitted, ErrConflict, ErrNothing, ErrObjects, ErrLimit on a full disk, and those of git.
func (w *Workspace) Submit(ctx context.Context, message string, all bool) (_ *Work, err error) {
	defer nameFullDisk(&err)
	r, err := w.Open(ctx, Access{})
	if err != nil {
		return nil, err
	}
	head, err := w.offer(ctx, r, message, all)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	v, err := w.remote(ctx)
	if err != nil {
		return nil, err
	}
	tip, err := w.tip(ctx)
	if err != nil {
		return nil, err
	}
	base, err := v.Output(ctx, "merge-base", head, tip)
	if err != nil {
		return nil, err
	}
	on, err := w.stands(ctx, v, head, tip)
	if err != nil {
		return nil, err
	}
	if on != "" {
		base = w.Start
	}
	if base == head {
		i := slices.IndexFunc(w.Submissions, func(s Submission) bool { return s.Head == head })
		if i < 0 {
			return nil, problem(
				CodeNothing, "workspace %s/%s has no commit that %s has not: there is nothing to submit", w.Repo, w.Name,
				cmp.Or(on, w.Target),
			)
		}
		base = w.Submissions[i].Base // it has landed
	}
	// The merge queue would refuse it, too, but later.
	err = v.Fsck(ctx, w.dir, head, base)
	if unsound, ok := errors.AsType[*git.Unsound](err); ok {
		return nil, problem(
			CodeObjects, "git refuses what workspace %s/%s would submit: make these commits anew, without the fault (%q)",
			w.Repo, w.Name, unsound.Words,
		)
	}
	if err != nil {
		return nil, err
	}
	work := &Work{Submission: Submission{
		ID: submissionID(w.Name, head), Base: base, Head: head, At: time.Now().UTC().Truncate(time.Second),
	}, On: on}
	work.Ref = submitRef(work.ID)
	if work.Paths, err = changedPaths(ctx, v, base, head); err != nil {
		return nil, err
	}
	if work.Message, err = v.Output(ctx, "log", "--max-count=1", "--format=%B", head, "--"); err != nil {
		return nil, err
	}
	work.Message = strings.TrimSpace(work.Message)
	c, err := w.converting(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.sendLarge(ctx, v, c, head, base); err != nil {
		return nil, err
	}
	// No +: a ref that is there already has this very commit.
	if _, err := v.Output(
		ctx, "push", "--quiet", "--no-verify", "--end-of-options", w.Upstream, head+":"+work.Ref,
	); err != nil {
		return nil, fmt.Errorf("the commits could not be pushed to %s: %w", w.Upstream, err)
	}
	return work, w.remember(&work.Submission)
}

// stands returns the submission that a commit still builds on: the one that the workspace was made on, if the commit
// has its commit, and the target has not.
func (w *Workspace) stands(ctx context.Context, v *git.Repository, head, tip string) (on string, err error) {
	if w.On == "" {
		return "", nil
	}
	has := func(commit string) (bool, error) {
		result, err := v.Run(ctx, git.Call{
			Args: []string{"merge-base", "--is-ancestor", "--end-of-options", w.Start, commit}, Answers: []int{1},
		})
		return err == nil && result.Exit == 0, err
	}
	if tip != w.Start || w.Upstream == w.Source && !w.Copied { // else the target was never fetched
		if landed, err := has(tip); err != nil || landed {
			return "", err
		}
	}
	if in, err := has(head); err != nil || !in {
		return "", err
	}
	return w.On, nil
}

// offer commits what is not committed, if it is asked, and brings the commits into the vault. It returns the last one.
func (w *Workspace) offer(ctx context.Context, r *Room, message string, all bool) (head string, err error) {
	s, f, err := w.look(ctx, r, "")
	if err != nil {
		return "", err
	}
	head = s.Head
	merging := r.hasFile("MERGE_HEAD")
	switch {
	case s.Unmerged > 0:
		return "", problem(
			CodeConflict, "workspace %s/%s has %s: resolve them and git add them first", w.Repo, w.Name, s,
		)
	case (s.Dirty() || merging) && !all:
		return "", problem(
			CodeUncommitted, "workspace %s/%s has %s that no commit has: commit them, or submit with --all", w.Repo,
			w.Name, orMerge(s),
		)
	case s.Dirty() || merging:
		if message == "" && merging {
			// The target was merged into the last commit: its message is still what the change is about.
			if message, err = r.Git.Output(ctx, "log", "--max-count=1", "--format=%B", "HEAD", "--"); err != nil {
				return "", w.gitFailed(err)
			}
		}
		if head, err = w.commit(ctx, r, f, message); err != nil {
			return "", err
		}
	}
	if git.CheckObject(head) != nil {
		return "", w.broken("no commit is checked out in %s", w.GitDir())
	}
	if err := r.take(ctx, []string{head}, false); err != nil {
		return "", err
	}
	return head, r.checkCommitted(ctx, head)
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

// commit commits all files, and returns the commit.
func (w *Workspace) commit(ctx context.Context, r *Room, f *facts, message string) (string, error) {
	if err := w.refuseLarge(f.files); err != nil {
		return "", err
	}
	if err := r.unhide(ctx, r.Git, w.shown(f.hidden)); err != nil {
		return "", err
	}
	if err := w.addAll(ctx, r.Git); err != nil {
		return "", err
	}
	if err := r.checkStaged(ctx); err != nil {
		return "", err
	}
	if message == "" {
		message = w.Purpose
	}
	if message == "" {
		message = "Work of " + w.Name
	}
	if _, err := r.Git.Output(ctx, "commit", "--quiet", "--no-verify", "--allow-empty", "-m", message); err != nil {
		return "", w.gitFailed(err)
	}
	head, err := r.Git.Output(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	return head, w.gitFailed(err)
}

func changedPaths(ctx context.Context, r *git.Repository, base, head string) (paths []string, err error) {
	out, err := r.Output(ctx, "diff", "--name-only", "--no-renames", "-z", base, head, "--")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}
