package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// row is a line of a view.
type row struct {
	id    string // the same in each picture
	key   string // that Enter and x are about; "" for none
	of    *api.OverviewKey
	cells []cli.Cell
	text  string // that the filter looks at
}

// columnsOf are the columns of a view. A tree has one.
func columnsOf(v string) []column {
	switch v {
	case viewWaits:
		return []column{{title: "WAITS", least: 20}}
	case viewAgents:
		return []column{
			{title: "AGENT", least: 12},
			{title: "HOLDS", right: true},
			{title: "WAITED", right: true},
			{title: "WAITS FOR", least: 10},
			{title: "BLOCKS", right: true},
			{title: "PURPOSE", least: 12, spare: true},
		}
	case viewTrouble:
		return []column{
			{title: "AGO", right: true},
			{title: "EVENT", least: 8},
			{title: "AGENT", least: 8},
			{title: "KEY", least: 12},
			{title: "FENCE", right: true, spare: true},
			{title: "OUTCOME", least: 12, spare: true},
		}
	}
	return []column{
		{title: "KEY", least: 14},
		{title: "WAITING", right: true},
		{title: "LOST", right: true},
		{title: "OLDEST", right: true},
		{title: "HOLDER", least: 8},
		{title: "HELD", right: true},
		{title: "LIVENESS", spare: true},
		{title: "PURPOSE", least: 12, spare: true},
	}
}

// rows are those of the view that the filter leaves.
func (m *model) rows() (list []row) {
	if m.picture == nil {
		return nil
	}
	switch m.view {
	case viewWaits:
		list = m.waitRows()
	case viewAgents:
		list = m.agentRows()
	case viewTrouble:
		list = m.eventRows()
	default:
		list = m.keyRows()
	}
	seen := map[string]int{}
	for i := range list { // agents without a session can have one name
		id := list[i].id
		if seen[id]++; seen[id] > 1 {
			list[i].id += "\x00" + strconv.Itoa(seen[id])
		}
	}
	if m.filter == "" {
		return list
	}
	want := strings.ToLower(m.filter)
	return slices.DeleteFunc(list, func(r row) bool { return !strings.Contains(strings.ToLower(r.text), want) })
}

// oldest are the longest waits, by key.
func (m *model) oldest() map[string]api.Milliseconds {
	oldest := map[string]api.Milliseconds{}
	for i := range m.picture.Edges {
		e := &m.picture.Edges[i]
		oldest[e.Key] = max(oldest[e.Key], e.Waited)
	}
	return oldest
}

func (m *model) keyRows() (list []row) {
	oldest := m.oldest()
	keys := make([]*api.OverviewKey, len(m.picture.Keys))
	for i := range m.picture.Keys {
		keys[i] = &m.picture.Keys[i]
	}
	held := func(k *api.OverviewKey) (longest api.Milliseconds) {
		for i := range k.Row.Holders {
			longest = max(longest, k.Row.Holders[i].Held)
		}
		return longest
	}
	slices.SortStableFunc(keys, func(a, b *api.OverviewKey) int {
		switch m.order {
		case byWaiting:
			return cmp.Compare(b.Row.Length, a.Row.Length)
		case byOldest:
			return cmp.Compare(oldest[string(b.Row.Key)], oldest[string(a.Row.Key)])
		case byHeld:
			return cmp.Compare(held(b), held(a))
		case byKey:
			return cmp.Compare(a.Row.Key, b.Row.Key)
		}
		return 0 // the server's order is that by the lost time
	})
	for _, k := range keys {
		r := row{id: string(k.Row.Key), key: string(k.Row.Key), of: k}
		name, holder, since, liveness, purpose := clean(r.key), "-", "-", cli.Cell{Text: clean(k.Row.State)}, ""
		r.text = name
		for i := range k.Row.Holders {
			h := &k.Row.Holders[i]
			r.text += " " + clean(h.Agent) + " " + clean(h.Purpose)
			if i == 0 {
				holder, since = clean(cli.AgentName(h.Name)), cli.ShortMillis(h.Held)
				liveness, purpose = cli.LivenessCell(h.Liveness), clean(h.Purpose)
			}
		}
		if more := len(k.Row.Holders) - 1 + k.Row.More; more > 0 {
			holder += " +" + strconv.Itoa(more)
		}
		colour := cli.Plain
		if k.Row.Length > 0 {
			colour = cli.Yellow
		}
		r.cells = []cli.Cell{
			cli.Coloured(name, cli.Plain), cli.Coloured(countOrDash(k.Row.Length), colour),
			cli.Coloured(millisOrDash(k.Lost), colour), cli.Coloured(millisOrDash(oldest[r.key]), cli.Plain),
			cli.Coloured(holder, cli.Plain), cli.Coloured(since, cli.Plain), liveness, cli.Coloured(purpose, cli.Dim),
		}
		list = append(list, r)
	}
	return list
}

func countOrDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func millisOrDash(n api.Milliseconds) string {
	if n == 0 {
		return "-"
	}
	return cli.ShortMillis(n)
}

