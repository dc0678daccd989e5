package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Finding is one thing that Verify found, about one commit of a branch.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Sequence is 0 for a commit that is no landing.
	Sequence uint64 `json:"sequence,omitempty"`
	Commit   string `json:"commit"`
	// Detail is one sentence.
	Detail string `json:"detail"`
}

// FindingKind is what Verify can find. The list is closed.
type FindingKind string

const (
	// FoundTree is a landing that has another tree than its inputs make under its own profile.
	FoundTree FindingKind = "tree"
	// FoundPath is a landing that changes paths which its submission does not touch. No profile excuses it.
	FoundPath FindingKind = "path"
	// FoundCommit is a landing with the right tree in a commit that the boundary would not write so.
	FoundCommit FindingKind = "commit"
	// FoundRefused is a landing that the boundary refuses under its own profile.
	FoundRefused FindingKind = "refused"
	// FoundForeign is a commit between landings that is none: something moved the branch beside the boundary.
	FoundForeign FindingKind = "foreign"
	// FoundSequence is a landing with a number that does not follow that of the landing before.
	FoundSequence FindingKind = "sequence"
	// FoundRewound is a branch that lacks the last landing: something moved it back, or replaced it.
	FoundRewound FindingKind = "rewound"
	// FoundMissing is a landing with a submission that is gone from the repository. It cannot be checked.
	FoundMissing FindingKind = "missing"
	// FoundProfile is a landing that comes out differently here and now, under another profile than its own. It
	// cannot be judged: repeat Verify where Interlock, git and the drivers have the landing's profile.
	FoundProfile FindingKind = "profile"
	// FoundSignature is a landing with a bad signature, or without one of the keys that it must be signed with.
	FoundSignature FindingKind = "signature"
)

// Damage reports whether the finding shows that the branch is not what the boundary made. FoundMissing and
// FoundProfile show only that it cannot be checked here.
func (k FindingKind) Damage() bool { return k != FoundMissing && k != FoundProfile }

// Report is the result of Verify.
type Report struct {
	// Landings is how many landings were recomputed or could not be.
	Landings int `json:"landings"`
	// Same is how many have the tree and the commit that they should have.
	Same int `json:"same"`
	// Requests is how many of them a forge has merged, in a commit of its own. Each of them is on the branch as it was
	// computed, below that commit, which has the same tree.
	Requests int `json:"requests,omitempty"`
	// OtherProfile is how many were made under another profile than the boundary's. Those that come out alike are
	// counted in Same, too.
	OtherProfile int `json:"other_profile"`
	// Signatures has one for each landing, from VerifySignatures.
	Signatures []Signature `json:"signatures,omitempty"`
	// Findings are in the order of the branch, at most 1,000.
	Findings []Finding `json:"findings,omitempty"`
	// Truncated is set if there are more.
	Truncated bool `json:"truncated,omitempty"`
}

// Damaged reports whether any finding shows damage.
func (r *Report) Damaged() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind.Damage() })
}

const maxFindings = 1000

func (r *Report) add(kind FindingKind, sequence uint64, commit, format string, args ...any) {
	if len(r.Findings) == maxFindings {
		// Damage is never left out for findings that are none.
		other := slices.IndexFunc(r.Findings, func(f Finding) bool { return !f.Kind.Damage() })
		r.Truncated = true
		if !kind.Damage() || other < 0 {
			return
		}
		r.Findings = slices.Delete(r.Findings, other, other+1)
	}
	r.Findings = append(r.Findings, Finding{kind, sequence, commit, fmt.Sprintf(format, args...)})
}

