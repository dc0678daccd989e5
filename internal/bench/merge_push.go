package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
)

// pushes lands all submissions without a queue: each agent has a clone, and pushes, or pulls with a rebase until the
// push is accepted.
func (w *mergeWork) pushes(ctx context.Context, agents int) (n mergeCount, err error) {
	agents = min(agents, len(w.list))
	clones := make([]git.Repository, agents)
	err = each(ctx, agents, agents, func(ctx context.Context, a int) (err error) {
		clones[a], err = w.clone(ctx, fmt.Sprint("agent-", a))
		return err
	})
	if err != nil {
		return n, err
	}
	began := time.Now()
	err = each(ctx, agents, agents, func(ctx context.Context, a int) error {
		for i := a; i < len(w.list); i += agents {
			if err := push(ctx, &clones[a], w.list[i].head); err != nil {
				return fmt.Errorf("submission %s: %w", w.list[i].id, err)
			}
		}
		return nil
	})
	n.took, n.landed = time.Since(began), w.list
	return n, err
}

// clone makes a clone that has all commits and checks out few files, so that rebasing is as cheap as git can make it.
func (w *mergeWork) clone(ctx context.Context, name string) (git.Repository, error) {
	dir := filepath.Join(w.dir, name)
	args := []string{"clone", "--quiet", "--shared", "--no-checkout", "--branch=main", w.repo.Dir, dir}
	if _, err := new(git.Repository).Output(ctx, args...); err != nil {
		return git.Repository{}, err
	}
	r := git.Repository{Dir: filepath.Join(dir, ".git"), WorkTree: dir, Env: []string{"GIT_EDITOR=true"}}
	for _, args := range [][]string{{"sparse-checkout", "set", "--cone", "api"}, {"checkout", "--quiet", "main"}} {
		if _, err := r.Output(ctx, args...); err != nil {
			return git.Repository{}, err
		}
	}
	return r, nil
}

// push lands one commit.
func push(ctx context.Context, r *git.Repository, head string) error {
	if _, err := r.Output(ctx, "checkout", "--quiet", "--detach", head); err != nil {
		return err
	}
	for {
		args := []string{"push", "--quiet", "origin", "HEAD:" + mergeRef}
		pushed, err := r.Run(ctx, git.Call{Args: args, Answers: []int{1}})
		if err != nil || pushed.Exit == 0 {
			return err
		}
		if _, err := r.Output(ctx, "fetch", "--quiet", "origin", mergeRef); err != nil {
			return err
		}
		rebased, err := r.Run(ctx, git.Call{Args: []string{"rebase", "--quiet", "FETCH_HEAD"}, Answers: []int{1}})
		if err != nil {
			return err
		}
		if rebased.Exit != 0 {
			if err := keepOwn(ctx, r); err != nil {
				return err
			}
		}
	}
}

// keepOwn ends a rebase in conflict with the agent's own version of the files.
func keepOwn(ctx context.Context, r *git.Repository) error {
	list, err := r.Output(ctx, "diff", "--name-only", "--diff-filter=U")
	if err != nil {
		return err
	}
	files := strings.Fields(list)
	if len(files) == 0 {
		return errors.New("a rebase failed without a conflict")
	}
	for _, args := range [][]string{
		// In a rebase, "theirs" is the commit that is applied: the agent's own.
		append([]string{"checkout", "--quiet", "--theirs", "--"}, files...),
		append([]string{"add", "--sparse", "--"}, files...),
		{"rebase", "--continue"},
	} {
		if _, err := r.Output(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
