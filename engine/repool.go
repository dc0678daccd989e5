package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// How a changed pattern reaches the pools of the keys under it, which may be very many, each
// with very many waiters.
//
//	patterns   edition 7 ──────── change ──────── change ───── edition 9
//	pools      3 follow 7    ...catch up, one after the other...     all follow 9
//
// A change is recorded, and steps that are due at once visit the pools. A pool that a command
// meets earlier catches up first, so no command ever sees one that follows the old pattern. It
// catches up change by change, each at its own time: its bucket is then as full as if it had
// been visited at that time, and a replay, which visits all pools with the change itself,
// reaches the same state. That costs no more than the groups and buckets that a pattern bounds.
// Permits in use are counted by the names of all groups, so they need not be counted again.
//
// Waiters are different. They stand in buckets by the groups that the pattern lists. When it
// lists a new group, the bucket of all others may have waiters of that group, and only the
// visit sorts them, as many as a step may. Until then no permits are granted by the shares of
// groups at this key: requests wait for the next steps. After its visit all waiters that may
// now be granted are checked.

// poolUpdate is the pools of a namespace that still have to follow its patterns.
type poolUpdate struct {
	edition uint64   // how many changes there were
	changes []change // those that some pools have not followed
	until   uint64   // the edition that all pools follow after this round of visits
	left    int      // pools that this round has not visited: the first ones of space.pools
}

// change is one change of the patterns: of them one has gone and another was added, or one
// of both.
type change struct {
	gone, added *policy
	patterns    []*policy
	heads       heads
	respells    bool // by one of the patterns, so that any key may fit another one
	at          Time
}

// mostChanges bounds the changes that are not followed everywhere.
const mostChanges = 256

// changeLooks is how many changes that do not concern a key cost as much as one object.
const changeLooks = 16

// mostSorted is how many waiters are sorted outside a visit.
const mostSorted = 16

func (s *namespace) isRepooling() bool { return s != nil && len(s.repooling.changes) > 0 }

// tooManyChanges returns why the patterns cannot be changed now, or "".
func (s *namespace) tooManyChanges() *message.Text {
	if s == nil || len(s.repooling.changes) < mostChanges {
		return nil
	}
	return message.New(message.TooManyPatternChanges, message.Num(mostChanges), message.Str(s.name))
}

// repool makes the pools of a namespace follow its new patterns. It revokes no permits, and
// grants waiters that may now have theirs.
func (e *State) repool(s *namespace, gone, added *policy, now Time) {
	x := &s.repooling
	if len(x.changes) == 0 || len(s.pools) == 0 {
		*x = poolUpdate{edition: x.edition, until: x.edition}
	}
	x.edition++
	if len(s.pools) == 0 {
		return
	}
	x.changes = append(x.changes, change{
		gone: gone, added: added, patterns: s.patterns, heads: s.heads, at: now,
		respells: slices.ContainsFunc(s.patterns, (*policy).isRespelling) || gone.isRespelling(),
	})
	if !e.live {
		s.repoolAll()
		return
	}
	if x := s.agenda.search; x != nil && x.stuck != nil {
		x.dirty = true
	}
	e.suspectAll(s) // with fewer permits a wait may have lost its alternatives
}

// repoolAll visits all pools at once, without checking waiters: for replays, and for the
// beginning of a term.
func (s *namespace) repoolAll() {
	for _, p := range s.pools {
		p.catchUp()
		for p.mixed {
			p.sortLine(mostSorted)
		}
		p.stirred = false
	}
	s.repooling = poolUpdate{edition: s.repooling.edition}
}

// repoolMore continues the visits, as far as the step may.
func (e *Engine) repoolMore() {
	s := e.pendingWork.ns
	x := &s.repooling
	for !e.full() {
		x.left = min(x.left, len(s.pools)) // new ones need no visit, and one that goes leaves its seat to the last
		if x.left > 0 {
			if e.objects++; e.visit(s.pools[x.left-1]) {
				x.left--
			}
			continue
		}
		x.changes = slices.Delete(x.changes, 0, len(x.changes)-int(x.edition-x.until))
		if len(x.changes) == 0 {
			x.changes = nil
			return
		}
		x.left, x.until = len(s.pools), x.edition
	}
}

