package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// A Survey is a query that may have to look at all of a namespace. It does so piece by piece,
// so that the owner of the engine can do other things between: Look continues it, and reports
// whether it is complete. As long as no command of the namespace is carried out meanwhile it
// sees one state, whatever happens in others. A Survey is for one engine and is used once.
type Survey interface {
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
func (e *Engine) turnTo(name interlock.Namespace) *namespace {
	s := e.spaces[name]
	if e.viewed = 0; s != nil {
		e.enter(s.agenda, e.whole.now)
	}
	return s
}

// first keeps those of many that come first in an order.
type first[T any] struct {
	list  []T
	limit int
}

func (f *first[T]) add(v T, order func(a, b T) int) {
	if len(f.list) == f.limit && order(v, f.list[f.limit-1]) > 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(f.list, v, order)
	f.list = slices.Insert(f.list, i, v)
	f.list = f.list[:min(len(f.list), f.limit)]
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
func sift[M any](f *first[M], part func(i int, visit func(M)) bool, next *int, wanted func(M) bool, order func(a, b M) int) (all bool) {
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

	found first[*node]
	next  int
}

func (l *KeyList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Filter.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.nodes.Part, &l.next, l.wants, func(a, b *node) int { return strings.Compare(a.key, b.key) }) {
		return false
	}
	for range glances / MaxShownHolders {
		switch len(l.Rows) {
		case len(l.found.list):
			return true
		case limit:
			l.More = true
			return true
		}
		n := l.found.list[len(l.Rows)]
		v := viewer{e: e, limit: MaxShownHolders}
		v.at(n, ^lockmode.Set(0))
		l.Rows = append(l.Rows, KeyRow{Key: interlock.Key(n.key), Holders: v.holders(), More: v.more, Length: n.line.length()})
	}
	return false
}

func (l *KeyList) wants(n *node) bool {
	f := &l.Filter
	return strings.HasPrefix(n.key, f.Prefix) && n.key > string(f.After) && n.used() &&
		(!f.Held || n.first != nil) && (!f.Waiting || n.line.length() > 0)
}

// HotList lists the keys with the longest lines, then those with the most holders.
type HotList struct {
	Namespace interlock.Namespace
	Limit     int

	Keys []HotKey

	found first[*node]
	next  int
}

func (l *HotList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	l.found.limit = max(1, min(l.Limit, 100))
	if !sift(&l.found, s.nodes.Part, &l.next, (*node).used, hotter) {
		return false
	}
	for _, n := range l.found.list {
		line, holders := n.weight()
		l.Keys = append(l.Keys, HotKey{Key: interlock.Key(n.key), Holders: holders, Length: line})
	}
	return true
}

func hotter(a, b *node) int {
	la, ha := a.weight()
	lb, hb := b.weight()
	return cmp.Or(cmp.Compare(lb, la), cmp.Compare(hb, ha), strings.Compare(a.key, b.key))
}

func (n *node) weight() (line, holders int) { return n.line.length(), n.holders() }

// holders counts the leases that need n in a mode.
func (n *node) holders() (holders int) {
	for _, count := range n.granted {
		holders += int(count)
	}
	return holders
}

// WaitGraph lists the edges of the namespace's wait-for graph, in the order of the waiters'
// arrival and no more than an answer can take. Anonymous waiters are vertices of their own,
// without a session. Those of waiting tasks are left out: a task's own description has its
// blockers.
type WaitGraph struct {
	Namespace interlock.Namespace

	Edges []WaitEdge

	found  first[*request]
	next   int
	awaits int
	shown  int
}

func (g *WaitGraph) Look(e *Engine) (done bool) {
	s := e.turnTo(g.Namespace)
	if s == nil {
		return true
	}
	g.found.limit = maxWaitEdges // each has an edge
	if !sift(&g.found, s.requests.Part, &g.next, (*request).isWaiting, byNumber) || !sift(&g.found, s.tasks.awaits.Part, &g.awaits, (*request).isWaiting, byNumber) {
		return false
	}
	for before := len(g.Edges); len(g.Edges) < before+glances; g.shown++ {
		if g.shown == len(g.found.list) || len(g.Edges) >= maxWaitEdges {
			g.Edges = g.Edges[:min(len(g.Edges), maxWaitEdges)]
			return true
		}
		g.Edges = e.appendWaits(g.Edges, g.found.list[g.shown])
	}
	return false
}

func (r *request) isWaiting() bool { return r.phase == waiting }

func byNumber(a, b *request) int { return cmp.Compare(a.num, b.num) }

// Holdings lists what an agent holds, over all its sessions, in the order of the
// fences.
type Holdings struct {
	Namespace interlock.Namespace
	Agent     string

	Holders []interlock.Holder

	found first[*request]
	next  int
}

func (h *Holdings) Look(e *Engine) (done bool) {
	s := e.turnTo(h.Namespace)
	if s == nil {
		return true
	}
	h.found.limit = maxHoldings
	if !sift(&h.found, s.requests.Part, &h.next, h.wants, byFence) {
		return false
	}
	for _, r := range h.found.list {
		for _, c := range r.claims() {
			if len(h.Holders) < maxHoldings {
				h.Holders = append(h.Holders, e.holder(r, c))
			}
		}
	}
	return true
}

func byFence(a, b *request) int {
	return cmp.Or(cmp.Compare(a.fence, b.fence), cmp.Compare(a.num, b.num))
}

func (h *Holdings) wants(r *request) bool { return r.phase != waiting && r.agentName() == h.Agent }