// Verify recomputes the landings on a branch, from the one numbered from up to head, and reports what differs. 0 means
// all. It needs nothing but the repository: each landing's commit has its inputs. progress, if not nil, is called
// after each landing with the number done and the number of all.
func (b *Boundary) Verify(ctx context.Context, head string, from uint64, progress func(done, all int)) (Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Git takes parents from the commit graph where there is one, so a wrong graph has other merge bases.
	if _, err := b.git.Output(ctx, "commit-graph", "verify"); err != nil {
		return Report{}, fmt.Errorf("the commit graph is not that of the commits: write it again with "+
			"git commit-graph write --reachable, and repeat: %w", err)
	}
	line, err := b.line(ctx, head, from)
	if err != nil {
		return Report{}, err
	}
	var r Report
	before := uint64(0)
	for i, c := range line {
		t, profile, ok := c.turn()
		if !ok {
			r.add(FoundForeign, 0, c.id, "the commit is no landing, and lies between landings")
			before = 0
			continue
		}
		if before != 0 && t.Sequence != before+1 && t.Sequence != 1 {
			r.add(FoundSequence, t.Sequence, c.id, "landing %d follows landing %d", t.Sequence, before)
		}
		if i == 0 && from == 0 && t.Sequence != 1 {
			r.add(FoundSequence, t.Sequence, c.id, "the first landing of the branch is number %d: those before it are gone",
				t.Sequence)
		}
		before = t.Sequence
		if err := b.verify(ctx, &r, &c, t, profile); err != nil {
			return r, err
		}
		if progress != nil {
			progress(i+1, len(line))
		}
	}
	return r, nil
}

// VerifyFence adds to a report whether the branch lacks the last landing that its fence names.
func (b *Boundary) VerifyFence(ctx context.Context, r *Report, head string, f Fence) error {
	if f.Commit == "" || f.Sequence == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found, err := b.git.Run(ctx, git.Call{
		Args: []string{"merge-base", "--is-ancestor", "--end-of-options", f.Commit, head}, Answers: []int{1, 128},
	})
	if err == nil && found.Exit != 0 {
		r.add(FoundRewound, f.Sequence, f.Commit, "the last landing was number %d, and the branch does not have it: "+
			"it was rewound or replaced; what it has dropped can be submitted again with --again", f.Sequence)
	}
	return err
}

// line returns the commits of a branch along first parents, from the oldest landing that counts, in their order.
func (b *Boundary) line(ctx context.Context, head string, from uint64) (line []commit, err error) {
	if err := git.CheckObject(head); err != nil {
		return nil, err
	}
	// Git finds the landings of a long history faster than one request for each commit. Those that a forge has merged
	// are second parents.
	grep := []string{"rev-list", "--extended-regexp", "--grep=^" + trailerLanding + ": [0-9]+$"}
	found, err := b.git.Output(ctx, append(slices.Clip(grep), "--first-parent", "--end-of-options", head)...)
	if err != nil {
		return nil, err
	}
	rows, err := b.git.Output(ctx, "rev-list", "--first-parent", "--parents", "--end-of-options", head)
	if err != nil {
		return nil, err
	}
	landings := map[string]bool{}
	for id := range strings.FieldsSeq(found) {
		landings[id] = true
	}
	var list [][]string
	var merged strings.Builder
	for row := range strings.SplitSeq(rows, "\n") {
		f := strings.Fields(row)
		if list = append(list, f); len(f) == 3 && !landings[f[0]] {
			merged.WriteString(f[2] + "\n")
		}
	}
	if merged.Len() > 0 {
		found, err = b.git.Feed(
			ctx, []byte(merged.String()), append(slices.Clip(grep), "--no-walk=unsorted", "--ignore-missing", "--stdin")...,
		)
		if err != nil {
			return nil, err
		}
		for id := range strings.FieldsSeq(found) {
			landings[id] = true
		}
	}
	last := 0
	for i, f := range list {
		if landings[f[0]] || len(f) == 3 && landings[f[2]] {
			last = i + 1
		}
	}
	for _, f := range list[:last] {
		c, err := b.readCommit(ctx, f[0])
		if err != nil {
			return nil, err
		}
		part := []commit{c}
		if _, _, ok := c.turn(); !ok {
			chain, err := b.carried(ctx, &c)
			if err != nil {
				return nil, err
			} else if chain != nil {
				part = chain
			}
		}
		begins := slices.IndexFunc(part, func(c commit) bool { t, _, ok := c.turn(); return ok && t.Sequence == from })
		if begins >= 0 {
			line = append(line, part[:begins+1]...)
			break
		}
		line = append(line, part...)
	}
	slices.Reverse(line)
	// A commit that only mentions a landing is no landing: the line begins with the first real one.
	first := slices.IndexFunc(line, func(c commit) bool { _, _, ok := c.turn(); return ok })
	if first < 0 {
		return nil, nil
	}
	return line[first:], nil
}

