package main

import (
	"github.com/spf13/cobra"
)

func newContention(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "contention",
		Short: "Show how often commits conflict and leases are waited for",
		Long: `Show for each key pattern how the two strategies fare: how many commits by version
went through and how many were refused because something had changed, how often that
made somebody think again, and how many leases had to be waited for. Where the other
strategy would serve better, it says so.

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
					if next := clean(p.Advice.Message); next != "" {
						a.complain("%s", next)
					}
				}
				return nil
			})
		},
	}
}
