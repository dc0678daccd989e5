package merger

import (
	"context"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
)

// Followed is the branch of a remote repository, such as that of a forge. The branch of the own repository follows it:
// so the merger has the commits that others have pushed, and workspaces take in what has landed.
type Followed struct {
	// Ref moves it.
	Ref
	// Target is where it is: its repository reaches the remote one, and has the objects of Own.
	Target *merge.Target
	// Own has the branch that follows.
	Own git.Repository
}

func (p *Followed) Read(ctx context.Context) (merge.Position, error) {
	was := p.followed(ctx)
	at, err := p.Ref.Read(ctx)
	if err != nil {
		return at, err
	}
	return at, p.follow(ctx, was, at.Head)
}

func (p *Followed) Identity(ctx context.Context) (merge.Identity, error) {
	if _, err := p.Read(ctx); err != nil { // the own repository must have the commits
		return merge.Identity{}, err
	}
	return p.Ref.Identity(ctx)
}

func (p *Followed) Claim(ctx context.Context, token uint64) (merge.Position, error) {
	was := p.followed(ctx)
	at, err := p.Ref.Claim(ctx, token)
	if err != nil {
		return at, err
	}
	return at, p.follow(ctx, was, at.Head)
}

func (p *Followed) Move(ctx context.Context, m merge.Move) (head string, err error) {
	was := p.followed(ctx)
	if head, err = p.Ref.Move(ctx, m); err != nil {
		return "", err
	}
	return head, p.follow(ctx, was, head)
}

func (p *Followed) Revoke(ctx context.Context, token uint64) (merge.Position, error) {
	was := p.followed(ctx)
	at, err := p.Ref.Revoke(ctx, token)
	if err != nil {
		return at, err
	}
	return at, p.follow(ctx, was, at.Head)
}

// followed returns the commit of the own branch, "" if there is none.
func (p *Followed) followed(ctx context.Context) string {
	at, err := p.Own.Output(ctx, "rev-parse", "--verify", "--quiet", p.Target.Ref)
	if err != nil {
		return ""
	}
	return at
}

// followTries is how often a merger looks again that others with the same repository have overtaken.
const followTries = 5

// follow sets the own branch to a commit of the remote one, if it still is at was, where it was before that commit was
// learned. Else another merger has set it meanwhile, perhaps to a later commit, and the remote branch is read again.
func (p *Followed) follow(ctx context.Context, was, head string) error {
	for try := 1; was != head; try++ {
		if _, err := p.Own.Output(ctx, "cat-file", "-e", head+"^{commit}"); err != nil {
			if _, err := p.Target.Repository.Output(
				ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", p.Target.Remote, p.Target.Ref,
			); err != nil {
				return err
			}
		}
		_, err := p.Own.Output(ctx, "update-ref", p.Target.Ref, head, was) // "": only if there is no branch
		if err == nil {
			return nil
		}
		now := p.followed(ctx)
		if now == was || try == followTries {
			return err
		}
		was = now
		at, err := p.Ref.Read(ctx)
		if err != nil {
			return err
		}
		head = at.Head
	}
	return nil
}
