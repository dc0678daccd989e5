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
	for _, t := range turns {
		t.Parent = head
		landing, err := to.Land(ctx, t)
		if err != nil {
			return "", fmt.Errorf("landing %d: %w", t.Sequence, err)
		}
		head = landing.Commit
	}
	return head, nil
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