// waitRows are the lines of the tree of waits.
func (m *model) waitRows() (list []row) {
	edges := make([]api.WaitEdge, 0, len(m.picture.Edges))
	for i := range m.picture.Edges {
		e := &m.picture.Edges[i]
		edge := api.WaitEdge{Key: e.Key, Mode: e.Mode, Ahead: e.Ahead, Task: e.Task, Waited: e.Waited}
		edge.Waiter = m.node(e.From)
		if e.To != nil {
			edge.Blocker = m.node(*e.To)
		} else {
			edge.Blocker = api.Party{Task: e.Task}
		}
		edges = append(edges, edge)
	}
	inCycle := map[api.Party]bool{}
	for _, cycle := range m.picture.Cycles {
		for _, n := range cycle {
			inCycle[m.node(n)] = true
		}
	}
	root := ""
	for _, l := range view.WaitTree(edges) {
		name, colour := clean(cli.PartyName(l.Party)), cli.Bold
		if inCycle[l.Party] {
			colour = cli.Red
		}
		text, suffix := name, ""
		if l.Indent == "" {
			root = name
		} else {
			suffix = " " + clean(l.How) + " " + cli.ShortMillis(l.Waited)
			if l.Again {
				suffix += ", see above"
			}
			text = root + " " + name + suffix // a filter for a root blocker leaves its waiters
		}
		list = append(list, row{
			id: root + "\x00" + name + "\x00" + l.Key, key: l.Key, of: m.keyOf(l.Key), text: text,
			cells: []cli.Cell{{Text: l.Indent + name + suffix, Colour: colour}},
		})
	}
	return list
}

// node is a party of the picture.
func (m *model) node(n int) api.Party {
	if n < 0 || n >= len(m.picture.Nodes) {
		return api.Party{}
	}
	return m.picture.Nodes[n]
}

// keyOf is the key of the picture with that name, nil if it has none.
func (m *model) keyOf(key string) *api.OverviewKey {
	for i := range m.picture.Keys {
		if k := &m.picture.Keys[i]; key != "" && string(k.Row.Key) == key {
			return k
		}
	}
	return nil
}

// agentRows are the agents of the picture, the longest waits first, then those that block and hold most.
func (m *model) agentRows() (list []row) {
	type agent struct {
		name, purpose, key string
		other              string // the agent that a declared wait is for, which has no key
		holds              int
		blocks             map[int]bool // nodes that wait for it
		waited             api.Milliseconds
		first              string // a key that it holds
	}
	var agents []*agent
	byName := map[string]*agent{}
	of := func(n api.Name, task string) *agent {
		name := clean(cli.FullName(n))
		if task != "" {
			name = "task " + clean(task)
		}
		a := byName[name]
		if a == nil {
			a = &agent{name: name, blocks: map[int]bool{}}
			byName[name], agents = a, append(agents, a)
		}
		return a
	}
	for i := range m.picture.Keys {
		k := &m.picture.Keys[i].Row
		for j := range k.Holders {
			h := &k.Holders[j]
			a := of(h.Name, "")
			if a.holds++; a.holds == 1 {
				a.purpose, a.first = clean(h.Purpose), string(k.Key)
			}
		}
	}
	for i := range m.picture.Edges {
		e := &m.picture.Edges[i]
		from := m.node(e.From)
		if w := of(from.Name, string(from.Task)); w.key+w.other == "" || e.Waited > w.waited {
			w.key, w.other, w.waited = e.Key, "", e.Waited
			if e.Key == "" && e.To != nil {
				w.other = clean(cli.AgentName(m.node(*e.To).Name))
			}
		}
		if e.To != nil && !e.Ahead {
			to := m.node(*e.To)
			of(to.Name, string(to.Task)).blocks[e.From] = true
		}
	}
	slices.SortStableFunc(agents, func(a, b *agent) int {
		return cmp.Or(
			cmp.Compare(b.waited, a.waited), cmp.Compare(len(b.blocks), len(a.blocks)), cmp.Compare(b.holds, a.holds),
			cmp.Compare(a.name, b.name),
		)
	})
	for _, a := range agents {
		key, wants := cmp.Or(a.key, a.first), cmp.Or(clean(a.key), a.other)
		colour := cli.Plain
		if a.waited > 0 {
			colour = cli.Yellow
		}
		list = append(list, row{
			id: a.name, key: key, of: m.keyOf(key), text: a.name + " " + wants + " " + a.purpose,
			cells: []cli.Cell{
				cli.Coloured(a.name, cli.Plain), cli.Coloured(countOrDash(a.holds), cli.Plain),
				cli.Coloured(millisOrDash(a.waited), colour), cli.Coloured(cli.OrDash(wants), colour),
				cli.Coloured(countOrDash(len(a.blocks)), cli.Plain), cli.Coloured(a.purpose, cli.Dim),
			},
		})
	}
	return list
}

// troubles are the events of the view: kinds, and reasons of ends.
const troubles = "deadlock,revoked,preempted,ttl,max_hold,stall,session_expired,barrier_broken,wait_limit," +
	"refused,closed,task_attempt_failed,yield_requested"

// eventRows are the last hour's troubles, newest first.
func (m *model) eventRows() (list []row) {
	for i := range m.events {
		e := &m.events[i]
		what := e.Event
		if e.Reason != "" {
			what = e.Reason
		}
		key := ""
		if len(e.Claims) > 0 {
			key = string(e.Claims[0].Key)
		}
		keys := clean(key)
		if len(e.Claims) > 1 {
			keys += " +" + strconv.Itoa(len(e.Claims)-1)
		}
		colour := cli.Yellow
		switch what {
		case "deadlock", "revoked", "ttl", "session_expired":
			colour = cli.Red
		}
		fence := "-"
		if e.Fence > 0 {
			fence = e.Fence.String()
		}
		ago := cli.Short(max(m.picture.ServerTime.Sub(e.Time), 0))
		r := row{
			id: e.Index.String() + " " + strconv.Itoa(i), key: key, of: m.keyOf(key),
			cells: []cli.Cell{
				{Text: ago},
				cli.Coloured(clean(what), colour),
				{Text: cli.OrDash(clean(e.Agent))},
				{Text: cli.OrDash(keys)},
				{Text: fence},
				cli.Coloured(clean(e.Outcome), cli.Dim),
			},
		}
		for _, c := range r.cells[1:] {
			r.text += c.Text + " "
		}
		list = append(list, r)
	}
	return list
}
