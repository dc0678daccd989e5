package merger

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
)

// Boundary computes landings: a *merge.Boundary.
type Boundary interface {
	// Admit finds what keeps a turn from ever landing, such as commits that were not pushed, and returns the paths
	// that the submission touches. Its errors are those of Land.
	Admit(ctx context.Context, t merge.Turn) (paths []string, err error)
	// Clashes returns those of other heads that conflict with a head, by the attributes of the target's commit.
	Clashes(ctx context.Context, target, head string, others []string) ([]merge.Clash, error)
	// Land returns the landing of a turn. It depends on the turn alone and can be repeated. The error is a
	// *merge.Refusal or *merge.Missing if the submission cannot land.
	Land(ctx context.Context, t merge.Turn) (merge.Landing, error)
}

// Ref is the ref of the target: a *merge.Target.
type Ref interface {
	// Read returns where the ref and its fence are.
	Read(ctx context.Context) (merge.Position, error)
	// Claim raises the fence. It can be repeated, and fails with *merge.Stale if it is higher.
	Claim(ctx context.Context, token uint64) (merge.Position, error)
	// Move moves the ref and the fence, both or none, durably. It can be repeated.
	Move(ctx context.Context, m merge.Move) error
	// RemoveLocks removes what a killed git has left locked since before a time. It removes nothing, and fails with
	// *merge.Locked, while a git of another merger may run.
	RemoveLocks(ctx context.Context, before time.Time) (removed []string, err error)
}

// Files reads what a repository holds.
type Files interface {
	// List returns the paths of the files right in a folder of a commit. A folder that is not there has none.
	List(ctx context.Context, commit, folder string) ([]string, error)
	// Tree returns the tree of a commit.
	Tree(ctx context.Context, commit string) (string, error)
	// Kind returns what an object is, such as "commit", and "" for one that is not there.
	Kind(ctx context.Context, id string) (string, error)
	// Base returns the best common ancestor of two commits, and "" if there is none.
	Base(ctx context.Context, a, b string) (string, error)
	// Contains reports whether a commit is another one, or descends from it.
	Contains(ctx context.Context, commit, ancestor string) (bool, error)
	// Diff returns the changes of files between two commits, as a patch.
	Diff(ctx context.Context, from, to string, paths []string) (string, error)
}

// Repository is Files of a git directory.
type Repository struct{ Git git.Repository }

// List returns the paths of the files right in a folder of a commit.
func (r *Repository) List(ctx context.Context, commit, folder string) ([]string, error) {
	if err := git.CheckObject(commit); err != nil {
		return nil, err
	}
	args := []string{"ls-tree", "--name-only", "-z", "--full-tree", commit}
	if folder != "." {
		args = append(args, "--", folder+"/")
	}
	out, err := r.Git.Output(ctx, args...)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(out, func(c rune) bool { return c == 0 }), nil
}

// Tree returns the tree of a commit.
func (r *Repository) Tree(ctx context.Context, commit string) (string, error) {
	if err := git.CheckObject(commit); err != nil {
		return "", err
	}
	return r.Git.Output(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
}

// Kind returns what an object is, and "" for one that is not there.
func (r *Repository) Kind(ctx context.Context, id string) (string, error) {
	if err := git.CheckObject(id); err != nil {
		return "", err
	}
	out, err := r.Git.Feed(ctx, []byte(id+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil || strings.HasSuffix(out, " missing") {
		return "", err
	}
	return strings.TrimSpace(out), nil
}

// Base returns the best common ancestor of two commits, and "" if there is none.
func (r *Repository) Base(ctx context.Context, a, b string) (string, error) {
	out, err := r.ask(ctx, "merge-base", a, b)
	return strings.TrimSpace(string(out.Out)), err
}

// Contains reports whether a commit is another one, or descends from it.
func (r *Repository) Contains(ctx context.Context, commit, ancestor string) (bool, error) {
	out, err := r.ask(ctx, "merge-base", ancestor, commit, "--is-ancestor")
	return err == nil && out.Exit == 0, err
}

// ask runs a command about two commits that answers no with exit code 1.
func (r *Repository) ask(ctx context.Context, command, a, b string, options ...string) (git.Result, error) {
	for _, id := range []string{a, b} {
		if err := git.CheckObject(id); err != nil {
			return git.Result{}, err
		}
	}
	args := append(append([]string{command}, options...), "--end-of-options", a, b)
	return r.Git.Run(ctx, git.Call{Args: args, Answers: []int{1}})
}

// Diff returns the changes of files between two commits, as a patch.
func (r *Repository) Diff(ctx context.Context, from, to string, paths []string) (string, error) {
	for _, id := range []string{from, to} {
		if err := git.CheckObject(id); err != nil {
			return "", err
		}
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--end-of-options", from, to, "--"}
	return r.Git.Output(ctx, append(args, paths...)...)
}

// refusal returns why a submission cannot land, or nil if the error is another one.
func refusal(err error) *merge.Refusal {
	if r, ok := errors.AsType[*merge.Refusal](err); ok {
		return r
	}
	if m, ok := errors.AsType[*merge.Missing](err); ok {
		return &merge.Refusal{Reason: whyMissing, Paths: []string{m.Object}}
	}
	if r, ok := errors.AsType[*merge.RenumberError](err); ok {
		return &merge.Refusal{Reason: merge.ReasonRenumber, Paths: []string{r.Sequence}, Detail: r.Error()}
	}
	return nil
}

// whyMissing is our reason for a submission with a commit that the repository lacks.
const whyMissing merge.Reason = "missing"
