package workspace

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace"
)

func newDelete(a *cli.App) *cobra.Command {
	var p place
	var force, end bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a workspace",
		Long: `Delete a workspace. While it has work that was not submitted, it refuses. With --force it first
saves that work in the repository, under the ref refs/interlock/saved/NAME, or NAME@2 and so
on where there is one already: changed and untracked files, commits of all refs, and stashes.
Where a commit cannot hold it (a repository inside the tree, a linked worktree, a rebase that
is not finished), or git cannot read it, the private git directory and the files are moved to
.kept beside the workspaces. So --force never loses work, and always deletes the workspace.

Commits that only a reflog has, such as those before an amend, are saved without --force.
Files that git ignores go, those of --include as well. A database clone is dropped; what the
command wrote there is not saved.

Exit codes: 1 unsubmitted work, or a program still works inside; 69 no server answered,
75 another command has the workspace, 79 the lease was lost.`,
		Example: `  interlock workspace delete fix-login
  interlock workspace delete fix-login --force && git log refs/interlock/saved/fix-login`,
		Args: cli.OneArg("the workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, w, err := p.find(cmd.Context(), args)
			if err != nil {
				return exit(err)
			}
			return remove(cmd.Context(), a, h, w, force, end)
		},
	}
	p.define(cmd)
	cmd.Flags().BoolVar(
		&end, "end-sessions", false, "end the connections to the database clone, so that it can be dropped",
	)
	cmd.Flags().BoolVar(&force, "force", false, "save unsubmitted work under a ref, and delete the workspace")
	return cmd
}

// remove deletes a workspace under its lease, and reports what was saved.
func remove(ctx context.Context, a *cli.App, h *workspace.Host, w *workspace.Workspace, force, end bool) error {
	d, err := erase(ctx, a, h, w, force, end)
	if d == nil {
		return err
	}
	if a.JSON() {
		return errors.Join(err, a.Print(d))
	}
	a.Say("deleted %s/%s\n", w.Repo, w.Name)
	if d.Saved != "" {
		a.Complain("saved %s: git --git-dir %s show %s", d.Had, cli.Quote(d.In), d.Saved)
	}
	if d.Kept != "" {
		a.Complain(
			"the files and the git directory are in %[1]s: `git --git-dir %[1]s/git log --all` shows its commits; run no git "+
				"in the files, where the agent may have left programs for it",
			cli.Quote(d.Kept),
		)
	}
	return err
}

// erase deletes a workspace under its lease. What it returns is not nil if the workspace is gone.
func erase(
	ctx context.Context, a *cli.App, h *workspace.Host, w *workspace.Workspace, force, end bool,
) (d *workspace.Deleted, err error) {
	err = holding(ctx, a, w.Key(), w.Agent, "delete the workspace", func(ctx context.Context, held *hold) error {
		db, err := cloneOf(w)
		if err != nil {
			return err
		}
		if d, err = h.Delete(ctx, w.Repo, w.Name, force); err != nil {
			return err
		}
		if db != nil {
			db.drop(ctx, a, end)
		}
		return held.forget(ctx)
	})
	return d, err
}
