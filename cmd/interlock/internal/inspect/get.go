package inspect

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// NewKey returns the command key.
func NewKey(a *cli.App) *cobra.Command {
	return cli.Group(
		"key", "Show keys: their holders, their lines, the busiest",
		`A key names what agents work on, such as account:12345 or repo:web/src. Any text is a key; key
patterns give keys of one shape their rules.`,
		newList(a), newGet(a), newWaits(a), newHot(a), newContention(a),
	)
}

func newGet(a *cli.App) *cobra.Command {
	var resource string
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Show a key: its holders, its line, its notes",
		Long: `Show a key: the holders of it or of a key above or below it, its waiters and their expected
waits, the notes that earlier holders left, and by its key pattern the permits taken and the
tokens left. Parked holders keep the key for a person's decision; closed ones have died, and
the key opens when their lock delay is over.

With --resource, for a partitioned key: also the part that a resource belongs to, and the
member that has it now.`,
		Example: `  interlock key get account:12345
  interlock key get queue:orders --resource order:4711`,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var key api.KeyView
			var query url.Values
			if cmd.Flags().Changed("resource") {
				query = url.Values{"resource": {resource}}
			}
			return a.Get(cmd.Context(), cli.KeyPath(args[0]), query, &key, func() error { return showKey(a, &key) })
		},
	}
	cmd.Flags().StringVar(&resource, "resource", "", "the `name` of a resource that belongs to a part of the key")
	return cmd
}

func showKey(a *cli.App, k *api.KeyView) error {
	facts := []string{cli.Clean(k.State)}
	if k.Length > 0 {
		facts = append(facts, cli.Count(k.Length, "waiter", "waiters"))
	}
	if k.Pattern != "" {
		facts = append(facts, "pattern "+cli.Clean(k.Pattern))
	}
	if k.Capacity != nil {
		facts = append(facts, cli.CapacityText(k.Capacity))
	}
	if k.Generation > 0 {
		facts = append(facts, "generation "+strconv.FormatUint(k.Generation, 10)+" of a barrier")
	}
	if k.Broken {
		facts = append(facts, "broken: it cannot open again until its holders have released")
	}
	if k.HoldTime > 0 {
		facts = append(facts, "keys like it are usually held for "+cli.ShortMillis(k.HoldTime))
	}
	switch {
	case len(k.Holders) > 0:
		facts = append(facts, "lowest fence in force "+k.FenceFloor.String())
	default:
		facts = append(facts, "no fence below "+k.FenceFloor.String()+" is good any more")
	}
	a.Say("%s  %s\n", a.Tint(cli.Bold, cli.Clean(string(k.Key))), strings.Join(facts, ", "))

	if p := k.Part; p != nil {
		who := "no member has it at the moment"
		if p.Holder != nil {
			who = cli.FullName(p.Holder.Name) + " has it, fence " + p.Holder.Fence.String()
		}
		a.Say(
			"%s belongs to %s, one of %s: %s\n", cli.Clean(p.Resource), cli.Clean(string(p.Key)),
			cli.Count(p.Parts, "part", "parts"), who,
		)
	}
	if len(k.Holders) > 0 {
		a.Say("\n")
		t := a.Table("HOLDER", "KEY", "MODE", "FENCE", "LIVENESS", "HELD", "EXPIRES", "PURPOSE")
		for i := range k.Holders {
			h := &k.Holders[i]
			purpose := cli.Clean(h.Purpose)
			if progress := cli.Clean(h.Progress); progress != "" {
				purpose = strings.TrimSpace(purpose + " [" + progress + "]")
			}
			t.Row(
				cli.FullName(h.Name), cli.Clean(string(h.Key)), cli.ModeText(h.Mode, h.Count), h.Fence,
				cli.LivenessCell(h.Liveness),
				cli.ShortMillis(h.Held), cli.ShortMillis(h.ExpiresIn), cli.OrDash(purpose),
			)
		}
		if err := t.Write(a.Out); err != nil {
			return err
		}
		if k.More > 0 {
			a.Say("and %d more\n", k.More)
		}
		for i := range k.Holders {
			if h := &k.Holders[i]; h.Yield != nil {
				a.Say("%s\n", cli.YieldTold(h.Yield, cli.AgentName(h.Name)))
			}
		}
	}
	if len(k.Waiters) > 0 {
		a.Say("\n")
		t := a.Table("PLACE", "WAITER", "MODE", "PRIORITY", "WAITED", "EXPECTED", "PURPOSE")
		for i := range k.Waiters {
			w := &k.Waiters[i]
			expected := "-"
			switch {
			case w.Offered:
				expected = "offered"
			case w.ETA > 0:
				expected = cli.ShortMillis(w.ETA)
			}
			t.Row(
				w.Position, cli.FullName(w.Name), cli.ModeText(w.Mode, w.Count), w.Priority,
				cli.ShortMillis(w.Waited), expected, cli.OrDash(cli.Clean(w.Purpose)),
			)
		}
		if err := t.Write(a.Out); err != nil {
			return err
		}
		if more := k.Length - len(k.Waiters); more > 0 {
			a.Say("and %d more\n", more)
		}
	}
	if len(k.Notes) > 0 {
		a.Say("\n%s\n", a.Tint(cli.Bold, "NOTES"))
		showNotes(a, k.Notes)
	}
	return nil
}

// showNotes prints what earlier holders left, oldest first. It is other agents'
// text, so it is set off from ours.
func showNotes(a *cli.App, notes []api.Note) {
	for i := range notes {
		n := &notes[i]
		head := cli.AgentName(api.Name{Agent: n.Agent}) + ", " + cli.ShortMillis(n.Age) + " ago, fence " + n.Fence.String()
		if outcome := cli.Clean(n.Outcome); outcome != "" {
			head += ", " + outcome
		}
		a.Say("%s\n", a.Tint(cli.Dim, head))
		if n.Text == "" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimRight(cli.CleanLines(n.Text), "\n"), "\n") {
			a.Say("  | %s\n", line)
		}
	}
}
