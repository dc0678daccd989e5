package inspect

import (
	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

func newContention(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "contention",
		Short: "Show how often commits conflict and leases are waited for",
		Long: `Show for each key pattern how the two strategies fare: how many commits by version succeeded
and how many were refused because a document had changed, how often an agent had to think
again, and how many leases had to be waited for. The output recommends the other strategy
where it would serve better.

Counts begin with the server's term, and older ones fade.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.Contention
			return a.Get(cmd.Context(), "/v1/contention", nil, &got, func() error {
				if len(got.Patterns) == 0 {
					a.Complain("no statistics since the server started: they need commits, or leases in a namespace with documents")
					return nil
				}
				t := a.Table("PATTERN", "COMMITS", "CONFLICTS", "RETRIES", "LEASED COMMITS", "LEASES", "WAITED")
				for _, p := range got.Patterns {
					t.Row(cli.OrDash(cli.Clean(p.Pattern)), p.Commits, p.Conflicts, p.Retries, p.Leased, p.Leases, p.Waited)
				}
				if err := t.Write(a.Out); err != nil {
					return err
				}
				for _, p := range got.Patterns {
					if next := cli.Next(p.Advice); next != "" {
						a.Complain("%s", next)
					}
				}
				return nil
			})
		},
	}
}
