package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
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

// used reports whether the key itself is claimed, by a holder or a waiter.
func (n *node) used() bool { return n.first != nil || n.line != nil && n.line.claimed > 0 }

// appendWaits adds the edges of one waiter.
func (e *Engine) appendWaits(edges []WaitEdge, r *request) []WaitEdge {
	if r.target != nil {
		edges = append(edges, WaitEdge{
			Waiter: partyOf(r), Blocker: FlowRef{Agent: r.target.agent, Session: r.target.name, Flow: r.targetFlow},
			Waited: e.now.Sub(r.arrived()),
		})
	}
	if r.follows() {
		edges = e.appendAwaited(edges, r.awaited)
	}
	for way := range r.eachAlternative {
		for i := range way.needs() {
			if len(edges) < maxWaitEdges {
				edges = e.appendEdges(edges, way, &way.needs()[i])
			}
		}
	}
	return edges
}

func (e *Engine) appendEdges(edges []WaitEdge, r *request, m *need) []WaitEdge {
	add := func(other *request, has interlock.Claim, ahead bool) {
		if other.sameParty(r) {
			return
		}
		edge := WaitEdge{
			Waiter: partyOf(r), Blocker: partyOf(other), Key: r.claims()[m.claim].Key, Mode: r.claims()[m.claim].Mode,
			Has: has, Ahead: ahead, Waited: e.now.Sub(r.arrived()),
		}
		edge.Waiter.Request, edge.Blocker.Request = r.num, other.num
		edges = append(edges, edge)
	}
	against := lockmode.Conflicts[m.mode]
	if against&m.node.modes != 0 {
		v := viewer{e: e, limit: maxWaitEdges}
		v.at(m.node, against)
		if m.claimed { // an intent conflicts with nothing below
			v.below(m.node, against)
		}
		for i, h := range v.found {
			add(h, v.via[i].shown(), false)
		}
	}
	for _, x := range r.absent(m) {
		add(x, x.barrier().shown(), false)
	}
	short := enough
	if m.counts == interlock.Permits {
		short = r.short(m)
	}
	if short == shortOfPermits {
		for h := m.node.first; h != nil && len(edges) < maxWaitEdges; h = h.next {
			if h.counts == interlock.Permits {
				add(h.req, h.shown(), false)
			}
		}
	}
	for c := m.node.line.first; c != nil; c = c.next {
		if !against.Has(c.mode) && (short == enough || c.counts != interlock.Permits) || c.isAsideFor(r) {
			continue
		}
		for p := c.first(); p != nil && before(p.req, r) && len(edges) < maxWaitEdges; p = p.next() {
			if !p.duplicate {
				add(p.req, p.req.claimAt(int(p.need)), true)
			}
		}
	}
	return edges
}
