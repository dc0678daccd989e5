package advice

import (
	"cmp"
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
)

// edge is that a key is asked for while another one is held.
type edge struct {
	ns       interlock.Namespace
	from, to interlock.Key
}

// order is how often, with the parties.
type order struct {
	count, waited int
	parties       []party // up to MaxExamples
	examples      []interlock.Index
}

// takes notes the order in which the party of a request takes its keys.
func (r *Reducer) takes(index interlock.Index, l *lease, waits bool) {
	for _, h := range r.held[l.party] {
		for i := range h.claims {
			for k := range l.claims {
				from, to := &h.claims[i], &l.claims[k]
				if from.Mode == interlock.Exclusive && to.Mode == interlock.Exclusive && from.Key != to.Key {
					r.take(edge{l.party.ns, from.Key, to.Key}, index, l.party, waits)
				}
			}
		}
	}
}

func (r *Reducer) take(e edge, index interlock.Index, by party, waits bool) {
	o := r.edges[e]
	if o == nil {
		if len(r.edges) >= MaxEdges {
			r.left++
			return
		}
		o = &order{}
		r.edges[e] = o
	}
	o.count++
	if waits {
		o.waited++
	}
	o.examples = example(o.examples, index)
	if len(o.parties) < MaxExamples && !slices.Contains(o.parties, by) {
		o.parties = append(o.parties, by)
	}
}

// knots returns the sets of keys that are taken in a circle: the strongly connected components of the edges with more
// than one key (Tarjan's algorithm). Keys are sorted.
func (r *Reducer) knots() (list [][]place) {
	next := map[place][]place{}
	for e := range r.edges {
		next[place{e.ns, e.from}] = append(next[place{e.ns, e.from}], place{e.ns, e.to})
	}
	number, low, onStack := map[place]int{}, map[place]int{}, map[place]bool{}
	var stack []place
	var visit func(place)
	visit = func(p place) {
		number[p] = len(number) + 1
		low[p] = number[p]
		stack, onStack[p] = append(stack, p), true
		for _, q := range next[p] {
			if number[q] == 0 {
				visit(q)
				low[p] = min(low[p], low[q])
			} else if onStack[q] {
				low[p] = min(low[p], number[q])
			}
		}
		if low[p] != number[p] {
			return
		}
		i := slices.Index(stack, p)
		knot := slices.Clone(stack[i:])
		stack = stack[:i]
		for _, q := range knot {
			onStack[q] = false
		}
		if len(knot) > 1 {
			slices.SortFunc(knot, comparePlaces)
			list = append(list, knot)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(next), comparePlaces) {
		if number[p] == 0 {
			visit(p)
		}
	}
	return list
}

func comparePlaces(a, b place) int { return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.key, b.key)) }

// orders advises an order for each knot with two parties or more, and with waits or deadlocks.
func (r *Reducer) orders() (list []Advice) {
	for _, knot := range r.knots() {
		inside := map[interlock.Key]int{} // how much more often it is the first than the second
		for _, p := range knot {
			inside[p.key] = 0
		}
		a := Advice{Kind: LockOrder, Namespace: knot[0].ns}
		var edges []edge
		for e := range r.edges {
			_, from := inside[e.from]
			_, to := inside[e.to]
			if e.ns == a.Namespace && from && to {
				edges = append(edges, e)
				inside[e.from] += r.edges[e].count
				inside[e.to] -= r.edges[e].count
			}
		}
		slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to)) })
		for _, p := range knot {
			a.Keys = append(a.Keys, p.key)
			a.Deadlocks = max(a.Deadlocks, r.cycles[p])
			if k := r.keys[p]; k != nil {
				a.Lost += k.lost
			}
		}
		slices.SortStableFunc(a.Keys, func(x, y interlock.Key) int { return cmp.Compare(inside[y], inside[x]) })
		if parties, waited := r.evidence(&a, edges); parties > 1 && waited+a.Deadlocks > 0 {
			list = append(list, a)
		}
	}
	return list
}

// evidence adds the evidence of edges to an advice about an order.
func (r *Reducer) evidence(a *Advice, edges []edge) (parties, waited int) {
	place := map[interlock.Key]int{}
	for i, k := range a.Keys {
		place[k] = i
	}
	var by []party
	for _, e := range edges {
		o := r.edges[e]
		a.Of += o.count
		waited += o.waited
		if place[e.from] > place[e.to] {
			a.Count += o.count
		}
		for _, i := range o.examples[:min(2, len(o.examples))] {
			a.Indexes = example(a.Indexes, i)
		}
		for _, p := range o.parties {
			if !slices.Contains(by, p) {
				by = append(by, p)
			}
			if !slices.Contains(a.Agents, p.agent) && len(a.Agents) < MaxHeld {
				a.Agents = append(a.Agents, p.agent)
			}
		}
	}
	slices.Sort(a.Agents)
	slices.Sort(a.Indexes)
	return len(by), waited
}
