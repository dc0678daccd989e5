package store

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
	Edition uint64   // how many changes there were
	Changes []change // those that some pools have not followed
	Until   uint64   // the edition that all pools follow after this round of visits
	Left    int      // pools that this round has not visited: the first ones of space.pools
}

// change is one change of the patterns: of them one has gone and another was added, or one
// of both.
type change struct {
	gone, added *Policy
	patterns    []*Policy
	heads       heads
	respells    bool // by one of the patterns, so that any key may fit another one
	at          Time
}

// mostChanges bounds the changes that are not followed everywhere.
const mostChanges = 256

// changeLooks is how many changes that do not concern a key cost as much as one object.
const changeLooks = 16

// MostSorted is how many waiters are sorted outside a visit.
const MostSorted = 16

func (s *Namespace) IsRepooling() bool { return s != nil && len(s.Repooling.Changes) > 0 }

// TooManyChanges returns why the patterns cannot be changed now, or "".
func (s *Namespace) TooManyChanges() *message.Text {
	if s == nil || len(s.Repooling.Changes) < mostChanges {
		return nil
	}
	return message.New(message.TooManyPatternChanges, message.Num(mostChanges), message.Str(s.Name))
}

// repool makes the pools of a namespace follow its new patterns. It revokes no permits, and
// grants waiters that may now have theirs.
func (st *State) repool(s *Namespace, gone, added *Policy, now Time) {
	x := &s.Repooling
	if len(x.Changes) == 0 || len(s.Pools) == 0 {
		*x = poolUpdate{Edition: x.Edition, Until: x.Edition}
	}
	x.Edition++
	if len(s.Pools) == 0 {
		return
	}
	x.Changes = append(x.Changes, change{
		gone: gone, added: added, patterns: s.Patterns, heads: s.heads, at: now,
		respells: slices.ContainsFunc(s.Patterns, (*Policy).isRespelling) || gone.isRespelling(),
	})
	if !st.Live {
		s.RepoolAll()
		return
	}
	if x := s.Agenda.Search; x != nil && x.Stuck != nil {
		x.Dirty = true
	}
	st.SuspectAll(s) // with fewer permits a wait may have lost its alternatives
}

// RepoolAll visits all pools at once, without checking waiters: for replays, and for the
// beginning of a term.
func (s *Namespace) RepoolAll() {
	for _, p := range s.Pools {
		p.CatchUp()
		for p.Mixed {
			p.SortLine(MostSorted)
		}
		p.Stirred = false
	}
	s.Repooling = poolUpdate{Edition: s.Repooling.Edition}
}

// Pool returns the usage of the key, under its present pattern; nil if no counted units of it
// are held or wanted.
func (n *Node) Pool() *Pool {
	if n.pooled != nil {
		n.pooled.CatchUp()
	}
	return n.pooled
}

func (p *Pool) IsBehind() bool { return p.edition != p.Node.NS.Repooling.Edition }

// CatchUp applies all outstanding changes to the pool.
func (p *Pool) CatchUp() {
	if !p.IsBehind() {
		return
	}
	for p.IsBehind() {
		p.Next()
	}
	if p.Mixed {
		p.SortLine(MostSorted)
	}
}

// Next applies the first outstanding changes to the pool: those that do not concern it, and one
// that does.
func (p *Pool) Next() {
	s := p.Node.NS
	x := &s.Repooling
	for looks := 0; p.IsBehind(); looks++ {
		if looks%changeLooks == 0 {
			*s.Agenda.objects++
		}
		c := &x.Changes[len(x.Changes)-int(x.Edition-p.edition)]
		p.edition++
		if !c.respells && !c.added.isFor(p.Node.Key) && !c.gone.isFor(p.Node.Key) {
			continue
		}
		old := p.Policy
		next, _ := fitIn(c.patterns, &c.heads, s.Agenda.objects, interlock.Key(p.Node.Key))
		p.follow(next)
		p.refill(old, c.at)
		p.regroup(old)
		p.Stirred = true
		return
	}
}

// IsFor reports whether a key fits the pattern, be another one more specific or not.
func (p *Policy) isFor(key string) bool {
	if p == nil {
		return false
	}
	_, ok := p.canonical(key)
	return ok
}

// isRespelling reports whether the pattern may map a key to another key, which another pattern
// may cover.
func (p *Policy) isRespelling() bool { return p != nil && (p.respells || len(p.aliases) > 0) }

// unsorted is the highest of the groups of buckets that are to be sorted. Each such bucket has
// a group of its own, which stands for none.
const unsorted = Unlisted - 1

// regroup sets the groups of the queue's buckets to those of the policy that the pool now
// follows, and not the old one. Buckets with waiters that belong in others become unsorted.
func (p *Pool) regroup(old *Policy) {
	l := p.Node.Line
	if l == nil || l.First == nil {
		return
	}
	splits := false // waiters of a group that was not listed may be of one that is
	if p.Policy != nil {
		for i := range p.Policy.Groups {
			splits = splits || old == nil || old.groupIndex(p.Policy.Groups[i].Name) == Unlisted
		}
	}
	var classes []*bucket
	free := int32(unsorted)
	for c := l.First; c != nil; c = c.Next {
		classes = append(classes, c)
		free = min(free, c.Group-1)
	}
	*p.Node.NS.Agenda.objects += len(classes)
	for _, c := range classes {
		if c.Counts != interlock.Permits || c.Group <= unsorted {
			continue
		}
		group := Unlisted
		if c.Group != Unlisted && p.Policy != nil {
			group = p.Policy.groupIndex(old.Groups[c.Group].Name)
		}
		switch {
		case group != Unlisted:
			c.Group = int32(group)
		case c.Group != Unlisted || splits:
			c.Group = free
			free--
			p.Mixed = true
		}
	}
	slices.SortFunc(classes, func(a, b *bucket) int { return a.Kind.Compare(b.Kind) })
	for i, c := range classes {
		if c.Next = nil; i > 0 {
			classes[i-1].Next = c
		}
	}
	l.First = classes[0]
}

// SortLine moves up to so many waiters of unsorted buckets to where they belong.
func (p *Pool) SortLine(most int) {
	l := p.Node.Line
	for n := 0; l != nil; n++ {
		c := l.First
		for c != nil && c.Group > unsorted {
			c = c.Next
			*p.Node.NS.Agenda.objects++
		}
		if c == nil {
			break
		}
		if n == most {
			return
		}
		*p.Node.NS.Agenda.objects++
		x := c.First()
		k := c.Kind
		k.Group = int32(x.Req.GroupAt(&x.Req.Needs()[x.Need]))
		x.move(l.class(k))
	}
	p.Mixed = false
}
