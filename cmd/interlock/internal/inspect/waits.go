package inspect

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

func newWaits(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "waits",
		Short: "Show the wait-for graph as a tree",
		Long: `Show the wait-for graph as a tree: at the left the holders that wait for nothing, below each
its waiters, and so on.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var answer api.Waits
			return a.Get(cmd.Context(), "/v1/waits", nil, &answer, func() error {
				if len(answer.Edges) == 0 {
					a.Complain("no waiters")
					return nil
				}
				newForest(answer.Edges).show(a)
				return nil
			})
		},
	}
}

// forest is the wait-for graph made readable. In the graph each waiter has an edge to each
// waiter ahead of it in line too; here it stands below the holders of the key, and below a
// waiter ahead of it only when no holder blocks it.
type forest struct {
	roots []api.Party
	below map[api.Party][]api.WaitEdge // by the target of the wait
}

func newForest(edges []api.WaitEdge) *forest {
	direct := map[api.Party]bool{}         // waits for a holder
	ofSession := map[api.Party]api.Party{} // the flow of a session that waits
	for _, e := range edges {
		if !e.Ahead {
			direct[e.Waiter] = true
		}
		whole := api.Party{Name: api.Name{Agent: e.Waiter.Agent, Session: e.Waiter.Session}}
		if _, known := ofSession[whole]; whole.Session != "" && !known {
			ofSession[whole] = e.Waiter
		}
	}
	f := &forest{below: map[api.Party][]api.WaitEdge{}}
	waits := map[api.Party]bool{}
	for _, e := range edges {
		waits[e.Waiter] = true
		if flow, ok := ofSession[e.Blocker]; ok { // a wait for a session as a whole
			e.Blocker = flow
		}
		if e.Ahead && direct[e.Waiter] || slices.Contains(f.below[e.Blocker], e) {
			continue
		}
		f.below[e.Blocker] = append(f.below[e.Blocker], e)
	}
	for blocker, list := range f.below {
		slices.SortStableFunc(list, func(a, b api.WaitEdge) int {
			return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.Key, b.Key), compareParties(a.Waiter, b.Waiter))
		})
		if !waits[blocker] {
			f.roots = append(f.roots, blocker)
		}
	}
	slices.SortFunc(f.roots, compareParties)
	return f
}

func compareParties(a, b api.Party) int {
	return cmp.Or(
		cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Flow, b.Flow),
		cmp.Compare(a.Task, b.Task),
	)
}

func (f *forest) show(a *cli.App) {
	// Between anonymous agents of one name the answer does not tell, so there can be what looks
	// like a circle. A party that was shown is not opened a second time.
	shown := map[api.Party]bool{}
	for _, root := range f.roots {
		a.Say("%s\n", a.Tint(cli.Bold, cli.PartyName(root)))
		f.branch(a, root, "", shown)
	}
	for blocker := range f.below {
		if !shown[blocker] {
			a.Say("%s\n", a.Tint(cli.Bold, cli.PartyName(blocker)))
			f.branch(a, blocker, "", shown)
		}
	}
}

func (f *forest) branch(a *cli.App, of api.Party, indent string, shown map[api.Party]bool) {
	shown[of] = true
	list := f.below[of]
	for i, e := range list {
		joint, next := "├─ ", "│  "
		if i == len(list)-1 {
			joint, next = "└─ ", "   "
		}
		how := "waits for " + cli.Clean(e.Key) + " (" + cli.Clean(e.Mode) + ")"
		switch {
		case e.Task != "" && e.Task == e.Blocker.Task:
			how = "waits for its end"
		case e.Task != "":
			how = "waits for the end of task " + cli.Clean(e.Task)
		case e.Key == "":
			how = "waits for it, as it declared"
		case e.Ahead:
			how = "waits behind it for " + cli.Clean(e.Key) + " (" + cli.Clean(e.Mode) + ")"
		}
		again := shown[e.Waiter] && len(f.below[e.Waiter]) > 0
		suffix := ""
		if again {
			suffix = ", see above"
		}
		a.Say(
			"%s%s%s %s %s%s\n", indent, joint, a.Tint(cli.Bold, cli.PartyName(e.Waiter)), how, cli.ShortMillis(e.Waited), suffix,
		)
		if !again {
			f.branch(a, e.Waiter, indent+next, shown)
		}
	}
}
