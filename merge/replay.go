package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Replay rebuilds a branch in another repository: it copies the parent of the first turn and the submissions, and
// lands them again in their order, each on the one before. The turns come from a journal, or from [Boundary.Turns].
// It returns the head, which has the same id as the original if the profile is the same. It sets no ref.
//
// to is the boundary of the other repository, and source the git directory with the commits.
func Replay(ctx context.Context, to *Boundary, source git.Repository, turns []Turn) (head string, err error) {
	if len(turns) == 0 {
		return "", errors.New("there is no landing to replay")
	}
	ids := []string{turns[0].Parent}
	for _, t := range turns {
		if err := t.check(); err != nil {
			return "", fmt.Errorf("landing %d: %w", t.Sequence, err)
		}
		ids = append(ids, t.Head)
	}
	if err := copyObjects(ctx, source, to.git, ids); err != nil {
		return "", err
	}
	head = turns[0].Parent
	for i, t := range turns {
		if i > 0 && t.Parent != head {
			if err := to.Carry(ctx, source, t.Parent, head); err == nil {
				head = t.Parent
			} else if ctx.Err() != nil {
				return "", err
			}
		}
		t.Parent = head
		landing, err := to.Land(ctx, t)
		if err != nil {
			return "", fmt.Errorf("landing %d: %w", t.Sequence, err)
		}
		head = landing.Commit
	}
	return head, nil
}

// Carry copies the merge commit of a forge that brought landings up to head to a branch. It fails unless that is what
// the commit is.
func (b *Boundary) Carry(ctx context.Context, from git.Repository, id, head string) error {
	if err := git.CheckObject(id); err != nil {
		return err
	}
	raw, err := from.Run(ctx, git.Call{Args: []string{"cat-file", "commit", id}})
	if err != nil {
		return err
	}
	c, err := parseCommit(raw.Out)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	brought, err := b.readCommit(ctx, head)
	if err != nil {
		return err
	}
	if len(c.parents) != 2 || c.parents[1] != head || c.tree != brought.tree {
		return fmt.Errorf("commit %s is no merge of %s that has its tree", id, head)
	}
	made, err := b.git.Feed(ctx, raw.Out, "hash-object", "-w", "-t", "commit", "--stdin")
	if err == nil && made != id {
		err = fmt.Errorf("commit %s is written as %s", id, made)
	}
	return err
}

// copyObjects copies commits, with all that they reach, from one repository to another. It needs no ref, and no
// transport.
func copyObjects(ctx context.Context, from, to git.Repository, commits []string) error {
	for _, id := range commits {
		if err := git.CheckObject(id); err != nil {
			return err
		}
	}
	pack, packed := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		_, err := from.Run(ctx, git.Call{
			Args: []string{"pack-objects", "--quiet", "--revs", "--stdout"}, Out: packed,
			In: strings.NewReader(strings.Join(commits, "\n") + "\n"),
		})
		packed.CloseWithError(err)
		failed <- err
	}()
	_, err := to.Run(ctx, git.Call{Args: []string{"index-pack", "--stdin"}, In: pack})
	pack.CloseWithError(err)
	if sent := <-failed; sent != nil {
		return sent
	}
	return err
}
