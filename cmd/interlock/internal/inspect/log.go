package inspect

import (
	"encoding/json"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/feed"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
)

// NewLog returns the command log.
func NewLog(a *cli.App) *cobra.Command {
	var follow bool
	var from string
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show the journal's events, or follow them",
		Long: `Show the events of the journal, oldest first: requests, grants, and the ends of leases. With
--follow it begins now and continues until it is interrupted, also across restarts of the
server; nothing is left out.

When the server cannot send all that it has, the command reports the reason and ends with an
exit code other than 0; with --follow it reports it and continues as soon as it can.

With -o json each event is one line of JSON.`,
		Example: `  interlock log --follow
  interlock log --from 1041
  interlock log -o json | jq 'select(.event == "ended" and .reason == "ttl")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			r := &feed.Reader{App: a, API: a.API(), Path: "/v1/events", Follow: follow}
			r.Query = url.Values{"follow": {strconv.FormatBool(follow)}}
			r.Text = func(line []byte) (string, error) {
				var e view.Event
				err := json.Unmarshal(line, &e)
				return e.Line(a), err
			}
			if err := r.Start(ctx, from); err != nil {
				return err
			}
			return r.Run(ctx)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow new events")
	cmd.Flags().StringVar(
		&from, "from", "", "the `index` to begin at, oldest, or now (default: oldest, with --follow now)",
	)
	return cmd
}
