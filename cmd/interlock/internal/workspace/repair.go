package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace"
)

func newRepair(a *cli.App) *cobra.Command {
	var p place
	var repo string
	cmd := &cobra.Command{
		Use:   "repair [NAME...]",
		Short: "Make workspaces work again after a move",
		Long: `Make workspaces work again after their repository, or the folder of all workspaces, was moved or
renamed. Run it in the repository as it is now. Without NAME it looks at all workspaces on this
host. A repository is taken for that of a workspace only if it keeps the workspace's first commit.

Exit codes: 1 one could not be repaired; 69 no server answered, 75 another command has one, 79 the
lease was lost.`,
		Example: `  mv web site && cd site && interlock workspace repair
  mv workspaces /big/disk/ && interlock workspace repair --root /big/disk/workspaces`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := p.named(cmd.Context(), args)
			if err != nil {
				return exit(err)
			}
			var failed error
			for _, w := range list {
				if err := repair(cmd.Context(), a, w, repo); err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s/%s: %w", w.Repo, w.Name, err))
				}
			}
			return failed
		},
	}
	p.define(cmd)
	cmd.Flags().StringVar(&repo, "repo", ".", "a `path` in the repository as it is now")
	return cmd
}

// named opens the workspaces that arguments name, or all.
func (p *place) named(ctx context.Context, args []string) (list []*workspace.Workspace, err error) {
	if len(args) == 0 {
		h, err := p.host()
		if err != nil {
			return nil, err
		}
		return h.List(p.repo)
	}
	for i := range args {
		_, w, err := p.find(ctx, args[i:i+1])
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// repairReport is what repair did for a workspace, as JSON.
type repairReport struct {
	Workspace string   `json:"workspace"`
	Repaired  []string `json:"repaired"`
}

// repair repairs a workspace under its lease, and describes it anew: its path may be another one.
func repair(ctx context.Context, a *cli.App, w *workspace.Workspace, repo string) error {
	return holding(ctx, a, w.Key(), w.Agent, "repair the workspace", func(ctx context.Context, held *hold) error {
		done, err := w.Repair(ctx, repo)
		if err != nil {
			return err
		}
		if len(done) > 0 {
			if err := held.describe(ctx, w); err != nil {
				return err
			}
		}
		switch {
		case a.JSON():
			return a.Print(&repairReport{w.Repo + "/" + w.Name, append([]string{}, done...)})
		case len(done) == 0:
			a.Say("%s/%s: nothing to repair\n", w.Repo, w.Name)
		default:
			a.Say("%s/%s: repaired, %s\n", w.Repo, w.Name, cli.Clean(strings.Join(done, "; ")))
		}
		return nil
	})
}
