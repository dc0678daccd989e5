package merge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// MaxNewBytes is how many bytes of objects, as stored, a submission may add to the repository.
const MaxNewBytes = 256 << 20

// Admit checks a turn when the submission is handed in, before it stands in line. Its Parent is where the target is
// now. It finds what no later target changes: commits or files that were not pushed, a submission that is too large,
// and paths or a history that can never land. It returns the paths that the submission touches, in order, at most
// [MaxPaths]; a rename has both of its names. It merges nothing, so a conflict is not among its answers; the errors are
// those of Land.
func (b *Boundary) Admit(ctx context.Context, t Turn) (paths []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.admit(ctx, t)
}

func (b *Boundary) admit(ctx context.Context, t Turn) (paths []string, err error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if _, err := b.readCommit(ctx, t.Parent); err != nil {
		return nil, err
	}
	size, err := b.git.Run(ctx, git.Call{
		Args: []string{"rev-list", "--objects", "--disk-usage", "--end-of-options", t.Head, "^" + t.Parent},
	})
	if failure, ok := errors.AsType[*git.Error](err); ok && failure.Exit == 128 {
		if id, err := b.missingObject(ctx, failure.Stderr); err != nil || id != "" {
			return nil, errors.Join(err, missing(id))
		}
		if !failure.Machine() {
			return nil, objects(failure.Stderr)
		}
	}
	if err != nil {
		return nil, err
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(size.Out)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("git rev-list printed %.200q", size.Out)
	}
	if bytes > MaxNewBytes {
		return nil, &Refusal{Reason: ReasonSize}
	}
	err = b.git.Fsck(ctx, b.folder.Path(), t.Head, t.Parent)
	if unsound, ok := errors.AsType[*git.Unsound](err); ok {
		// Where the fault is the name of a path, our own words name it.
		if _, err := b.changes(ctx, t); isPath(err) {
			return nil, err
		}
		return nil, objects(unsound.Words)
	}
	if err != nil {
		return nil, err
	}
	touched, err := b.changes(ctx, t)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(touched)), nil
}

// changes returns what a submission touches, and refuses what it must not touch.
func (b *Boundary) changes(ctx context.Context, t Turn) (map[string]change, error) {
	head, err := b.readCommit(ctx, t.Head)
	if err != nil {
		return nil, err
	}
	bases, err := b.bases(ctx, t)
	if err != nil {
		return nil, err
	}
	touched, err := b.touched(ctx, bases.trees, head.tree)
	if err != nil {
		return nil, tooMany(err)
	}
	return touched, checkPaths(touched)
}

func isPath(err error) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && r.Reason == ReasonPath
}

// objects refuses a submission with git's words.
func objects(words string) error { return &Refusal{Reason: ReasonObjects, Detail: git.Words(words)} }

// missing is the error of an object that is not there, and nil for none.
func missing(id string) error {
	if id == "" {
		return nil
	}
	return &Missing{id}
}

// missingObject returns the object that git could not read because it is not there, and "" if all it names are there.
func (b *Boundary) missingObject(ctx context.Context, complaint string) (string, error) {
	id := objectIn(complaint)
	if id == "" {
		return "", nil
	}
	found, err := b.git.Feed(ctx, []byte(id+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil || !strings.HasSuffix(found, " missing") {
		return "", err
	}
	return id, nil
}

// objectIn finds an id in a complaint about an object.
func objectIn(complaint string) string {
	if !strings.Contains(complaint, "missing") && !strings.Contains(complaint, "bad") &&
		!strings.Contains(complaint, "unable to read") && !strings.Contains(complaint, "Could not read") {
		return ""
	}
	for _, word := range strings.FieldsFunc(complaint, func(c rune) bool { return strings.ContainsRune(" \n'\"():", c) }) {
		if git.CheckObject(word) == nil {
			return word
		}
	}
	return ""
}

// Clash is another submission that conflicts with one.
type Clash struct {
	// Head is that of the other submission.
	Head string `json:"head"`
	// Paths are those in conflict, in order, at most 1,000.
	Paths []string `json:"paths"`
}

// Clashes merges a submission's head with those of others, pair by pair, and returns the others that it conflicts
// with, in their order. It is a forecast for submissions that wait: what lands in between can add conflicts or remove
// them. The attributes are those of parent, where the target is now. Others that share no history, or that are
// contained in one another, conflict with nothing.
func (b *Boundary) Clashes(ctx context.Context, parent, head string, others []string) ([]Clash, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	target, err := b.readCommit(ctx, parent)
	if err != nil {
		return nil, err
	}
	var in strings.Builder
	var asked []string
	for _, other := range others {
		for _, id := range []string{head, other} {
			if _, err := b.readCommit(ctx, id); err != nil {
				return nil, err
			}
		}
		// A pair without a base ends merge-tree.
		found, err := b.git.Run(ctx, git.Call{
			Args: []string{"merge-base", "--end-of-options", head, other}, Answers: []int{1},
		})
		if err != nil {
			return nil, err
		}
		if found.Exit == 0 {
			fmt.Fprintf(&in, "%s %s\n", head, other)
			asked = append(asked, other)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	repository := b.git
	if repository.WorkTree, err = b.attributesOf(ctx, target.tree); err != nil {
		return nil, err
	}
	out, err := repository.Feed(
		ctx, []byte(in.String()), "merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages",
	)
	if err != nil {
		return nil, err
	}
	return parseClashes(out, asked)
}

// parseClashes reads, for each pair, "1" for a clean merge or "0", the tree, the paths in conflict and an empty field.
func parseClashes(out string, asked []string) (clashes []Clash, err error) {
	fields := strings.Split(out, "\x00")
	for _, other := range asked {
		if len(fields) < 3 || git.CheckObject(fields[1]) != nil {
			return nil, fmt.Errorf("git merge-tree answered fewer than %d pairs", len(asked))
		}
		clean := fields[0] == "1"
		fields = fields[2:]
		end := slices.Index(fields, "")
		if end < 0 {
			return nil, errors.New("git merge-tree ended within an answer")
		}
		if !clean {
			paths := slices.Compact(slices.Sorted(slices.Values(fields[:end])))
			clashes = append(clashes, Clash{other, paths[:min(len(paths), maxNamed)]})
		}
		fields = fields[end+1:]
	}
	return clashes, nil
}
