package inspect

import (
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// NewHealth returns the command health.
func NewHealth(a *cli.App) *cobra.Command {
	var ready bool
	var role string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Report whether a server is healthy, for the checks of containers",
		Long: `Print one line if the server can answer, or with --ready if it answers for every namespace now,
as the owner of its shard or by way of the owner. The exit code is 0, or 69 if it does not, or
cannot be reached. No credential is needed.`,
		Example: `  interlock health                        the process can answer: else restart it
  interlock health --ready                it can answer for every namespace: send it work
  interlock health --ready --role any     it runs, and does not shut down
  interlock health --ready --role active  it is the one that grants leases`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, query := "/healthz", url.Values(nil)
			switch {
			case ready:
				if path = "/readyz"; role != "" {
					query = url.Values{"role": {role}}
				}
			case cmd.Flag("role").Changed:
				return cli.Usagef("--role is a condition of --ready: add it")
			}
			var status api.Status
			return a.Get(cmd.Context(), path, query, &status, func() error {
				a.Say("%s %s\n", cli.Clean(status.Status), cli.Clean(status.Role))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether the server is ready, not only whether it can answer")
	cmd.Flags().StringVar(&role, "role", "", "the `role` to be ready for instead: active, standby or any")
	return cmd
}
