package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// maxWaitEdges bounds an answer about the wait-for graph.
const maxWaitEdges = 10_000

// Key describes one key. The error is ParseKey's.
func (e *Engine) Key(ns interlock.Namespace, key interlock.Key) (KeyView, error) {
	v := KeyView{Key: key, FenceFloor: e.fence + 1}
	if _, err := ParseKey(string(key)); err != nil {
		return v, err
	}
	s := e.spaces[ns]
	if s == nil {
		return v, nil
	}
	if p, canonical := s.fit(key); p != nil {
		key, v.Key, v.Pattern = canonical, canonical, p.Name
		v.Capacity = s.capacity(string(key), e.now)
	}
	v.HoldTime = s.holds[classOf(string(key))]
	view := viewer{e: e, limit: MaxShownHolders}
	n := s.nodes[string(key)]
	if n != nil {
		view.at(n, ^modeSet(0))
		view.below(n, ^modeSet(0))
		view.above(n)
		v.Notes = e.appendNotes(nil, n)
		v.Waiters, v.Length = e.waitersAt(n), n.line.length()
	} else if up := s.nearest(string(key)); up != nil {
		view.at(up, setOf(sh, six, ex))
		view.above(up)
	}
	v.Holders, v.More = view.holders(), view.more
	v.Generation = n.generation()
	if floor := s.fenceFloor(string(key)); floor > 0 {
		v.FenceFloor = floor
	}
	return v, nil
}

// fenceFloor gives the lowest fence of those who claim a key, or an ancestor of it
// in a mode that reaches down; 0 when nobody does.
func (s *space) fenceFloor(key string) (floor interlock.Fence) {
	modes := ^modeSet(0)
	for {
		if n := s.nodes[key]; n != nil {
			for h := n.first; h != nil; h = h.next {
				if modes.has(h.mode) {
					if floor == 0 || h.req.fence < floor {
						floor = h.req.fence
					}
					break // they are in the order of their fences
				}
			}
		}
		parent, ok := parentOf(key)
		if !ok {
			return floor
		}
		key, modes = parent, setOf(sh, six, ex)
	}
}

// nearest gives the closest ancestor of key that has a node, or nil.
func (s *space) nearest(key string) *node {
	for {
		parent, ok := parentOf(key)
		if !ok {
			return nil
		}
		if n := s.nodes[parent]; n != nil {
			return n
		}
		key = parent
	}
}

