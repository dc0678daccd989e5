package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// A Scan is a query that may have to look at all of a namespace. It does so piece by piece,
// so that the owner of the engine can do other things between: Look continues it, and reports
// whether it is complete. As long as no command of the namespace is carried out meanwhile it
// sees one state, whatever happens in others. A Scan is for one engine and is used once.
type Scan interface {
	Look(e *Engine) (done bool)
}

const (
	// glances is the number of keys, requests or rows of one Look.
	glances = 256

	// maxWaitEdges bounds an answer about the wait-for graph.
	maxWaitEdges = 10_000

	// maxHoldings bounds an answer about an agent.
	maxHoldings = 1000
)

// turnTo returns a namespace to look at, as of its last command or the last one about
// all namespaces; nil if there is none.
func (e *Engine) turnTo(name interlock.Namespace) *store.Namespace {
	s := e.Namespaces[name]
	if e.Views.Looked = 0; s != nil {
		e.enter(s.Agenda, e.Whole.Clock)
	}
	return s
}

// first keeps those of many that come first in an order.
type first[T any] struct {
	list  []T
	limit int
	shown int // of list
}

func (f *first[T]) add(v T, order func(a, b T) int) {
	if len(f.list) == f.limit && order(v, f.list[f.limit-1]) > 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(f.list, v, order)
	f.list = slices.Insert(f.list, i, v)
	f.list = f.list[:min(len(f.list), f.limit)]
}

// show continues to show the first limit members. Each weighs as much as weight glances. It reports
// whether all are shown, and whether there are more.
func (f *first[T]) show(limit, weight int, row func(T)) (more, done bool) {
	for range glances / weight {
		switch f.shown {
		case len(f.list):
			return false, true
		case limit:
			return true, true
		}
		row(f.list[f.shown])
		f.shown++
	}
	return false, false
}

// rowsOf returns the number of rows of a page: 100 if none is requested, and at most 1000.
func rowsOf(asked int) int {
	if asked <= 0 {
		return 100
	}
	return min(asked, 1000)
}

// sift adds the next members of a set or a table that are wanted, from part *next
// on. It reports whether that was all.
func sift[M any](
	f *first[M], part func(i int, visit func(M)) bool, next *int, wanted func(M) bool, order func(a, b M) int,
) (all bool) {
	look := func(m M) {
		if wanted(m) {
			f.add(m, order)
		}
	}
	for range glances {
		if !part(*next, look) {
			return true
		}
		*next++
	}
	return false
}

// KeyList lists keys in their order.
type KeyList struct {
	Namespace interlock.Namespace
	Filter    KeyFilter

	Rows []KeyRow
	More bool // there are more than the filter's limit

	found first[*store.Node]
	next  int
}

func (l *KeyList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Filter.Limit)
	l.found.limit = limit + 1
	if !sift(
		&l.found, s.Nodes.Part, &l.next, l.wants, func(a, b *store.Node) int { return strings.Compare(a.Key, b.Key) },
	) {
		return false
	}
	l.More, done = l.found.show(limit, MaxShownHolders, func(n *store.Node) {
		v := e.View(MaxShownHolders, nil)
		v.At(n, ^lockmode.Set(0))
		l.Rows = append(
			l.Rows, KeyRow{Key: interlock.Key(n.Key), Holders: v.Holders(), More: v.More, Length: n.Line.Length()},
		)
	})
	return done
}

func (l *KeyList) wants(n *store.Node) bool {
	f := &l.Filter
	return strings.HasPrefix(n.Key, f.Prefix) && n.Key > string(f.After) && n.Used() &&
		(!f.Held || n.First != nil) && (!f.Waiting || n.Line.Length() > 0)
}

// HotList lists the keys with the longest lines, then those with the most holders.
type HotList struct {
	Namespace interlock.Namespace
	Limit     int

	Keys []HotKey

	found first[*store.Node]
	next  int
}

func (l *HotList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	l.found.limit = max(1, min(l.Limit, 100))
	if !sift(&l.found, s.Nodes.Part, &l.next, (*store.Node).Used, hotter) {
		return false
	}
	for _, n := range l.found.list {
		line, holders := n.Weight()
		l.Keys = append(l.Keys, HotKey{Key: interlock.Key(n.Key), Holders: holders, Length: line})
	}
	return true
}

func hotter(a, b *store.Node) int {
	la, ha := a.Weight()
	lb, hb := b.Weight()
	return cmp.Or(cmp.Compare(lb, la), cmp.Compare(hb, ha), strings.Compare(a.Key, b.Key))
}

// WaitGraph lists the edges of the namespace's wait-for graph, in the order of the waiters'
// arrival and no more than an answer can take. Anonymous waiters are vertices of their own,
// without a session. Those of waiting tasks are left out: a task's own description has its
// blockers.
type WaitGraph struct {
	Namespace interlock.Namespace
	Limit     int // of the edges; 0: 10,000

	Edges []WaitEdge

	found  first[*store.Request]
	next   int
	awaits int
}

