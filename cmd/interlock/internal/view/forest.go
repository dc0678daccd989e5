package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// WaitLine is a line of the wait-for graph as a tree.
type WaitLine struct {
	Indent string // the branches before the name; "" for a root
	Party  api.Party
	How    string // what it waits for, and how; "" for a root
	Waited api.Milliseconds
	Key    string // that it waits for, if it is one
	Again  bool   // its own waiters are shown at an earlier line
}

// WaitTree returns the wait-for graph as a tree: at the left the parties that wait for nothing, below each its
// waiters, the longest waits first.
func WaitTree(edges []api.WaitEdge) []WaitLine {
	f := newForest(edges)
	// Between anonymous agents of one name the answer does not tell, so there can be what looks
	// like a circle. A party that was shown is not opened a second time.
	shown := map[api.Party]bool{}
	for _, root := range f.roots {
		f.root(root, shown)
	}
	for _, blocker := range slices.SortedFunc(maps.Keys(f.below), compareParties) {
		if !shown[blocker] {
			f.root(blocker, shown)
		}
	}
	return f.lines
}

// forest is the wait-for graph made readable. In the graph each waiter has an edge to each
// waiter ahead of it in line too; here it stands below the holders of the key, and below a
// waiter ahead of it only when no holder blocks it.
type forest struct {
	roots []api.Party
	below map[api.Party][]api.WaitEdge // by the target of the wait
	lines []WaitLine
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

func (f *forest) root(of api.Party, shown map[api.Party]bool) {
	f.lines = append(f.lines, WaitLine{Party: of})
	f.branch(of, "", shown)
}

func (f *forest) branch(of api.Party, indent string, shown map[api.Party]bool) {
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
		f.lines = append(f.lines, WaitLine{indent + joint, e.Waiter, how, e.Waited, e.Key, again})
		if !again {
			f.branch(e.Waiter, indent+next, shown)
		}
	}
}
