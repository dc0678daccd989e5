package inspect

import (
	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newWaits(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "waits",
		Short: "Show the wait-for graph as a tree",
		Long: `Show the wait-for graph as a tree: at the left the holders that wait for nothing, below each
its waiters, and so on.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var answer api.Waits
			return a.Get(cmd.Context(), "/v1/waits", nil, &answer, func() error {
				if len(answer.Edges) == 0 {
					a.Complain("no waiters")
					return nil
				}
				showWaits(a, answer.Edges)
				return nil
			})
		},
	}
}

func showWaits(a *cli.App, edges []api.WaitEdge) {
	for _, line := range view.WaitTree(edges) {
		name := a.Tint(cli.Bold, cli.PartyName(line.Party))
		if line.Indent == "" {
			a.Say("%s\n", name)
			continue
		}
		suffix := ""
		if line.Again {
			suffix = ", see above"
		}
		a.Say("%s%s %s %s%s\n", line.Indent, name, line.How, cli.ShortMillis(line.Waited), suffix)
	}
}
