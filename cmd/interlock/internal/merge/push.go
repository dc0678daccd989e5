package merge

import (
	"context"
	"os"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/merger"
)

// remoteBranch is the branch of a remote repository, such as that of a forge. The branch of the own repository follows
// it: so the merger has the commits that others have pushed, and workspaces take in what has landed.
type remoteBranch struct {
	*merge.Target
	own git.Repository
}

// target is the branch that the merger moves.
func (s *serve) target(repo git.Repository) merger.Ref {
	t := &merge.Target{Repository: repo, Ref: s.ref}
	if s.push == "" {
		return t
	}
	t.Remote, t.PushOptions = s.push, s.pushOptions
	t.Repository.Env = append(t.Repository.Env, git.Remote(os.Environ())...)
	return &remoteBranch{t, repo}
}

// fetch returns how the merger gets submissions that were pushed to the forge and not to its own repository.
func (s *serve) fetch(repo git.Repository) func(ctx context.Context, id string) (found bool, err error) {
	if s.push == "" {
		return nil
	}
	repo.Env = append(repo.Env, git.Remote(os.Environ())...)
	return func(ctx context.Context, id string) (found bool, err error) {
		ref := "refs/interlock/sub/" + id
		list, err := repo.Output(ctx, "ls-remote", "--end-of-options", s.push, ref)
		if err != nil || list == "" {
			return false, err
		}
		// The ref keeps the commits, as it does in a repository that agents push to.
		_, err = repo.Output(
			ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", s.push, ref+":"+ref,
		)
		return true, err
	}
}

func (p *remoteBranch) Read(ctx context.Context) (merge.Position, error) {
	at, err := p.Target.Read(ctx)
	if err != nil {
		return at, err
	}
	return at, p.follow(ctx, at.Head)
}

func (p *remoteBranch) Claim(ctx context.Context, token uint64) (merge.Position, error) {
	at, err := p.Target.Claim(ctx, token)
	if err != nil {
		return at, err
	}
	return at, p.follow(ctx, at.Head)
}

func (p *remoteBranch) Move(ctx context.Context, m merge.Move) error {
	if err := p.Target.Move(ctx, m); err != nil {
		return err
	}
	return p.follow(ctx, m.New)
}

// follow sets the own branch to a commit of the remote one. A later merger may have moved it further meanwhile, and
// then its next step corrects the branch.
func (p *remoteBranch) follow(ctx context.Context, head string) error {
	if at, err := p.own.Output(ctx, "rev-parse", "--verify", "--quiet", p.Ref); err == nil && at == head {
		return nil
	}
	if _, err := p.own.Output(ctx, "cat-file", "-e", head+"^{commit}"); err != nil {
		if _, err := p.Repository.Output(
			ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", p.Remote, p.Target.Ref,
		); err != nil {
			return err
		}
	}
	_, err := p.own.Output(ctx, "update-ref", p.Ref, head)
	return err
}
