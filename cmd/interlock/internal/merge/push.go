package merge

import (
	"context"
	"log/slog"
	"os"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/merger"
)

// target is the branch that the merger moves.
func (s *serve) target(repo git.Repository, log *slog.Logger) merger.Ref {
	t := &merge.Target{Repository: repo, Ref: s.name.Ref(), Committer: s.committer, Signer: s.signer}
	if s.push == "" {
		return t
	}
	t.Remote, t.PushOptions = s.push, s.pushOptions
	t.Repository.Env = append(t.Repository.Env, git.Remote(os.Environ())...)
	if s.forge == nil {
		return &merger.Followed{Ref: t, Target: t, Own: repo}
	}
	return &merger.Followed{
		Ref: &merger.Requests{Offers: t, Branch: t.Ref, Forge: s.forge, Log: log}, Target: t, Own: repo,
	}
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
