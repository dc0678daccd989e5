package merger

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
)

// Origin tells which repository has a name: the first one that a merger was started with.
type Origin struct {
	// ID is that of merge.Identity.
	ID string `json:"id"`
	// Root is the first commit of the target of that merger.
	Root string `json:"root"`
}

// AnotherRepository reports that the submissions and verdicts of a name belong to another repository.
type AnotherRepository struct {
	Name Name
	// Why is a sentence.
	Why string
}

// Error names the difference, and what to do.
func (e *AnotherRepository) Error() string {
	return fmt.Sprintf(
		"%s: %s; if it is another repository, give it another name: `interlock merge serve OTHER/%s`, and `interlock "+
			"workspace new --repo-name OTHER`; if it is the same one, and its history was rewritten or its refs were lost, "+
			"start the merger with --adopt", e.Name, e.Why, e.Name.Target,
	)
}

// Prepare makes sure that the merger may serve its target, as Run does each time before it takes the seat: its
// credential is a merger's, and the repository is the one that the name stands for. Those errors
// are Hopeless; after another one, such as of a key that cannot sign, Run tries again.
func (m *Merger) Prepare(ctx context.Context) error {
	here, err := m.Target.Identity(ctx)
	if err != nil {
		return err
	}
	key := m.Name.repositoryKey()
	// It is written again each time: that proves the right to do so.
	if _, err := m.Client.Update(ctx, key, func(d interlock.Document) (interlock.Write, error) {
		next := Origin{here.ID, here.Root}
		var known Origin
		if !d.Absent && json.Unmarshal(d.Body, &known) == nil && known.ID != "" && !m.Adopt {
			if known.ID != here.ID {
				return interlock.Write{}, &AnotherRepository{m.Name, fmt.Sprintf(
					"the repository has the id %.12s, and the merge queue of this name is that of %.12s", here.ID, known.ID,
				)}
			}
			next = known
		}
		return client.Put(key, encode(next)), nil
	}); err != nil {
		return err
	}
	d, err := m.Client.Document(ctx, key)
	if err != nil {
		return err
	}
	m.principal, m.repository = d.Principal, here.ID
	if !m.Adopt {
		if err := m.compareHistory(ctx); err != nil {
			return err
		}
	}
	return m.Boundary.CanSign(ctx)
}

// compareHistory returns a *AnotherRepository unless the last landing is in the target's history. One that was taken
// back is in the fence.
func (m *Merger) compareHistory(ctx context.Context) error {
	var t Target
	if found, err := read(ctx, m.Client, m.Name.Key(), &t); err != nil || !found || t.Head == "" {
		return err
	}
	at, err := m.Target.Read(ctx)
	if err != nil || t.Head == at.Head || t.Head == at.Fence.Commit {
		return err
	}
	if t.Staged != nil && (t.Staged.New == at.Head || t.Staged.New == at.Fence.Commit) {
		return nil
	}
	kind, err := m.Files.Kind(ctx, t.Head)
	if err != nil {
		return err
	}
	if kind == "commit" {
		if in, err := m.Files.Contains(ctx, at.Head, t.Head); err != nil || in {
			return err
		}
	}
	return &AnotherRepository{m.Name, fmt.Sprintf(
		"commit %.12s, where landing %d has left it, is not in the history of %s", t.Head, t.Sequence, m.Name.Ref(),
	)}
}

// CheckRepository returns a *AnotherRepository if the merge queue of a name is for another repository than the one with
// an id and commits. Without an id, only the first commit is compared. It asks nothing of a queue that had no merger.
func CheckRepository(
	ctx context.Context, c Reader, name Name, id string, has func(commit string) (bool, error),
) error {
	var known Origin
	if found, err := read(ctx, c, name.repositoryKey(), &known); err != nil || !found || known.ID == "" {
		return err
	}
	switch {
	case id != "" && id != known.ID:
		return &AnotherRepository{name, fmt.Sprintf(
			"the upstream has the id %.12s, and the merge queue of this name is that of %.12s", id, known.ID,
		)}
	case id == "" && known.Root != "":
		if in, err := has(known.Root); err != nil || in {
			return err
		}
		return &AnotherRepository{name, fmt.Sprintf("the upstream lacks the first commit of its target, %.12s", known.Root)}
	}
	return nil
}

var _ Ref = (*merge.Target)(nil)