func (g *WaitGraph) Look(e *Engine) (done bool) {
	s := e.turnTo(g.Namespace)
	if s == nil {
		return true
	}
	limit := g.Limit
	if limit == 0 {
		limit = maxWaitEdges
	}
	g.found.limit = limit // each has an edge
	waits := func(i int, visit func(*store.Request)) bool {
		return s.Waits.Part(i, func(w *store.Wait) { visit(w.Req()) })
	}
	if !sift(&g.found, waits, &g.next, (*store.Request).IsWaiting, store.ByNumber) ||
		!sift(&g.found, s.Tasks.Awaits.Part, &g.awaits, (*store.Request).IsWaiting, store.ByNumber) {
		return false
	}
	for before := len(g.Edges); len(g.Edges) < before+glances; g.found.shown++ {
		if g.found.shown == len(g.found.list) || len(g.Edges) >= limit {
			g.Edges = g.Edges[:min(len(g.Edges), limit)]
			return true
		}
		g.Edges = appendWaits(g.Edges, g.found.list[g.found.shown])
	}
	return false
}

// Holdings lists the keys that an agent holds, over all its sessions, in the order of the
// fences.
type Holdings struct {
	Namespace interlock.Namespace
	Agent     string

	Holders []interlock.Holder

	found first[*store.Request]
	next  int
}

func (h *Holdings) Look(e *Engine) (done bool) {
	s := e.turnTo(h.Namespace)
	if s == nil {
		return true
	}
	h.found.limit = maxHoldings
	if !sift(&h.found, s.Requests.Part, &h.next, h.wants, byFence) {
		return false
	}
	for _, r := range h.found.list {
		for _, c := range r.Claims() {
			if len(h.Holders) < maxHoldings {
				h.Holders = append(h.Holders, r.Holder(c))
			}
		}
	}
	return true
}

func byFence(a, b *store.Request) int {
	return cmp.Or(cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.Num, b.Num))
}

func (h *Holdings) wants(r *store.Request) bool {
	return r.Phase != store.Waiting && r.AgentName() == h.Agent
}

// appendWaits adds the edges of one waiter.
func appendWaits(edges []WaitEdge, r *store.Request) []WaitEdge {
	if r.Target != nil {
		edges = append(edges, WaitEdge{
			Waiter: partyOf(r), Blocker: FlowRef{Agent: r.Target.Agent, Session: r.Target.Name, Flow: r.TargetFlow},
			Waited: r.NS.Now().Sub(r.Arrived()),
		})
	}
	if r.Follows() {
		edges = appendAwaited(edges, r.Awaited)
	}
	for way := range r.EachAlternative {
		for i := range way.Needs() {
			if len(edges) < maxWaitEdges {
				edges = appendEdges(edges, way, &way.Needs()[i])
			}
		}
	}
	return edges
}

func appendEdges(edges []WaitEdge, r *store.Request, m *store.Need) []WaitEdge {
	add := func(other *store.Request, has interlock.Claim, ahead bool) {
		if other.SameParty(r) {
			return
		}
		edge := WaitEdge{
			Waiter: partyOf(r), Blocker: partyOf(other), Key: r.Claims()[m.Claim].Key, Mode: r.Claims()[m.Claim].Mode,
			Has: has, Ahead: ahead, Waited: r.NS.Now().Sub(r.Arrived()),
		}
		edge.Waiter.Request, edge.Blocker.Request = r.Num, other.Num
		edges = append(edges, edge)
	}
	against := lockmode.Conflicts[m.Mode]
	if against&m.Node.Modes != 0 {
		v := r.NS.Agenda.View(maxWaitEdges, nil)
		v.At(m.Node, against)
		if m.Claimed { // an intent conflicts with nothing below
			v.Below(m.Node, against)
		}
		for i, h := range v.Found {
			add(h, v.Via[i].Shown(), false)
		}
	}
	for _, x := range r.Absent(m) {
		add(x, x.Barrier().Shown(), false)
	}
	short := store.Enough
	if m.Counts == interlock.Permits {
		short = r.Short(m)
	}
	if short == store.ShortOfPermits {
		for h := m.Node.First; h != nil && len(edges) < maxWaitEdges; h = h.Next {
			if h.Counts == interlock.Permits {
				add(h.Req, h.Shown(), false)
			}
		}
	}
	for c := m.Node.Line.First; c != nil; c = c.Next {
		if !against.Has(c.Mode) && (short == store.Enough || c.Counts != interlock.Permits) || c.IsAsideFor(r) {
			continue
		}
		for p := c.First(); p != nil && store.Before(p.Req, r) && len(edges) < maxWaitEdges; p = p.Next() {
			if !p.Duplicate {
				add(p.Req, p.Req.ClaimAt(int(p.Need)), true)
			}
		}
	}
	return edges
}

// appendAwaited adds the edge of a follower of a task and, once, those of the task if it stands
// in line.
func appendAwaited(edges []WaitEdge, f *store.Follower) []WaitEdge {
	edge := WaitEdge{Waiter: partyOf(f.Wait), Task: f.Task.ID, Waited: f.Wait.NS.Now().Sub(f.Wait.Arrived())}
	r := f.Stands()
	if r == nil {
		return append(edges, edge)
	}
	edge.Blocker = partyOf(r)
	edge.Blocker.Request = r.Num
	edges = append(edges, edge)
	if r.Phase == store.Waiting && f.Task.FirstToWait() == f {
		edges = appendWaits(edges, r)
	}
	return edges
}
