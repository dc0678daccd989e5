package inspect

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

func newHot(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "hot",
		Short: "List the busiest keys",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var hot api.Hot
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			return a.Get(cmd.Context(), "/v1/hot", query, &hot, func() error {
				if len(hot.Keys) == 0 {
					a.Complain("no key is busy")
					return nil
				}
				t := a.Table("KEY", "HOLDERS", "WAITING")
				for _, k := range hot.Keys {
					t.Row(cli.Clean(string(k.Key)), k.Holders, k.Length)
				}
				return t.Write(a.Out)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many keys to list at most, up to 100")
	return cmd
}