// waitersAt lists who waits at n, offers first, then the line in its order.
func (e *Engine) waitersAt(n *node) (list []WaiterView) {
	for h := n.first; h != nil && len(list) < MaxShownWaiters; h = h.next {
		if h.req.phase == offered {
			w := e.waiter(h.req, h.modeOf())
			w.Count = h.req.countOf(h)
			list = append(list, w)
		}
	}
	if n.line == nil {
		return list
	}
	var heads []*place
	for c := n.line.first; c != nil; c = c.next {
		heads = append(heads, c.first())
	}
	for len(list) < MaxShownWaiters {
		best := -1
		for i, p := range heads {
			if p != nil && (best < 0 || before(p.req, heads[best].req)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		p := heads[best]
		heads[best] = p.next()
		if p.twin {
			continue
		}
		m := &p.req.needs[p.need]
		w := e.waiter(p.req, m.modeOf())
		w.Count = p.count
		ahead := m.before()
		w.Position, w.ETA = ahead+1, e.eta(p.req, m, ahead)
		list = append(list, w)
	}
	return list
}

func (e *Engine) waiter(r *request, mode interlock.Mode) WaiterView {
	w := WaiterView{
		Agent: r.agentName(), Flow: r.flowName(), Purpose: r.purpose, Mode: mode, Priority: int(r.priority),
		Offered: r.phase == offered, Waited: r.waited,
	}
	if r.wait != nil {
		w.Waited, w.Priority = e.now.Sub(r.wait.arrived), int(r.wait.rank-baseRank)
	}
	if s := r.session(); s != nil {
		w.Session = s.name
	}
	return w
}

// Keys lists keys in their order.
func (e *Engine) Keys(ns interlock.Namespace, f KeyFilter) (rows []KeyRow, more bool) {
	s := e.spaces[ns]
	if s == nil {
		return nil, false
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, 1000)
	wanted := func(n *node) bool {
		key := n.key
		return strings.HasPrefix(key, f.Prefix) && key > string(f.After) && n.used() &&
			(!f.Held || n.first != nil) && (!f.Waiting || n.line.length() > 0)
	}
	for _, n := range smallest(s.nodes, limit+1, wanted, func(a, b *node) int { return strings.Compare(a.key, b.key) }) {
		if len(rows) == limit {
			return rows, true
		}
		v := viewer{e: e, limit: MaxShownHolders}
		v.at(n, ^modeSet(0))
		rows = append(rows, KeyRow{Key: interlock.Key(n.key), Holders: v.holders(), More: v.more, Length: n.line.length()})
	}
	return rows, false
}

// used reports whether somebody claims the very key, or waits to.
func (n *node) used() bool {
	if n.first != nil {
		return true
	}
	if n.line == nil {
		return false
	}
	for c := n.line.first; c != nil; c = c.next {
		for p := c.first(); p != nil; p = p.next() {
			if p.req.needs[p.need].claimed {
				return true
			}
		}
	}
	return false
}

// smallest gives the count smallest nodes that are wanted, in order. What it
// returns does not depend on the order of the map, because less is total.
func smallest(nodes map[string]*node, count int, wanted func(*node) bool, order func(a, b *node) int) []*node {
	best := make([]*node, 0, count+1)
	consider := func(n *node) bool {
		if !wanted(n) || len(best) == count && order(n, best[count-1]) > 0 {
			return true
		}
		i, _ := slices.BinarySearchFunc(best, n, order)
		best = slices.Insert(best, i, n)
		best = best[:min(len(best), count)]
		return true
	}
	maps.Values(nodes)(consider)
	return best
}

// Hot lists the keys with the longest lines, then those with the most holders.
func (e *Engine) Hot(ns interlock.Namespace, limit int) (list []HotKey) {
	s := e.spaces[ns]
	if s == nil {
		return nil
	}
	weight := func(n *node) (line, holders int) {
		for _, count := range n.granted {
			holders += int(count)
		}
		return n.line.length(), holders
	}
	busy := smallest(s.nodes, max(1, min(limit, 100)), (*node).used, func(a, b *node) int {
		la, ha := weight(a)
		lb, hb := weight(b)
		return cmp.Or(cmp.Compare(lb, la), cmp.Compare(hb, ha), strings.Compare(a.key, b.key))
	})
	for _, n := range busy {
		line, holders := weight(n)
		list = append(list, HotKey{Key: interlock.Key(n.key), Holders: holders, Length: line})
	}
	return list
}

// Waits gives the edges of the namespace's wait-for graph, at most maxWaitEdges,
// in the order of the waiters' arrival. Anonymous waiters are parties of their own,
// without a session.
func (e *Engine) Waits(ns interlock.Namespace) (edges []WaitEdge) {
	s := e.spaces[ns]
	if s == nil {
		return nil
	}
	for _, r := range s.sortedRequests() {
		if r.phase != waiting {
			continue
		}
		if r.target != nil && len(edges) < maxWaitEdges {
			edges = append(edges, WaitEdge{
				Waiter: partyOf(r), Blocker: Party{Agent: r.target.agent, Session: r.target.name, Flow: r.targetFlow},
				Waited: e.now.Sub(r.wait.arrived),
			})
		}
		for way := range r.ways {
			for i := range way.needs {
				if len(edges) >= maxWaitEdges {
					return edges
				}
				edges = e.appendEdges(edges, way, &way.needs[i])
			}
		}
	}
	return edges
}

func (e *Engine) appendEdges(edges []WaitEdge, r *request, m *need) []WaitEdge {
	add := func(other *request, ahead bool) {
		if other.sameParty(r) {
			return
		}
		edge := WaitEdge{
			Waiter: partyOf(r), Blocker: partyOf(other), Key: r.claims[m.claim].Key, Mode: r.claims[m.claim].Mode,
			Ahead: ahead, Waited: e.now.Sub(r.wait.arrived),
		}
		edge.Waiter.Request, edge.Blocker.Request = r.num, other.num
		edges = append(edges, edge)
	}
	against := conflicts[m.mode]
	if against&m.node.modes != 0 {
		v := viewer{e: e, limit: maxWaitEdges}
		v.at(m.node, against)
		if m.claimed { // an intent conflicts with nothing below
			v.below(m.node, against)
		}
		for _, h := range v.found {
			add(h, false)
		}
	}
	for _, x := range r.absent(m) {
		add(x, false)
	}
	short := enough
	if m.counts == interlock.Permits {
		short = r.short(m)
	}
	if short == shortOfPermits {
		for h := m.node.first; h != nil && len(edges) < maxWaitEdges; h = h.next {
			if h.counts == interlock.Permits {
				add(h.req, false)
			}
		}
	}
	for c := m.node.line.first; c != nil; c = c.next {
		if !against.has(c.mode) && (short == enough || c.counts != interlock.Permits) {
			continue
		}
		for p := c.first(); p != nil && before(p.req, r) && len(edges) < maxWaitEdges; p = p.next() {
			if !p.twin {
				add(p.req, true)
			}
		}
	}
	return edges
}

func partyOf(r *request) Party {
	p := Party{Agent: r.agentName(), Flow: r.flowName()}
	if s := r.session(); s != nil {
		p.Session = s.name
	}
	return p
}

// AgentHolds lists what an agent holds, over all its sessions, in the order of
// the fences.
func (e *Engine) AgentHolds(ns interlock.Namespace, agent string) (list []interlock.Holder) {
	s := e.spaces[ns]
	if s == nil {
		return nil
	}
	mine := slices.DeleteFunc(slices.Collect(maps.Values(s.requests)), func(r *request) bool {
		return r.phase == waiting || r.phase == over || r.agentName() != agent
	})
	slices.SortFunc(mine, func(a, b *request) int { return cmp.Compare(a.fence, b.fence) })
	for _, r := range mine {
		for _, c := range r.claims {
			if len(list) < 1000 {
				list = append(list, e.holder(r, c))
			}
		}
	}
	return list
}
