package merge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge/sequence"
)

// MaxPaths is how many paths a submission may change.
const MaxPaths = 10_000

// maxMessage is how many bytes a message may have.
const maxMessage = 64 << 10

// Style is how a submission becomes a commit.
type Style string

const (
	// StyleMerge makes a merge commit of the landing before and the submission's head. The default.
	StyleMerge Style = "merge"
	// StyleSquash makes a commit with one parent, the landing before. Its trailers name the submission's head.
	StyleSquash Style = "squash"
)

// Submission is what an agent hands in.
type Submission struct {
	// ID is the submission's identity, in the form of [git.CheckName].
	ID string
	// Head is the commit to land.
	Head string
	// Base is the commit that the changes are relative to, an ancestor of Head. It is the head of the submission before,
	// where an agent goes on after a squash. Empty means the merge bases in history.
	Base string
	// Style is StyleMerge if empty.
	Style Style
	// Message is the commit's text, in UTF-8, at most 64 KiB. Empty means that of Head.
	Message string
	// Submitted is the time of the submission in seconds since 1970, from the journal. It becomes the author's date.
	Submitted int64
	// Agent and Principal are the names of its author and of the author's credential, for trailers. Empty means none.
	Agent, Principal string
}

// Turn is a submission in its place in line.
type Turn struct {
	Submission
	// Sequence is the number of the landing, from 1.
	Sequence uint64
	// Parent is the commit of the landing before, or the one that the target began with.
	Parent string
	// Staged is the time of the staging in seconds since 1970, from the journal. It becomes the committer's date.
	Staged int64
	// Checks are the names of the checks that the landing needs, for a trailer. Empty means none.
	Checks string
	// Committer is "NAME <EMAIL>" of the commit. Empty means interlock <interlock@localhost>.
	Committer string
	// Signature is that of the commit, from Sign. Land writes it as it is. Empty means none.
	Signature string
}

// Landing is what the boundary made of a turn. Nothing has moved yet: see [Target.Move].
type Landing struct {
	Sequence   uint64 `json:"sequence"`
	Submission string `json:"submission"`
	Commit     string `json:"commit"`
	Tree       string `json:"tree"`
	Parent     string `json:"parent"`
	// Profile is the digest of the profile.
	Profile string `json:"profile"`
	// Signature is that of the turn, or of Sign.
	Signature string `json:"signature,omitempty"`
	// Paths are those in which Tree differs from that of Parent, in order.
	Paths []string `json:"paths"`
	// Added are the files among them that Parent does not have. Lost is how many of its files are gone, and no new file
	// has their content or, but for the ending, their name.
	Added []string `json:"added,omitempty"`
	Lost  int      `json:"lost,omitempty"`
	// Renamed are new files that got another number than they have in the submission. See [Renumber].
	Renamed []sequence.Rename `json:"renamed,omitempty"`
}

// committer is the committer of a landing that names no other.
const committer = "interlock <interlock@localhost>"

// Land computes a landing, and writes its tree and commit. The error is a *[Refusal] if the submission cannot land on
// that parent, a *[Missing] if the repository lacks one of the commits, a *[Damage] if git broke an invariant, and
// an error of git or of the context otherwise. Land can be repeated: it returns the same landing.
func (b *Boundary) Land(ctx context.Context, t Turn) (Landing, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.land(ctx, t, b.digest)
}

func (b *Boundary) land(ctx context.Context, t Turn, profile string) (Landing, error) {
	if err := t.check(); err != nil {
		return Landing{}, err
	}
	parent, err := b.readCommit(ctx, t.Parent)
	if err != nil {
		return Landing{}, err
	}
	head, err := b.readCommit(ctx, t.Head)
	if err != nil {
		return Landing{}, err
	}
	bases, err := b.bases(ctx, t)
	if err != nil {
		return Landing{}, err
	}
	touched, err := b.touched(ctx, bases.trees, head.tree)
	if err != nil {
		return Landing{}, tooMany(err)
	}
	if err := checkPaths(touched); err != nil {
		return Landing{}, err
	}
	folder, err := b.attributesOf(ctx, parent.tree)
	if err != nil {
		return Landing{}, err
	}
	tree, err := b.mergeTrees(ctx, t, bases, &parent, &head, folder)
	if err != nil {
		return Landing{}, err
	}
	tree, renumbered, renamed, err := b.renumber(ctx, parent.tree, tree, touched)
	if err != nil {
		return Landing{}, err
	}
	landed, err := b.compare(ctx, parent.tree, tree, maxDrift)
	if err != nil {
		return Landing{}, err
	}
	strays, err := b.strayed(ctx, bases.trees, parent.tree, touched, landed)
	if err != nil {
		return Landing{}, err
	}
	if len(renumbered) > 0 {
		if err := checkPaths(landed); err != nil {
			return Landing{}, err
		}
		strays = newOnes(strays, renumbered, landed)
	}
	if len(strays) > 0 {
		return Landing{}, &Damage{Submission: t.ID, Parent: t.Parent, Tree: tree, Paths: strays}
	}
	if len(landed) == 0 {
		return Landing{}, &Refusal{Reason: ReasonEmpty}
	}
	b.inherit(tree, folder, landed)
	c := t.commit(tree, &head, profile, renumbered)
	id, err := b.writeCommit(ctx, &c)
	if err != nil {
		return Landing{}, err
	}
	if err := b.graph(ctx, id); err != nil {
		return Landing{}, err
	}
	added, lost := comeAndGone(landed)
	return Landing{
		Sequence: t.Sequence, Submission: t.ID, Commit: id, Tree: tree, Parent: t.Parent, Profile: profile,
		Added: added, Lost: lost, Signature: t.Signature,
		Paths: slices.Sorted(maps.Keys(landed)), Renamed: renamed,
	}, nil
}

