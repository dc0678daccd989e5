package inspect

import (
	"encoding/json"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/feed"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
)

// NewLog returns the command log.
func NewLog(a *cli.App) *cobra.Command {
	var follow bool
	var from string
	var f logFilter
	cmd := &cobra.Command{
		Use:   "log [KEY|AGENT]",
		Short: "Show the journal's events, or follow them",
		Long: `Show the events of the journal, oldest first: requests, grants, and the ends of leases. With
--follow it begins now and continues until it is interrupted, also across restarts of the
server; nothing is left out. With KEY or AGENT it shows the events of that key and the keys
below it, and of the agent of that name. The server applies the flags; it finds the last
hours of a long journal without reading all of it.

Times are in RFC 3339. Refused requests are events of keys with a pattern that records them
("interlock pattern set --audit-refusals").

If the server cannot send all events, the command reports the reason and ends with an exit
code other than 0; with --follow it reports the reason and continues as soon as it can.

With -o json each event is one line of JSON.`,
		Example: `  interlock log --follow
  interlock log account:12345 --since 12h --until 6h
  interlock log billing-7 --event ended,approval_decided
  interlock log --since 12h --event revoked,preempted,deadlock
  interlock log --since 2026-01-02T22:00:00Z --key account: --principal ops
  interlock log --from 1041
  interlock log -o json | jq 'select(.event == "ended" and .reason == "ttl")'`,
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.until != "" && follow {
				return cli.Usagef("--until and --follow: use one of them")
			}
			query, err := f.query(args)
			if err != nil {
				return err
			}
			if from == "" && f.since != "" {
				from = "oldest"
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			r := &feed.Reader{App: a, API: a.API(), Path: "/v1/events", Follow: follow}
			query.Set("follow", strconv.FormatBool(follow))
			r.Query = query
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
	f.register(cmd)
	return cmd
}

// logFilter is which events to show.
type logFilter struct{ since, until, key, agent, event, principal string }

func (f *logFilter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "only events since this `time`: how long ago, such as 12h, or in RFC 3339")
	flags.StringVar(&f.until, "until", "", "only events before this `time`")
	flags.StringVar(&f.key, "key", "", "only events of keys with this `prefix`")
	flags.StringVar(&f.agent, "agent", "", "only events of this `agent`")
	flags.StringVar(&f.event, "event", "", "only these `events`, or those with these reasons, such as granted,revoked")
	flags.StringVar(&f.principal, "principal", "", "only what was done with this credential's `name`")
}

func (f *logFilter) query(args []string) (url.Values, error) {
	query := url.Values{}
	for flag, text := range map[string]string{"since": f.since, "until": f.until} {
		if text == "" {
			continue
		}
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			ago, err := cli.ParseDuration(text)
			if err != nil {
				return nil, cli.Usagef(
					"--%s %s: want how long ago, such as 12h or 7d, or a time such as 2026-01-02T03:04:05Z", flag, cli.Clean(text),
				)
			}
			text = ago.String()
		}
		query.Set(flag, text)
	}
	for name, value := range map[string]string{
		"prefix": f.key, "agent": f.agent, "event": f.event, "principal": f.principal, "about": strings.Join(args, ""),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query, nil
}
