package merger

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Reverted is a commit that a submission builds on, and that was reverted on the target.
type Reverted struct {
	Commit string
	// By is the commit that reverts it. Empty if its files are as before, and no message names it.
	By string
}

var (
	reverts    = regexp.MustCompile(`(?i)\breverts commit ([0-9a-f]{40}(?:[0-9a-f]{24})?)\b`)
	squashHead = regexp.MustCompile(`(?m)^Interlock-Head: ([0-9a-f]{40,64})$`)
)

const (
	// maxUnseen is how many commits of the target, since the submission left it, are looked at for reverts.
	maxUnseen = 500
	// maxOwn is how many commits of the submission count as those of its branch.
	maxOwn = 2000
	// maxParts is how many landings of the branch are compared with the target.
	maxParts = 20
)

// mainCommit is a commit on the target that the submission has not seen.
type mainCommit struct {
	id, first, message string
	// part is the commit of a branch that it has landed.
	part string
}

// Reverted returns a commit that a head builds on and that was reverted on the target since the head has left it, or
// nil. That is one of the head's own branch, or one that changes the same paths. It is found by the message that git
// revert writes, or because all its files are as before. A revert that was reverted is none.
//
// git sees such commits as landed: it merges what is newer alone, in silence.
func (r *Repository) Reverted(ctx context.Context, target, head string, paths []string) (*Reverted, error) {
	for _, id := range []string{target, head} {
		if err := git.CheckObject(id); err != nil {
			return nil, err
		}
	}
	unseen, err := r.unseen(ctx, target, head)
	if err != nil || len(unseen) == 0 {
		return nil, err
	}
	list, err := r.Git.Output(ctx, "rev-list", fmt.Sprintf("--max-count=%d", maxOwn), "--end-of-options", head)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for id := range strings.FieldsSeq(list) {
		own[id] = true
	}
	undone := map[string]bool{} // reverts that were reverted: the list has the newest first
	for _, c := range unseen {
		if own[c.part] {
			continue // the branch has made the revert itself
		}
		for _, m := range reverts.FindAllStringSubmatch(c.message, -1) {
			id := m[1]
			if undone[c.id] || undone[c.part] {
				undone[id] = false
				continue
			}
			undone[id] = true
			i := slices.IndexFunc(unseen, func(o mainCommit) bool { return o.id == id })
			mine := i >= 0 && own[unseen[i].part]
			if i < 0 && own[id] {
				if mine, err = r.touches(ctx, id, paths); err != nil {
					return nil, err
				}
			}
			if mine {
				return &Reverted{id, c.id}, nil
			}
		}
	}
	parts := 0
	for _, c := range unseen {
		if c.part == "" || !own[c.part] {
			continue
		}
		if parts++; parts > maxParts {
			break
		}
		if gone, err := r.isGone(ctx, c, target, head); err != nil || gone {
			return &Reverted{Commit: c.id}, err
		}
	}
	return nil, nil
}

// unseen lists the commits on the first-parent line of the target that a head does not have, the newest first.
func (r *Repository) unseen(ctx context.Context, target, head string) (all []mainCommit, err error) {
	out, err := r.Git.Output(
		ctx, "log", "-z", "--first-parent", fmt.Sprintf("--max-count=%d", maxUnseen), "--format=%H%n%P%n%B",
		"--end-of-options", target, "^"+head,
	)
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(out, "\x00") {
		f := strings.SplitN(text, "\n", 3)
		if len(f) < 3 {
			continue
		}
		c := mainCommit{id: f[0], message: f[2]}
		parents := strings.Fields(f[1])
		if len(parents) > 0 {
			c.first = parents[0]
		}
		if len(parents) > 1 {
			c.part = parents[1]
		} else if m := squashHead.FindStringSubmatch(c.message); m != nil {
			c.part = m[1]
		}
		all = append(all, c)
	}
	return all, nil
}

// touches reports whether a commit changes one of the paths, against its first parent.
func (r *Repository) touches(ctx context.Context, id string, paths []string) (bool, error) {
	out, err := r.Git.Output(ctx, "diff-tree", "-r", "-z", "--root", "-m", "--first-parent", "--name-only",
		"--no-commit-id", "--no-renames", "--end-of-options", id)
	if err != nil {
		return false, err
	}
	for p := range strings.SplitSeq(out, "\x00") {
		if slices.Contains(paths, p) {
			return true, nil
		}
	}
	return false, nil
}

// isGone reports whether all files that a landing has changed are on the target as they were before it, and not so in
// the head.
func (r *Repository) isGone(ctx context.Context, c mainCommit, target, head string) (bool, error) {
	if c.first == "" {
		return false, nil
	}
	var differ [3]map[string]bool // from before the landing to the landing, the target and the head
	for i, to := range []string{c.id, target, head} {
		// The differences are listed whole: a command takes only so many paths.
		out, err := r.Git.Output(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", c.first, to)
		if err != nil {
			return false, err
		}
		differ[i] = map[string]bool{}
		for p := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			differ[i][p] = p != ""
		}
	}
	kept := false
	for p := range differ[0] {
		if differ[1][p] {
			return false, nil
		}
		kept = kept || differ[2][p]
	}
	return kept, nil
}

// Count returns how many files a commit has.
func (r *Repository) Count(ctx context.Context, commit string) (int, error) {
	if err := git.CheckObject(commit); err != nil {
		return 0, err
	}
	out, err := r.Git.Output(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
	return strings.Count(out, "\x00"), err
}