// check returns an error for a turn that no repository could land.
func (t *Turn) check() error {
	switch t.Style {
	case "", StyleMerge, StyleSquash:
	default:
		return fmt.Errorf("the style %q is unknown: want %q or %q", t.Style, StyleMerge, StyleSquash)
	}
	switch {
	case t.Sequence == 0:
		return errors.New("the sequence is 0: landings count from 1")
	case t.Submitted < 0 || t.Staged < 0:
		return errors.New("a time is negative: want seconds since 1970")
	case len(t.Message) > maxMessage || strings.ContainsRune(t.Message, 0) || !utf8.ValidString(t.Message):
		return fmt.Errorf("the message is no text of at most %d bytes in UTF-8", maxMessage)
	}
	if err := git.CheckName(t.ID); err != nil {
		return err
	}
	for _, id := range []string{t.Parent, t.Head, t.Base} {
		if id == "" && t.Base == "" {
			continue
		}
		if err := git.CheckObject(id); err != nil {
			return err
		}
	}
	return nil
}

func checkPaths(touched map[string]change) error {
	var bad []string
	for path, c := range touched {
		if !c.deletes() && unsafePath(path) {
			bad = append(bad, path)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return &Refusal{Reason: ReasonPath, Paths: bad[:min(len(bad), maxNamed)]}
}

func tooMany(err error) error {
	if errors.Is(err, errTooMany) {
		return &Refusal{Reason: ReasonLimit}
	}
	return err
}

// baseline is what a merge is relative to: the commits, and their trees. explicit means that history has others.
type baseline struct {
	commits, trees []string
	explicit       bool
}

// bases finds the merge bases of a turn.
func (b *Boundary) bases(ctx context.Context, t Turn) (baseline, error) {
	found, err := b.git.Run(ctx, git.Call{
		Args: []string{"merge-base", "--all", "--end-of-options", t.Parent, t.Head}, Answers: []int{1},
	})
	if err != nil {
		return baseline{}, err
	}
	base := baseline{commits: strings.Fields(string(found.Out))}
	if slices.Contains(base.commits, t.Head) {
		return baseline{}, &Refusal{Reason: ReasonEmpty}
	}
	if t.Base != "" && !slices.Equal(base.commits, []string{t.Base}) {
		inside, err := b.git.Run(ctx, git.Call{
			Args: []string{"merge-base", "--is-ancestor", "--end-of-options", t.Base, t.Head}, Answers: []int{1},
		})
		if err != nil {
			return baseline{}, err
		}
		if inside.Exit != 0 {
			return baseline{}, &Refusal{Reason: ReasonBase}
		}
		base = baseline{commits: []string{t.Base}, explicit: true}
	}
	if len(base.commits) == 0 {
		return baseline{}, &Refusal{Reason: ReasonBase}
	}
	for _, id := range base.commits {
		c, err := b.readCommit(ctx, id)
		if err != nil {
			return baseline{}, err
		}
		base.trees = append(base.trees, c.tree)
	}
	return base, nil
}

// mergeTrees merges, with the attributes in a folder.
func (b *Boundary) mergeTrees(
	ctx context.Context, t Turn, base baseline, parent, head *commit, folder string,
) (tree string, err error) {
	ours, theirs := parent.id, head.id
	if base.explicit {
		if ours, theirs, err = b.reroot(ctx, base.trees[0], parent.tree, head.tree); err != nil {
			return "", err
		}
	}
	repository := b.git
	repository.WorkTree = folder
	result, err := repository.Run(ctx, git.Call{
		Args: []string{"merge-tree", "--write-tree", "-z", "--end-of-options", ours, theirs}, Answers: []int{1},
	})
	if err != nil {
		return "", err
	}
	tree, rest, _ := strings.Cut(string(result.Out), "\x00")
	if err := git.CheckObject(tree); err != nil {
		return "", fmt.Errorf("git merge-tree printed no tree: %w", err)
	}
	if result.Exit == 0 {
		return tree, nil
	}
	conflicts, err := parseConflicts(rest)
	if err != nil {
		return "", err
	}
	return "", b.refuse(ctx, t, conflicts)
}

// reroot writes commits that give two trees the base of our choice, since merge-tree takes its bases from history
// before git 2.40. They are never reachable from a ref.
func (b *Boundary) reroot(ctx context.Context, base, ours, theirs string) (oursID, theirsID string, err error) {
	root := commit{tree: base, author: committer, committer: committer, message: "base\n"}
	if root.id, err = b.writeCommit(ctx, &root); err != nil {
		return "", "", err
	}
	side := func(tree, message string) (string, error) {
		c := commit{tree: tree, parents: []string{root.id}, author: committer, committer: committer, message: message}
		return b.writeCommit(ctx, &c)
	}
	// The messages keep the two commits apart when the trees are equal.
	if oursID, err = side(ours, "ours\n"); err == nil {
		theirsID, err = side(theirs, "theirs\n")
	}
	return oursID, theirsID, err
}
