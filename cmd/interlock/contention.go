package main

import (
	"github.com/spf13/cobra"
)

func newContention(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "contention",
		Short: "Show how often commits conflict and leases are waited for",
		Long: `Show for each key pattern how the two strategies fare: how many commits by version succeeded
and how many were refused because a document had changed, how often an agent had to think
again, and how many leases had to be waited for. The output recommends the other strategy
where it would serve better.

Counts begin with the server's term, and older ones fade.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got struct {
				Patterns []struct {
					Pattern                                             string
					Commits, Conflicts, Retries, Leased, Leases, Waited uint64
					Advice                                              advice
				}
			}
			return a.get(cmd.Context(), "/v1/contention", nil, &got, func() error {
				if len(got.Patterns) == 0 {
					a.complain("nothing was committed or leased yet")
					return nil
				}
				t := a.table("PATTERN", "COMMITS", "CONFLICTS", "RETRIES", "LEASED COMMITS", "LEASES", "WAITED")
				for _, p := range got.Patterns {
					t.row(orDash(clean(p.Pattern)), p.Commits, p.Conflicts, p.Retries, p.Leased, p.Leases, p.Waited)
				}
				if err := t.write(a.out); err != nil {
					return err
				}
				for _, p := range got.Patterns {
					if next := asFlags(clean(p.Advice.Message)); next != "" {
						a.complain("%s", next)
					}
				}
				return nil
			})
		},
	}
}
