package state

import (
	"encoding/json"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/feed"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newStateWatch(a *cli.App) *cobra.Command {
	var prefix, from string
	var values bool
	cmd := &cobra.Command{
		Use:   "watch [KEY]",
		Short: "Show writes as they happen",
		Long: `Show the writes to KEY, or to all keys that begin with --prefix, or in the whole namespace,
until it is interrupted. It continues across restarts of the server; nothing is left out.
--from takes an index, as every answer has one in "at": so a read and a watch from the next
index on miss nothing between them.`,
		Example: `  interlock state watch account:12345 --values
  interlock state watch --prefix account: -o json | jq .key`,
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			r := &feed.Reader{App: a, API: a.API(), Path: "/v1/watch", Query: url.Values{}, Follow: true, Text: func(
				line []byte,
			) (string, error) {
				return written(a, line, values)
			}}
			switch {
			case len(args) == 1 && prefix != "":
				return cli.Usagef("a key and --prefix: use one of them")
			case len(args) == 1:
				r.Query.Set("key", args[0])
			case prefix != "":
				r.Query.Set("prefix", prefix)
			}
			if values {
				r.Query.Set("values", "true")
			}
			if from == "oldest" {
				return cli.Usagef(
					"--from oldest: what documents were is in `interlock state history`; want an index such as 1041, or now",
				)
			}
			if err := r.Start(ctx, from); err != nil {
				return err
			}
			return r.Run(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&prefix, "prefix", "", "all keys that begin with this `text`")
	f.StringVar(&from, "from", "now", "the `index` to begin at, or now")
	f.BoolVar(&values, "values", false, "show the documents, too")
	return cmd
}

// written is one version of a document on a line.
func written(a *cli.App, line []byte, values bool) (string, error) {
	var d api.Written
	if err := json.Unmarshal(line, &d); err != nil {
		return "", err
	}
	text := d.Index.String() + "  " + a.Tint(cli.Bold, cli.Clean(string(d.Key))) + "  " + cli.Clean(d.Op) + ", version " +
		d.Version.String() + " " + view.Written(&d.DocumentInfo, new(max(0, time.Since(d.Time)).Milliseconds()))
	if !values || d.Absent {
		return text, nil
	}
	body, err := view.Body(&d.DocumentBody)
	return text + "\n  " + cli.Clean(string(body)), err
}