// visit makes a pool follow the patterns, checks the waiters in its line, and reports whether
// it is done. It makes progress however little the step may do.
func (e *Engine) visit(p *pool) bool {
	for p.isBehind() {
		if p.next(); e.full() {
			return false
		}
	}
	for p.mixed {
		if p.sortLine(mostSorted); e.full() {
			return false
		}
	}
	if p.stirred && p.node.line != nil {
		for c := p.node.line.first; c != nil; c = c.next {
			e.objects++
			if c.counts == interlock.Permits {
				e.readyClass(c)
			}
		}
	}
	p.stirred = false
	return true
}

// pool returns the usage of the key, under its present pattern; nil if no counted units of it
// are held or wanted.
func (n *node) pool() *pool {
	if n.pooled != nil {
		n.pooled.catchUp()
	}
	return n.pooled
}

func (p *pool) isBehind() bool { return p.edition != p.node.ns.repooling.edition }

// catchUp applies all outstanding changes to the pool.
func (p *pool) catchUp() {
	if !p.isBehind() {
		return
	}
	for p.isBehind() {
		p.next()
	}
	if p.mixed {
		p.sortLine(mostSorted)
	}
}

// next applies the first outstanding changes to the pool: those that do not concern it, and one
// that does.
func (p *pool) next() {
	s := p.node.ns
	x := &s.repooling
	for looks := 0; p.isBehind(); looks++ {
		if looks%changeLooks == 0 {
			*s.agenda.objects++
		}
		c := &x.changes[len(x.changes)-int(x.edition-p.edition)]
		p.edition++
		if !c.respells && !c.added.isFor(p.node.key) && !c.gone.isFor(p.node.key) {
			continue
		}
		old := p.policy
		next, _ := fitIn(c.patterns, &c.heads, s.agenda.objects, interlock.Key(p.node.key))
		p.follow(next)
		p.refill(old, c.at)
		p.regroup(old)
		p.stirred = true
		return
	}
}

// isFor reports whether a key fits the pattern, be another one more specific or not.
func (p *policy) isFor(key string) bool {
	if p == nil {
		return false
	}
	_, ok := p.canonical(key)
	return ok
}

// isRespelling reports whether the pattern may map a key to another key, which another pattern
// may cover.
func (p *policy) isRespelling() bool { return p != nil && (p.respells || len(p.aliases) > 0) }

// unsorted is the highest of the groups of buckets that are to be sorted. Each such bucket has
// a group of its own, which stands for none.
const unsorted = unlisted - 1

// regroup sets the groups of the queue's buckets to those of the policy that the pool now
// follows, and not the old one. Buckets with waiters that belong in others become unsorted.
func (p *pool) regroup(old *policy) {
	l := p.node.line
	if l == nil || l.first == nil {
		return
	}
	splits := false // waiters of a group that was not listed may be of one that is
	if p.policy != nil {
		for i := range p.policy.Groups {
			splits = splits || old == nil || old.groupIndex(p.policy.Groups[i].Name) == unlisted
		}
	}
	var classes []*bucket
	free := int32(unsorted)
	for c := l.first; c != nil; c = c.next {
		classes = append(classes, c)
		free = min(free, c.group-1)
	}
	*p.node.ns.agenda.objects += len(classes)
	for _, c := range classes {
		if c.counts != interlock.Permits || c.group <= unsorted {
			continue
		}
		group := unlisted
		if c.group != unlisted && p.policy != nil {
			group = p.policy.groupIndex(old.Groups[c.group].Name)
		}
		switch {
		case group != unlisted:
			c.group = int32(group)
		case c.group != unlisted || splits:
			c.group = free
			free--
			p.mixed = true
		}
	}
	slices.SortFunc(classes, func(a, b *bucket) int { return a.kind.compare(b.kind) })
	for i, c := range classes {
		if c.next = nil; i > 0 {
			classes[i-1].next = c
		}
	}
	l.first = classes[0]
}

// sortLine moves up to so many waiters of unsorted buckets to where they belong.
func (p *pool) sortLine(most int) {
	l := p.node.line
	for n := 0; l != nil; n++ {
		c := l.first
		for c != nil && c.group > unsorted {
			c = c.next
			*p.node.ns.agenda.objects++
		}
		if c == nil {
			break
		}
		if n == most {
			return
		}
		*p.node.ns.agenda.objects++
		x := c.first()
		k := c.kind
		k.group = int32(x.req.groupAt(&x.req.needs()[x.need]))
		x.move(l.class(k))
	}
	p.mixed = false
}
