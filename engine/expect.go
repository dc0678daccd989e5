package engine

import "github.com/interlockdev/interlock"

// Expect is told of events that are folded next, and changes nothing. What they are about
// lies far apart in memory, and a fold that looks it up waits for it. Expect looks all of
// it up before: none of its looks waits for another, so the processor does many of them
// in the time of one, and each fold finds in the cache what it needs.
func (e *Engine) Expect(events []Event) {
	var (
		requests glance[*request]
		nodes    glance[*node]
		s        *space
		name     interlock.Namespace
	)
	for i := range events {
		ev := &events[i]
		if s == nil || ev.Namespace != name {
			if s, name = e.spaces[ev.Namespace], ev.Namespace; s == nil {
				continue
			}
		}
		if ev.ID != [16]byte{} {
			requests.at(&s.requests, hashOf(ev.ID))
		}
		for _, c := range ev.Claims {
			for key, more := string(c.Key), true; more; key, more = parentOf(key) {
				nodes.at(&s.nodes, s.salt.hash(key))
			}
		}
	}
	e.seen ^= requests.look() ^ nodes.look()
}

// glance looks at many chains of tables at once: enough of them that the processor has as
// many looks under way as it can.
type glance[M linked[M]] struct {
	firsts [64]*M
	n      int
	seen   uint32 // of no meaning; a look of which nothing were kept would be left out
}

// at has the chain looked at, in which those with a hash are.
func (g *glance[M]) at(t *table[M], hash uint32) {
	if t.n == 0 {
		return
	}
	g.firsts[g.n] = t.chain(hash)
	if g.n++; g.n == len(g.firsts) {
		g.look()
	}
}

// look looks at all that is to be looked at: at the first of each chain, then at the
// second of each that has one, and so on.
func (g *glance[M]) look() uint32 {
	var (
		members [len(g.firsts)]M
		none    M
	)
	for i, first := range g.firsts[:g.n] {
		members[i] = *first
	}
	for g.n > 0 {
		next := 0
		for _, m := range members[:g.n] {
			if m != none {
				g.seen ^= m.hash()
				members[next] = *m.nextOf()
				next++
			}
		}
		g.n = next
	}
	return g.seen
}
