package main

import (
	"encoding/json"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

func newStateWatch(a *app) *cobra.Command {
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
		Args:              atMostOneArg,
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			r := &eventReader{a: a, api: a.api(), path: "/v1/watch", query: url.Values{}, follow: true, text: func(line []byte) (string, error) {
				return a.written(line, values)
			}}
			switch {
			case len(args) == 1 && prefix != "":
				return usage("a key and --prefix: use one of them")
			case len(args) == 1:
				r.query.Set("key", args[0])
			case prefix != "":
				r.query.Set("prefix", prefix)
			}
			if values {
				r.query.Set("values", "true")
			}
			if from == "oldest" {
				return usage(
					"--from oldest: what documents were is in `interlock state history`; want an index such as 1041, or now",
				)
			}
			if err := r.start(ctx, from); err != nil {
				return err
			}
			return r.run(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&prefix, "prefix", "", "all keys that begin with this `text`")
	f.StringVar(&from, "from", "now", "the `index` to begin at, or now")
	f.BoolVar(&values, "values", false, "show the documents, too")
	return cmd
}

// written is one version of a document on a line.
func (a *app) written(line []byte, values bool) (string, error) {
	var d struct {
		document
		Index interlock.Index `json:"index,string"`
		Time  time.Time
	}
	if err := json.Unmarshal(line, &d); err != nil {
		return "", err
	}
	d.Age = max(0, time.Since(d.Time)).Milliseconds()
	text := d.Index.String() + "  " + a.tint(bold, clean(string(d.Key))) + "  " + clean(d.Op) + ", version " +
		d.Version.String() + " " + d.writer()
	if !values || d.Absent {
		return text, nil
	}
	body, err := d.body()
	return text + "\n  " + clean(string(body)), err
}
