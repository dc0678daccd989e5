package workspace

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

func newRescue(a *cli.App) *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   "rescue NAME",
		Short: "Take the work out of a broken workspace",
		Long: `Take the work out of a workspace with a broken or hostile git directory: the objects of all
commits that are whole, of all branches, stashes and reflogs, and the files as they are. It
reads no setting, index, ref or link of the workspace's, and removes nothing. The work is saved
in the repository as "delete --force" saves it: under the ref refs/interlock/saved/NAME, or
NAME@2 and so on, as a commit that reaches all others.

Exit codes: 69 no server answered, 75 another command has the workspace, 79 the lease was lost.`,
		Example: `  interlock workspace rescue fix-login && git log refs/interlock/saved/fix-login`,
		Args:    cli.OneArg("the workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, w, err := p.find(cmd.Context(), args)
			if err != nil {
				return exit(err)
			}
			return holding(
				cmd.Context(), a, w.Key(), w.Agent, "rescue the workspace", func(ctx context.Context, _ *hold) error {
					d, err := w.Rescue(ctx)
					if err != nil {
						return err
					}
					if a.JSON() {
						return a.Print(d)
					}
					a.Say("%s\n", d.Saved)
					a.Complain("saved %s, of %s: git --git-dir %s show %s",
						d.Had, cli.Count(d.Commits, "commit", "commits"), cli.Quote(d.In), d.Saved)
					if d.Lost > 0 {
						a.Complain("%s objects and were left out", cli.Count(d.Lost, "commit lacks", "commits lack"))
					}
					return nil
				},
			)
		},
	}
	p.define(cmd)
	return cmd
}
