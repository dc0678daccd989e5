package merger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
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
	// Probe does what Admit and Land do, for the target alone. If it works, their failure is the submission's.
	Probe(ctx context.Context, commit string) error
	// Clashes returns those of other heads that conflict with a head, by the attributes of the target's commit.
	Clashes(ctx context.Context, target, head string, others []string) ([]merge.Clash, error)
	// Land returns the landing of a turn. It depends on the turn alone and can be repeated. The error is a
	// *merge.Refusal or *merge.Missing if the submission cannot land.
	Land(ctx context.Context, t merge.Turn) (merge.Landing, error)
	// Sign returns a landing in a signed commit, or as it is where landings are not signed. It cannot be repeated: Land
	// makes the same commit with the signature in the turn. An error is the merger's, and so is one of CanSign.
	Sign(ctx context.Context, l merge.Landing) (merge.Landing, error)
	CanSign(ctx context.Context) error
}

// Ref is the ref of the target: a *merge.Target, or Requests to a forge.
type Ref interface {
	// Read returns where the ref and its fence are.
	Read(ctx context.Context) (merge.Position, error)
	// Identity returns what the repository is known by. One without an id gets one.
	Identity(ctx context.Context) (merge.Identity, error)
	// Claim raises the fence. It can be repeated, and fails with *merge.Stale if it is higher.
	Claim(ctx context.Context, token uint64) (merge.Position, error)
	// Move moves the ref and the fence, durably, and returns the commit of the ref that has m.New: m.New itself, or the
	// merge commit of a forge. It can be repeated. It fails with *merge.Rejected if the repository did not take it, and
	// nothing has moved, and with *Pending if it is to be repeated soon.
	Move(ctx context.Context, m merge.Move) (head string, err error)
	// Taken returns the commit in the history of head that has m.New on m.Old, "" if there is none.
	Taken(ctx context.Context, m merge.Move, head string) (string, error)
	// Revoke sees to it that nothing which a Move has begun moves the ref any more, and returns where it is then.
	Revoke(ctx context.Context, token uint64) (merge.Position, error)
	// Probe tries an empty move from a commit, which never takes effect. Its errors are those of Move.
	Probe(ctx context.Context, old string) error
	// RemoveLocks removes what a killed git has left locked since before a time. It removes nothing, and fails with
	// *merge.Locked, while a git of another merger may run.
	RemoveLocks(ctx context.Context, before time.Time) (removed []string, err error)
}

// Files reads what a repository holds.
type Files interface {
	// List returns the paths of the files right in a folder of a commit. A folder that is not there has none.
	List(ctx context.Context, commit, folder string) ([]string, error)
	// Read returns the contents of files of a commit, by their paths. A path that is no file has none.
	Read(ctx context.Context, commit string, paths []string) (map[string]string, error)
	// Count returns how many files a commit has.
	Count(ctx context.Context, commit string) (int, error)
	// Reverted returns a commit that a head builds on and that was reverted on the target since the head has left it, or
	// nil. paths are those that the head touches.
	Reverted(ctx context.Context, target, head string, paths []string) (*Reverted, error)
	// Tree returns the tree of a commit.
	Tree(ctx context.Context, commit string) (string, error)
	// Kind returns what an object is, such as "commit", and "" for one that is not there.
	Kind(ctx context.Context, id string) (string, error)
	// Base returns the best common ancestor of two commits, and "" if there is none.
	Base(ctx context.Context, a, b string) (string, error)
	// Contains reports whether a commit is another one, or descends from it.
	Contains(ctx context.Context, commit, ancestor string) (bool, error)
	// Added lists the commits that a commit has and another one has not, descendants first, at most 10,000.
	Added(ctx context.Context, commit, other string) ([]string, error)
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

// maxRead bounds each file that Read returns.
const maxRead = 1 << 20

// Read returns the contents of files of a commit, by their paths. A path that is no file, or has a newline, has none.
// Of a file only the first megabyte counts.
func (r *Repository) Read(ctx context.Context, commit string, paths []string) (map[string]string, error) {
	if err := git.CheckObject(commit); err != nil {
		return nil, err
	}
	var in strings.Builder
	var asked []string
	for _, p := range paths {
		if !strings.Contains(p, "\n") {
			asked = append(asked, p)
			fmt.Fprintf(&in, "%s:%s\n", commit, p)
		}
	}
	out, err := r.Git.Run(ctx, git.Call{Args: []string{"cat-file", "--batch"}, In: strings.NewReader(in.String())})
	if err != nil {
		return nil, err
	}
	rest, contents := out.Out, map[string]string{}
	for _, p := range asked {
		line, behind, ok := bytes.Cut(rest, []byte("\n"))
		f := strings.Fields(string(line))
		if rest = behind; ok && bytes.HasSuffix(line, []byte(" missing")) {
			continue
		}
		size := -1
		if len(f) == 3 {
			size, err = strconv.Atoi(f[2])
		}
		if err != nil || size < 0 || len(rest) <= size {
			return nil, fmt.Errorf("git cat-file printed %.200q", line)
		}
		if f[1] == "blob" {
			contents[p] = string(rest[:min(size, maxRead)])
		}
		rest = rest[size+1:]
	}
	return contents, nil
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
	if err == nil && out == "" {
		err = errors.New("git cat-file printed nothing")
	}
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

// Added lists the commits that a commit has and another one has not, descendants first, at most 10,000.
func (r *Repository) Added(ctx context.Context, commit, other string) ([]string, error) {
	for _, id := range []string{commit, other} {
		if err := git.CheckObject(id); err != nil {
			return nil, err
		}
	}
	out, err := r.Git.Output(
		ctx, "rev-list", "--topo-order", "--max-count=10000", "--end-of-options", commit, "^"+other,
	)
	return strings.Fields(out), err
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
