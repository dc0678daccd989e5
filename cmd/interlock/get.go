package main

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/internal/api"
)

func newGet(a *app) *cobra.Command {
	var resource string
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Show a key: its holders, its line, its notes",
		Long: `Show a key: the holders of it or of a key above or below it, its waiters and their expected
waits, the notes that earlier holders left, and by its key pattern the permits taken and the
tokens left. Parked holders keep the key for a person's decision; closed ones have died, and
the key opens when their lock_delay is over.

With --resource, for a partitioned key: also the part that a resource belongs to, and the
member that has it now.`,
		Example: `  interlock get account:12345
  interlock get queue:orders --resource order:4711`,
		Args:              oneArg("a key"),
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var key keyAnswer
			var query url.Values
			if cmd.Flags().Changed("resource") {
				query = url.Values{"resource": {resource}}
			}
			return a.get(cmd.Context(), keyPath(args[0]), query, &key, func() error { return a.showKey(&key) })
		},
	}
	cmd.Flags().StringVar(&resource, "resource", "", "the `name` of a resource that belongs to a part of the key")
	return cmd
}

func (a *app) showKey(k *keyAnswer) error {
	facts := []string{clean(k.State)}
	if k.Length > 0 {
		facts = append(facts, count(k.Length, "waiter", "waiters"))
	}
	if k.Pattern != "" {
		facts = append(facts, "pattern "+clean(k.Pattern))
	}
	if k.Capacity != nil {
		facts = append(facts, k.Capacity.text())
	}
	if k.Generation > 0 {
		facts = append(facts, "generation "+strconv.FormatUint(k.Generation, 10)+" of a barrier")
	}
	if k.Broken {
		facts = append(facts, "broken: it cannot open again until its holders have released")
	}
	if k.HoldTime > 0 {
		facts = append(facts, "keys like it are usually held for "+short(ms(k.HoldTime)))
	}
	switch {
	case len(k.Holders) > 0:
		facts = append(facts, "lowest fence in force "+k.FenceFloor.String())
	default:
		facts = append(facts, "no fence below "+k.FenceFloor.String()+" is good any more")
	}
	a.say("%s  %s\n", a.tint(bold, clean(string(k.Key))), strings.Join(facts, ", "))

	if p := k.Part; p != nil {
		who := "no member has it at the moment"
		if p.Holder != nil {
			who = p.Holder.full() + " has it, fence " + p.Holder.Fence.String()
		}
		a.say(
			"%s belongs to %s, one of %s: %s\n", clean(p.Resource), clean(string(p.Key)), count(p.Parts, "part", "parts"), who,
		)
	}
	if len(k.Holders) > 0 {
		a.say("\n")
		t := a.table("HOLDER", "KEY", "MODE", "FENCE", "LIVENESS", "HELD", "EXPIRES", "PURPOSE")
		for i := range k.Holders {
			h := &k.Holders[i]
			purpose := clean(h.Purpose)
			if progress := clean(h.Progress); progress != "" {
				purpose = strings.TrimSpace(purpose + " [" + progress + "]")
			}
			t.row(h.full(), clean(string(h.Key)), h.what(h.Mode), h.Fence, cell{clean(h.Liveness), livenessColour(h.Liveness)},
				short(ms(h.Held)), short(ms(h.ExpiresIn)), orDash(purpose))
		}
		if err := t.write(a.out); err != nil {
			return err
		}
		if k.More > 0 {
			a.say("and %d more\n", k.More)
		}
		for i := range k.Holders {
			if h := &k.Holders[i]; h.Yield != nil {
				a.say("%s\n", h.Yield.told(h.name()))
			}
		}
	}
	if len(k.Line) > 0 {
		a.say("\n")
		t := a.table("PLACE", "WAITER", "MODE", "PRIORITY", "WAITED", "EXPECTED", "PURPOSE")
		for i := range k.Line {
			w := &k.Line[i]
			expected := "-"
			switch {
			case w.Offered:
				expected = "offered"
			case w.ETA > 0:
				expected = short(ms(w.ETA))
			}
			t.row(w.Position, w.full(), w.what(w.Mode), w.Priority, short(ms(w.Waited)), expected, orDash(clean(w.Purpose)))
		}
		if err := t.write(a.out); err != nil {
			return err
		}
		if more := k.Length - len(k.Line); more > 0 {
			a.say("and %d more\n", more)
		}
	}
	if len(k.Notes) > 0 {
		a.say("\n%s\n", a.tint(bold, "NOTES"))
		a.showNotes(k.Notes)
	}
	return nil
}

// showNotes prints what earlier holders left, oldest first. It is other agents'
// text, so it is set off from ours.
func (a *app) showNotes(notes []api.Note) {
	for i := range notes {
		n := &notes[i]
		head := party{Agent: n.Agent}.name() + ", " + short(ms(n.Age)) + " ago, fence " + n.Fence.String()
		if outcome := clean(n.Outcome); outcome != "" {
			head += ", " + outcome
		}
		a.say("%s\n", a.tint(dim, head))
		if n.Text == "" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimRight(cleanLines(n.Text), "\n"), "\n") {
			a.say("  | %s\n", line)
		}
	}
}

func newHot(a *app) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "hot",
		Short: "List the busiest keys",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var hot hotAnswer
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			return a.get(cmd.Context(), "/v1/hot", query, &hot, func() error {
				if len(hot.Keys) == 0 {
					a.complain("no key is busy")
					return nil
				}
				t := a.table("KEY", "HOLDERS", "WAITING")
				for _, k := range hot.Keys {
					t.row(clean(string(k.Key)), k.Holders, k.Length)
				}
				return t.write(a.out)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many keys to list at most, up to 100")
	return cmd
}