// verify recomputes one landing.
func (b *Boundary) verify(ctx context.Context, r *Report, c *commit, t Turn, profile string) error {
	r.Landings++
	if c.carrier != "" {
		r.Requests++
	}
	if profile != b.digest {
		r.OtherProfile++
	}
	strays, err := b.recordedStrays(ctx, c, t)
	if missing, ok := errors.AsType[*Missing](err); ok {
		r.add(FoundMissing, t.Sequence, c.id, "%v", missing)
		return nil
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		r.add(FoundRefused, t.Sequence, c.id, "%v", refusal)
		return nil
	}
	if err != nil {
		return err
	}
	if len(strays) > 0 {
		r.add(FoundPath, t.Sequence, c.id, "the tree changes %s, which the submission does not touch", names(strays))
	}
	landing, err := b.land(ctx, t, profile)
	refusal, refused := errors.AsType[*Refusal](err)
	_, broken := errors.AsType[*Damage](err)
	switch {
	case refused && profile == b.digest:
		r.add(FoundRefused, t.Sequence, c.id, "%v", refusal)
	case refused:
		r.add(FoundProfile, t.Sequence, c.id, "under %s: %v%s", b.digest, refusal, b.otherRules(c))
	case broken:
		r.add(FoundProfile, t.Sequence, c.id, "under %s: %v%s", b.digest, err, b.otherRules(c))
	case err != nil:
		return err
	case landing.Tree != c.tree && profile == b.digest:
		r.add(FoundTree, t.Sequence, c.id, "the tree is %s, and its inputs make %s", c.tree, landing.Tree)
	case landing.Tree != c.tree:
		r.add(FoundProfile, t.Sequence, c.id, "the tree is %s, and %s makes %s%s", c.tree, b.digest, landing.Tree,
			b.otherRules(c))
	case landing.Commit != c.id && profile != b.digest && b.otherRules(c) != "":
		r.add(FoundProfile, t.Sequence, c.id, "the same tree, in another commit%s", b.otherRules(c))
	case landing.Commit != c.id:
		r.add(FoundCommit, t.Sequence, c.id, "the commit should be %s: its text, names or dates differ", landing.Commit)
	default:
		r.Same++
	}
	return nil
}

// recordedStrays checks the tree that a landing has, whatever profile made it.
func (b *Boundary) recordedStrays(ctx context.Context, c *commit, t Turn) ([]string, error) {
	if err := t.check(); err != nil {
		return nil, &Refusal{Reason: ReasonBase}
	}
	parent, err := b.readCommit(ctx, t.Parent)
	if err != nil {
		return nil, err
	}
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
	landed, err := b.compare(ctx, parent.tree, c.tree, maxDrift)
	if err != nil {
		return nil, err
	}
	strays, err := b.strayed(ctx, bases.trees, parent.tree, touched, landed)
	return newOnes(strays, c.renumbered(), landed), err
}

// Turns reads the turns of a branch from its commits, in their order: those from the landing numbered from up to head.
// 0 means all. Replay takes them.
func (b *Boundary) Turns(ctx context.Context, head string, from uint64) (turns []Turn, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line, err := b.line(ctx, head, from)
	if err != nil {
		return nil, err
	}
	for _, c := range line {
		t, _, ok := c.turn()
		if !ok {
			return nil, fmt.Errorf("commit %s lies between landings and is none: it cannot be replayed", c.id)
		}
		turns = append(turns, t)
	}
	return turns, nil
}
