package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/archive"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/feed"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// NewLog returns the command log.
func NewLog(a *cli.App) *cobra.Command {
	var follow bool
	var from, format, dir string
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

With -o json each event is one line of JSON.

With --format perfetto it writes the timeline of that time (--since, default the last hour) as a
file that https://ui.perfetto.dev and chrome://tracing open: waits, holds and hand-offs of each
agent. --key then names a key, with those below it. With --data-dir it reads a copy of a journal
for that, without a server.`,
		Example: `  interlock log --follow
  interlock log account:12345 --since 12h --until 6h
  interlock log billing-7 --event ended,approval_decided
  interlock log --since 12h --event revoked,preempted,deadlock
  interlock log --since 2026-01-02T22:00:00Z --key account: --principal ops
  interlock log --from 1041
  interlock log -o json | jq 'select(.event == "ended" and .reason == "ttl")'
  interlock log --since 12h --format perfetto > night.json`,
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
			if format != "events" || dir != "" {
				if format != "perfetto" {
					return cli.Usagef("--format %s: want events, or perfetto, which also reads --data-dir", cli.Clean(format))
				}
				if follow || from != "" || f.event != "" || f.principal != "" || query.Has("about") {
					return cli.Usagef("--format perfetto: choose with --since, --until, --key and --agent alone")
				}
				return writePerfetto(cmd.Context(), a, query, dir)
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
	cmd.Flags().StringVar(&format, "format", "events", "events, or `perfetto` for a file of the timeline")
	cmd.Flags().StringVar(&dir, "data-dir", "", "with --format perfetto: read the journal in this `directory`")
	f.register(cmd)
	return cmd
}

// writePerfetto writes the timeline of a server, or of the journal in a directory.
func writePerfetto(ctx context.Context, a *cli.App, query url.Values, dir string) error {
	if dir != "" {
		if err := archive.Use(ctx, a, dir); err != nil {
			return err
		}
	}
	if key := query.Get("prefix"); key != "" {
		query.Set("key", key)
		query.Del("prefix")
	}
	_, answer, err := a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: "/v1/timeline", Query: query})
	if err != nil {
		return err
	}
	var t api.Timeline
	if err := cli.Decode(answer, &t); err != nil {
		return err
	}
	file, err := perfetto(string(cmp.Or(a.Server.Tenant(), interlock.DefaultNamespace)), &t)
	if err != nil {
		return err
	}
	if t.MoreBars > 0 {
		a.Complain("%d bars, the shortest, are left out: choose a shorter time, or a key", t.MoreBars)
	}
	if t.More {
		a.Complain("the file ends at %s: continue with --since", t.Until.UTC().Format(time.RFC3339))
	}
	return a.Content(append(file, '\n'))
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
		moment, err := cli.PastTime(flag, text)
		if err != nil {
			return nil, err
		}
		query.Set(flag, moment)
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
