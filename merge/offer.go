package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Where a forge forbids each push to a branch, it merges by itself what a merger offers, later or never:
//
//	Offer(m)       branch of the landing: - -> New, and fence: mine -> mine with the offer, both or none
//	   the forge   the target: Old -> New, or Old -> a merge commit of Old and New with New's tree
//	Taken(m, head) finds that in the target's history
//	Settle(m, …)   fence: mine with the offer -> the landing, and the branch: New -> -, both or none
//	Revoke()       fence: mine with the offer -> mine, and the branch: New -> -, both or none
//
// Each offer has a branch of its own, so that a forge has one request for it, and a merger that takes over goes on with
// it. What was revoked may be offered again, as another branch. A merger pushes the branch only with its own fence, so
// an earlier one that was stopped offers nothing any more.
//
// A forge may also make a commit with one parent of it (squash), or new commits (rebase). Neither counts: the commits
// of the landing, which were computed, checked and signed, would not be on the branch for Verify to compute again.

// offerFolder has the branches of all offers to all targets.
const offerFolder = "refs/heads/interlock/land/"

// OfferRef returns the branch of an offer to a target, such as refs/heads/interlock/land/main/8c1f…-17.
func OfferRef(target, offer string) string {
	return offerFolder + strings.TrimPrefix(target, "refs/heads/") + "/" + offer
}

// Offer pushes a landing to a branch of its own, and returns the branch. It can be repeated, and goes on with that
// of an earlier merger. The error is a *[Stale] if the ref or the fence is elsewhere, a *[Rejected] if the repository
// does not take the commits, and another one otherwise.
func (t *Target) Offer(ctx context.Context, m Move) (branch string, err error) {
	if t.Remote == "" || !strings.HasPrefix(t.Ref, "refs/heads/") {
		return "", fmt.Errorf("%s is no branch of a remote repository: no request can be made for it", t.Ref)
	}
	if err := git.CheckObject(m.New); err != nil {
		return "", err
	}
	p, err := t.Read(ctx)
	switch {
	case err != nil:
		return "", err
	case p.Fence.Token != m.Token:
		return "", t.staleFence(m.Token, p)
	case p.Head != m.Old:
		return "", &Stale{t.Ref, m.Old, p.Head}
	}
	next := p.Fence
	next.Offer = fmt.Sprintf("%s-%d", m.New, m.Token)
	if commit, _, _ := strings.Cut(p.Fence.Offer, "-"); commit == m.New {
		next.Offer = p.Fence.Offer
	}
	branch = OfferRef(t.Ref, next.Offer)
	at, err := t.refs(ctx, branch)
	if err != nil || next == p.Fence && at[branch] == m.New {
		return branch, err
	}
	if p.Fence.Offer != "" {
		// Others have moved the branch, or an offer was never revoked. A push compares only what it changes.
		if p, err = t.Revoke(ctx, m.Token); err != nil {
			return "", err
		}
		if at, err = t.refs(ctx, branch); err != nil {
			return "", err
		}
	}
	if err := t.pushLarge(ctx, m.Old, m.New); err != nil {
		return "", err
	}
	fence := step{FenceRef(t.Ref), p.fence, ""}
	if fence.to, err = t.writeFence(ctx, next); err != nil {
		return "", err
	}
	none := strings.Repeat("0", len(p.Head))
	return branch, t.transact(ctx, step{branch, cmp.Or(at[branch], none), m.New}, fence)
}

// withdraw moves the fence on from its offer, and removes the offer's branch.
func (t *Target) withdraw(ctx context.Context, token uint64, change func(f *Fence)) (Position, error) {
	p, err := t.Read(ctx)
	if err != nil {
		return p, err
	}
	if p.Fence.Token != token {
		return p, t.staleFence(token, p)
	}
	next := p.Fence
	change(&next)
	next.Offer = ""
	if next == p.Fence {
		return p, nil
	}
	fence := step{FenceRef(t.Ref), p.fence, ""}
	if fence.to, err = t.writeFence(ctx, next); err != nil {
		return p, err
	}
	steps := []step{fence}
	if p.Fence.Offer != "" {
		branch := OfferRef(t.Ref, p.Fence.Offer)
		refs, err := t.refs(ctx, branch)
		if err != nil {
			return p, err
		}
		if at := refs[branch]; at != "" { // a forge may remove the branch by itself
			steps = append(steps, step{branch, at, strings.Repeat("0", len(at))})
		}
	}
	if err := t.transact(ctx, steps...); err != nil {
		return p, err
	}
	return t.Read(ctx)
}

