package merge

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Outcome is how a merge commit of some history compares with what the boundary makes of its parents. The list is
// closed.
type Outcome string

const (
	// OutcomeSame is a merge with the boundary's tree.
	OutcomeSame Outcome = "same"
	// OutcomeConflict is a merge that the boundary would have returned: its author resolved a conflict.
	OutcomeConflict Outcome = "conflict"
	// OutcomeOneSide is a merge with the tree of one parent, where the other has changes: git merge -s ours, or a
	// resolution that dropped a side.
	OutcomeOneSide Outcome = "one_side"
	// OutcomeEdited is a merge in which its author changed more than both sides did.
	OutcomeEdited Outcome = "edited"
	// OutcomeUnrelated is a merge of histories without a common commit.
	OutcomeUnrelated Outcome = "unrelated"
	// OutcomeNone is a commit that is no merge of two parents: one parent, or more than two.
	OutcomeNone Outcome = "none"
)

// Comparison is the result of Compare.
type Comparison struct {
	Commit  string  `json:"commit"`
	Outcome Outcome `json:"outcome"`
	// Tree is what the boundary makes of the parents. Empty if it makes nothing.
	Tree string `json:"tree,omitempty"`
	// Paths are those in conflict, or those in which the commit's tree differs from Tree. In order, at most 1,000.
	Paths []string `json:"paths,omitempty"`
}

// Compare merges the parents of a merge commit that anybody made, and compares the trees. It shows what the boundary
// would have done with a history: before a team adopts it, and whenever git is replaced. The attributes are those of
// the first parent.
func (b *Boundary) Compare(ctx context.Context, id string) (Comparison, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	result := Comparison{Commit: id, Outcome: OutcomeNone}
	c, err := b.readCommit(ctx, id)
	if err != nil || len(c.parents) != 2 {
		return result, err
	}
	parent, err := b.readCommit(ctx, c.parents[0])
	if err != nil {
		return Comparison{}, err
	}
	head, err := b.readCommit(ctx, c.parents[1])
	if err != nil {
		return Comparison{}, err
	}
	t := Turn{Submission: Submission{ID: id, Head: head.id}, Parent: parent.id}
	base, err := b.bases(ctx, t)
	refusal, refused := errors.AsType[*Refusal](err)
	switch {
	case refused && refusal.Reason == ReasonBase:
		result.Outcome = OutcomeUnrelated
		return result, nil
	case refused: // the second parent is in the history of the first
		result.Tree = parent.tree
	case err != nil:
		return Comparison{}, err
	default:
		folder, err := b.attributesOf(ctx, parent.tree)
		if err != nil {
			return Comparison{}, err
		}
		result.Tree, err = b.mergeTrees(ctx, t, base, &parent, &head, folder)
		if refusal, refused := errors.AsType[*Refusal](err); refused {
			result.Outcome, result.Paths = OutcomeConflict, refusal.Paths
			return result, nil
		}
		if err != nil {
			return Comparison{}, err
		}
	}
	differing, err := b.compare(ctx, result.Tree, c.tree, maxDrift)
	if err != nil {
		return Comparison{}, err
	}
	result.Paths = slices.Sorted(maps.Keys(differing))
	result.Paths = result.Paths[:min(len(result.Paths), maxNamed)]
	switch {
	case len(differing) == 0:
		result.Outcome = OutcomeSame
	case c.tree == parent.tree || c.tree == head.tree:
		result.Outcome = OutcomeOneSide
	default:
		result.Outcome = OutcomeEdited
	}
	return result, nil
}
