package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/archive"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// maxPictures is how many incidents have their waits in an HTML file.
const maxPictures = 50

// New returns the command report.
func New(a *cli.App) *cobra.Command {
	var since, until, format, dir string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Sum up what happened: incidents, time lost, advice",
		Long: `Sum up what happened in a time: deadlocks, lost leases, refused writes, long waits, fail-overs
and dead letters, each with the next step; the keys and classes of keys by the time lost at them;
and advice that the journal supports, with the command that changes it.

With --format html it writes one file without scripts, to be attached to a ticket or opened by
someone without access to the server. It also has the waits at the moment before each incident.

With --data-dir the journal in a directory is read, such as a copy from another machine, and no
server is needed. Name the time then: the last hours of an old copy are empty.

Refused writes are in the journal only for keys with a pattern that records them
("interlock pattern set --audit-refusals").`,
		Example: `  interlock report
  interlock report --since 7d --until 1d
  interlock report --since 12h --format html > night.html
  interlock report -o json | jq '.incidents[] | .text'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "text" && (format != "html" || a.JSON()) {
				return cli.Usagef("--format %s: want text, or html without -o json", cli.Clean(format))
			}
			query := url.Values{}
			for flag, text := range map[string]string{"since": since, "until": until} {
				if text == "" {
					continue
				}
				moment, err := cli.PastTime(flag, text)
				if err != nil {
					return err
				}
				query.Set(flag, moment)
			}
			if dir != "" {
				if err := archive.Use(cmd.Context(), a, dir); err != nil {
					return err
				}
			}
			var r api.Report
			return a.Get(cmd.Context(), "/v1/report", query, &r, func() error {
				if format == "html" {
					return writePage(cmd.Context(), a, &r)
				}
				return show(a, &r)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "12h", "the beginning: how long ago, such as 12h, or a `time` in RFC 3339")
	cmd.Flags().StringVar(&until, "until", "", "the end, a `time` as for --since (default: now)")
	cmd.Flags().StringVar(&format, "format", "text", "text, or `html` for one file")
	cmd.Flags().StringVar(&dir, "data-dir", "", "read the journal in this `directory` instead of asking a server")
	return cmd
}

// show writes a report as text.
func show(a *cli.App, r *api.Report) error {
	a.Say("%s\n%s\n", a.Tint(cli.Dim, period(r)), cli.Clean(r.Verdict))
	showIncidents(a, r)
	if len(r.Advice) > 0 {
		a.Say("\n%s\n", a.Tint(cli.Bold, "ADVICE"))
	}
	for i := range r.Advice {
		v := &r.Advice[i]
		a.Say("%s\n", cli.Clean(v.Text))
		if v.Command != "" {
			a.Say("  %s\n", cli.Clean(v.Command))
		}
	}
	if r.All.Grants+r.All.Failures > 0 {
		a.Say("\n")
		if err := classes(a, r).Write(a.Out); err != nil {
			return err
		}
	}
	if len(r.Keys) > 0 {
		a.Say("\n")
		t := a.Table("KEY", "WAITS", "LOST")
		for i := range r.Keys {
			k := &r.Keys[i]
			t.Row(cli.Clean(string(k.Key)), k.Waits, cli.ShortMillis(k.Lost))
		}
		if err := t.Write(a.Out); err != nil {
			return err
		}
	}
	complain(a, r)
	return nil
}

func showIncidents(a *cli.App, r *api.Report) {
	if len(r.Incidents) > 0 {
		a.Say("\n%s\n", a.Tint(cli.Bold, "INCIDENTS"))
	}
	for i := range r.Incidents {
		in := &r.Incidents[i]
		a.Say("%s  %s  %s\n", clock(in.Time), a.Tint(colourOf(in.Kind), cli.Clean(in.Kind)), cli.Clean(in.Text))
		a.Say("  %s\n", cli.Clean(in.Next))
		if in.Command != "" {
			a.Say("  %s\n", cli.Clean(in.Command))
		}
	}
}

func classes(a *cli.App, r *api.Report) *cli.Table {
	t := a.Table("CLASS", "GRANTS", "WAITS", "FAILED", "LOST", "WAIT P50", "WAIT P99", "HOLD P50", "HOLD P99")
	for i, s := range append(slices.Clone(r.Classes), r.All) {
		name := cmp.Or(cli.Clean(s.Class), "(plain words)")
		if i == len(r.Classes) {
			name = "(all)"
		}
		t.Row(
			name, s.Grants, s.Waits, s.Failures, cli.ShortMillis(s.Lost), cli.ShortMillis(s.WaitP50),
			cli.ShortMillis(s.WaitP99), cli.ShortMillis(s.HoldP50), cli.ShortMillis(s.HoldP99),
		)
	}
	return t
}

// complain tells what the report leaves out.
func complain(a *cli.App, r *api.Report) {
	for _, text := range left(r) {
		a.Complain("%s", text)
	}
}

// left returns what the report leaves out.
func left(r *api.Report) (list []string) {
	if r.More {
		list = append(list, "the report ends at "+clock(r.Until)+", there is more: continue with --since "+exact(r.Until))
	}
	if r.MoreIncidents > 0 {
		list = append(list, fmt.Sprintf("%d incidents are left out: choose a shorter time", r.MoreIncidents))
	}
	if r.LeftOut > 0 {
		list = append(list, fmt.Sprintf("%d waits, leases or keys are not counted: choose a shorter time", r.LeftOut))
	}
	return list
}

// waitsAt returns the waits at the moment before an incident, as lines; nil if that is not known any more.
func waitsAt(ctx context.Context, a *cli.App, in *api.Incident) ([]string, error) {
	if in.Before == 0 {
		return nil, nil
	}
	var past struct {
		Answer api.Waits `json:"answer"`
	}
	_, answer, err := a.API().Do(ctx, cli.Request{
		Method: http.MethodGet, Path: "/v1/at", Query: url.Values{"path": {"waits"}, "index": {in.Before.String()}},
	})
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return []string{"Not known any more: " + refusal.Message}, nil
	}
	if err == nil {
		err = cli.Decode(answer, &past)
	}
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, l := range view.WaitTree(past.Answer.Edges) {
		line := l.Indent + cli.PartyName(l.Party)
		if l.Indent != "" {
			line += " " + l.How + " " + cli.ShortMillis(l.Waited)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// period is the time of a report.
func period(r *api.Report) string { return clock(r.Since) + " to " + clock(r.Until) }

func clock(t api.Time) string { return t.UTC().Format(time.RFC3339) }

// exact is a time as the server writes it.
func exact(t api.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// colourOf is the colour of a kind of incident.
func colourOf(kind string) cli.Colour {
	switch kind {
	case "deadlock", "lost_lease", "dead_letter":
		return cli.Red
	}
	return cli.Yellow
}
