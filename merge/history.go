package merge

import "context"

// HistoryEntry is a landing as its commit records it, without a judgement: see [Boundary.Verify].
type HistoryEntry struct {
	Turn
	// Commit and Tree are those of the branch, Profile is the digest in the trailer.
	Commit, Tree, Profile string
	// Author is "NAME <EMAIL>" of the submission's head.
	Author string
}

// History reads the landings of a branch from its commits, in their order: those from the landing numbered from up to
// head. 0 means all. Commits between them that are no landings are left out.
func (b *Boundary) History(ctx context.Context, head string, from uint64) (list []HistoryEntry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line, err := b.line(ctx, head, from)
	if err != nil {
		return nil, err
	}
	for _, c := range line {
		if t, profile, ok := c.turn(); ok {
			list = append(list, HistoryEntry{Turn: t, Commit: c.id, Tree: c.tree, Profile: profile, Author: c.author})
		}
	}
	return list, nil
}
