package main

import "github.com/spf13/cobra"

// newGuard holds the guards: what checks a fence where agents write.
func newGuard(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Check fences where agents write",
		Long: `A lease keeps two agents from working on a thing at once, as long as both know whether
they still hold it. One that was paused does not, and writes late. A guard stands where
agents write, and refuses a write whose fence is older than one it has seen.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGuardPostgres(a), newGuardHTTP(a), newGuardGit(a))
	return cmd
}
