package past

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/archive"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// differences prints what differs between the state at against and that at moment ("": now). Both are an index or a
// time.
func differences(cmd *cobra.Command, a *cli.App, against, moment, prefix, dir string) error {
	query := url.Values{"from": {against}, "limit": {"1000"}}
	for name, value := range map[string]string{"to": moment, "prefix": prefix} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if dir != "" {
		if err := archive.Use(cmd.Context(), a, dir); err != nil {
			return err
		}
	}
	var d api.Differences
	return a.Get(cmd.Context(), "/v1/differences", query, &d, func() error { return show(a, &d) })
}

func show(a *cli.App, d *api.Differences) error {
	a.Say("%s\n", summary(&d.Sums))
	t := a.Table("WHAT", "WHICH", "CHANGE", "BEFORE", "AFTER")
	rows := 0
	row := func(what, which, change, before, after string) {
		t.Row(what, which, cli.Coloured(cli.Clean(change), colours[change]), cli.OrDash(before), cli.OrDash(after))
		rows++
	}
	for i := range d.Leases {
		x := &d.Leases[i]
		row("lease", cli.Clean(string(x.Key)), x.Change, leaseText(x.Before), leaseText(x.After))
	}
	for i := range d.Waiters {
		x := &d.Waiters[i]
		row("waiter", waiterName(x), x.Change, waiterText(x.Before), waiterText(x.After))
	}
	for i := range d.Documents {
		x := &d.Documents[i]
		row("document", cli.Clean(string(x.Key)), x.Change, documentText(x.Before), documentText(x.After))
	}
	for i := range d.Tasks {
		x := &d.Tasks[i]
		row("task", taskName(x), x.Change, taskText(x.Before), taskText(x.After))
	}
	if rows > 0 {
		a.Say("\n")
		if err := t.Write(a.Out); err != nil {
			return err
		}
	}
	a.Complain("from %s to %s", momentText(&d.From), momentText(&d.To))
	if d.LeftOut > 0 {
		a.Complain(
			"%s: choose moments that are nearer to each other, or --prefix",
			cli.Count(d.LeftOut, "difference is left out", "differences are left out"),
		)
	}
	return nil
}

var colours = map[string]cli.Colour{"new": cli.Green, "gone": cli.Dim, "changed": cli.Yellow}

// summary is the numbers of differences in words.
func summary(s *api.DifferenceSums) string {
	var parts []string
	for _, x := range []struct {
		count     api.DifferenceCount
		one, many string
	}{
		{s.Leases, "lease", "leases"},
		{s.Waiters, "waiter", "waiters"},
		{s.Documents, "document", "documents"},
		{s.Tasks, "task", "tasks"},
	} {
		if n := x.count.New + x.count.Gone + x.count.Changed; n > 0 {
			parts = append(parts, fmt.Sprintf(
				"%s (%d new, %d gone, %d changed)", cli.Count(n, x.one, x.many), x.count.New, x.count.Gone, x.count.Changed,
			))
		}
	}
	if len(parts) == 0 {
		return "No lease, waiter, document or task differs."
	}
	return "Different: " + strings.Join(parts, ", ") + "."
}

func momentText(m *api.Moment) string {
	if m.Time == nil {
		return fmt.Sprintf("entry %d", m.Index)
	}
	return fmt.Sprintf("entry %d (%s)", m.Index, m.Time.UTC().Format(time.RFC3339))
}

func leaseText(l *api.LeaseThen) string {
	if l == nil {
		return ""
	}
	text := fmt.Sprintf("%s, fence %d", cli.AgentName(l.Name), l.Fence)
	if l.Mode != "exclusive" {
		text += ", " + cli.Clean(l.Mode)
	}
	if l.Count > 0 {
		text += fmt.Sprintf(" %d", l.Count)
	}
	if l.Liveness != "live" {
		text += ", " + cli.Clean(l.Liveness)
	}
	return text
}

func waiterName(w *api.WaiterDifference) string {
	keys := make([]string, len(w.Keys))
	for i, key := range w.Keys {
		keys[i] = cli.Clean(string(key))
	}
	name := cli.AgentName(w.Name)
	switch {
	case len(keys) > 0:
		name += " for " + strings.Join(keys, ", ")
	case w.On != nil:
		name += " for the agent " + cli.AgentName(*w.On)
	}
	return name
}

func waiterText(w *api.WaiterThen) string {
	switch {
	case w == nil:
		return ""
	case w.Offered:
		return "has an offer"
	case w.Position == 0:
		return "waits"
	}
	return fmt.Sprintf("position %d", w.Position)
}

func documentText(d *api.DocumentThen) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("version %d", d.Version)
	if d.Agent != "" {
		text += " by " + cli.Clean(d.Agent)
	}
	if d.Note != "" {
		text += ": " + cli.Clean(d.Note)
	}
	return text
}

func taskName(t *api.TaskDifference) string {
	name := t.Task
	for _, part := range []string{t.Kind, t.Purpose} {
		if part != "" {
			name += " " + cli.Clean(part)
		}
	}
	return name + " in " + cli.Clean(t.Queue)
}

func taskText(t *api.TaskThen) string {
	if t == nil {
		return ""
	}
	text := cli.Clean(t.State)
	if t.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d", t.Attempt)
	}
	return text
}