// Revoke takes back what is offered, if anything is, and returns where the target is then. From here on no forge takes
// it: its branch is gone, and no merger with an earlier fence makes it again. The forge may have taken it before.
func (t *Target) Revoke(ctx context.Context, token uint64) (Position, error) {
	return t.withdraw(ctx, token, func(*Fence) {})
}

// Settle notes a landing that a forge has taken as head, and removes its branch.
func (t *Target) Settle(ctx context.Context, m Move, head string) error {
	_, err := t.withdraw(ctx, m.Token, func(f *Fence) { f.Sequence, f.Commit = m.Sequence, head })
	return err
}

// Taken returns the commit in the history of head that brought an offer to the target: the offer itself, or a merge
// commit of m.Old and the offer with the offer's tree. It is "" if there is none. Others may have committed behind it.
func (t *Target) Taken(ctx context.Context, m Move, head string) (string, error) {
	for _, id := range []string{m.Old, m.New, head} {
		if git.CheckObject(id) != nil || head == m.Old {
			return "", nil
		}
	}
	there, err := t.haveCommits(ctx, m.Old, m.New, head)
	if err == nil && !there && t.Remote != "" {
		if _, err := t.Repository.Output(
			ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", t.Remote, t.Ref,
		); err != nil {
			return "", err
		}
		there, err = t.haveCommits(ctx, m.Old, m.New, head)
	}
	if err != nil || !there {
		return "", err
	}
	out, err := t.Repository.Output(ctx, "rev-list", "--first-parent", "--parents", "--end-of-options", head, "^"+m.Old)
	if err != nil || out == "" {
		return "", err
	}
	lines := strings.Split(out, "\n")
	first := strings.Fields(lines[len(lines)-1]) // the commit on m.Old, with its parents
	if len(first) < 2 || first[1] != m.Old {
		return "", nil
	}
	if slices.ContainsFunc(lines, func(line string) bool { return line == m.New || strings.HasPrefix(line, m.New+" ") }) {
		return m.New, nil
	}
	if len(first) != 3 || first[2] != m.New {
		return "", nil
	}
	trees, err := t.Repository.Output(ctx, "rev-parse", "--verify", first[0]+"^{tree}")
	if err != nil {
		return "", err
	}
	own, err := t.Repository.Output(ctx, "rev-parse", "--verify", m.New+"^{tree}")
	if err != nil {
		return "", err
	}
	if trees != own {
		return "", nil
	}
	return first[0], nil
}

// haveCommits reports whether the repository has some commits.
func (t *Target) haveCommits(ctx context.Context, ids ...string) (bool, error) {
	out, err := t.Repository.Feed(
		ctx, []byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype)",
	)
	if err != nil {
		return false, err
	}
	return out == strings.TrimSuffix(strings.Repeat("commit\n", len(ids)), "\n"), nil
}

// ProbeOffer is Probe for a target that takes requests: it tries to push an empty child of a commit to a branch of a
// landing, in a way that never takes effect.
func (t *Target) ProbeOffer(ctx context.Context, old string) error {
	to := *t
	to.Ref = OfferRef(t.Ref, old)
	none := strings.Repeat("0", len(old))
	empty, err := to.emptyChild(ctx, old)
	if err != nil {
		return err
	}
	return to.probePush(ctx, step{to.Ref, none, empty})
}

// carried returns the landings, newest first, that a forge's merge commit brings, or nil if it is none: it has the
// tree of its second parent, and that is a landing, or a chain of them, on its first parent.
func (b *Boundary) carried(ctx context.Context, c *commit) (chain []commit, err error) {
	if len(c.parents) != 2 {
		return nil, nil
	}
	for id := c.parents[1]; len(chain) < maxCarried; {
		l, err := b.readCommit(ctx, id)
		if _, missing := errors.AsType[*Missing](err); missing {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if _, _, ok := l.turn(); !ok || len(chain) == 0 && l.tree != c.tree {
			return nil, nil
		}
		l.carrier = c.id
		chain = append(chain, l)
		if id = l.parents[0]; id == c.parents[0] {
			return chain, nil
		}
	}
	return nil, nil
}

// maxCarried is how many landings one request brings at most.
const maxCarried = 1000
