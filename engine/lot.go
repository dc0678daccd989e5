package engine

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// Which tasks that could run a worker may hold.
//
// A worker gets a task only if its principal may act for the task's group and may claim, by the
// patterns' Allow lists, all of the task's claims. The tasks of a queue that could run are
// sorted into lots: those of one lot are under the same rules, so one check tells whether a
// worker may hold them. In each lot the groups take turns; within a group the order is that of
// the lines.
//
//	queue ─┬─ lot "no rules"            ─┬─ shelf of group a: tasks
//	       │                             └─ shelf of group b: tasks
//	       └─ lot "pattern p: exclusive" ─── shelf of group a: tasks
//
// A search for a worker's next task thus looks at each lot once, however many tasks
// there are in it, and a task that the worker may not hold costs it nothing. Tasks that
// no idle worker may hold are dormant, as if there were no worker.
//
// When a rule changes, the lots that there are become stale: their tasks may belong to
// other lots. They are sorted anew one by one, as searches come to them.

// taskClass is the tasks of a queue that could run under the same rules.
type taskClass struct {
	key     string
	rules   []rule
	edition uint64                      // namespace.rules when it was made
	shelves map[*group]*taskGroup       // that are not empty
	turns   collection.Heap[*taskGroup] // of groups that may run more tasks
}

// rule is a pattern with an Allow list and the mode in which its key is claimed.
type rule struct {
	policy *policy
	mode   interlock.Mode
}

// taskGroup is the tasks of a group in a lot.
type taskGroup struct {
	group *group
	lot   *taskClass
	able  collection.Heap[*task]
	slot  int32 // in lot.turns
	place int   // in group.shelves
}

func (s *taskGroup) HeapIndex() *int32 { return &s.slot }

func (s *taskGroup) Less(o *taskGroup) bool {
	if s.group != o.group {
		return s.group.Less(o.group)
	}
	return s.able[0].Less(o.able[0])
}

// workerGroup is the idle workers of one principal at a queue.
type workerGroup struct {
	by   *interlock.Principal
	idle collection.List[*pull]
}

// rulesFor returns the rules under which claims are: none for most.
func (s *namespace) rulesFor(claims []interlock.Claim) (rules []rule) {
	if s.guarded == 0 {
		return nil
	}
	add := func(x rule) bool {
		if !slices.Contains(rules, x) {
			rules = append(rules, x)
		}
		return true
	}
	for _, c := range claims {
		if p := s.policyAt(string(c.Key)); p != nil && len(p.Allow) > 0 {
			add(rule{p, c.Mode})
		}
		s.rulesBelow(c)(add)
	}
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(strings.Compare(a.policy.Name, b.policy.Name), cmp.Compare(a.mode, b.mode))
	})
	return rules
}

// allowAll reports whether a principal may claim under all of some rules.
func allowAll(rules []rule, by *interlock.Principal) bool {
	for _, x := range rules {
		if !x.policy.allows(by, x.mode) {
			return false
		}
	}
	return true
}

// mayHold reports whether a principal may hold the task.
func (t *task) mayHold(by *interlock.Principal) bool {
	return by.InGroup(t.spec.Group) && allowAll(t.queue.ns.rulesFor(t.spec.Claims), by)
}

// isStale reports whether the rules have changed since the lot was made.
func (l *taskClass) isStale(s *namespace) bool { return l.edition != s.rules }

// lot returns the lot of tasks under some rules.
func (q *queue) lot(rules []rule) *taskClass {
	if q.edition != q.ns.rules {
		q.edition, q.current = q.ns.rules, nil
	}
	var key []byte
	for _, x := range rules {
		key = append(key, x.policy.Name...)
		key = binary.AppendUvarint(append(key, 0), uint64(x.mode))
	}
	l := q.current[string(key)]
	if l == nil {
		l = &taskClass{key: string(key), rules: rules, edition: q.edition, shelves: map[*group]*taskGroup{}}
		if q.current == nil {
			q.current = map[string]*taskClass{}
		}
		q.current[l.key] = l
		q.lots = append(q.lots, l)
	}
	return l
}

// shelve makes a task that nothing blocks one of those that could run, unless it is one
// already: a task that steps aside stays where it is. A search moves it out of a stale lot.
func (q *queue) shelve(t *task) {
	if t.shelf != nil {
		return
	}
	l, g := q.lot(q.ns.rulesFor(t.spec.Claims)), t.group
	s := l.shelves[g]
	if s == nil {
		s = &taskGroup{group: g, lot: l, place: len(g.shelves)}
		l.shelves[g], g.shelves = s, append(g.shelves, s)
	}
	t.shelf = s
	s.able.Push(t)
	if s.slot == 0 && g.mayRun() {
		q.enterTurns(s)
	} else {
		s.lot.turns.Fix(s)
	}
}

// unshelve takes a task out of those that could run, if it is one.
func (q *queue) unshelve(t *task) {
	s := t.shelf
	if s == nil {
		return
	}
	t.shelf = nil
	s.able.Remove(t)
	if len(s.able) > 0 {
		return
	}
	q.leaveTurns(s)
	g, l := s.group, s.lot
	last := g.shelves[len(g.shelves)-1]
	g.shelves[s.place], last.place = last, s.place
	g.shelves = g.shelves[:len(g.shelves)-1]
	if delete(l.shelves, g); len(l.shelves) > 0 || len(l.rules) == 0 && !l.isStale(q.ns) {
		return
	}
	q.lots = slices.DeleteFunc(q.lots, func(o *taskClass) bool { return o == l })
	if q.current[l.key] == l {
		delete(q.current, l.key)
	}
}

// enterTurns adds the tasks of a shelf to their group's turns. A group that had nothing to run
// begins a stride behind the queue's position, unless no group had a turn meanwhile.
func (q *queue) enterTurns(s *taskGroup) {
	g := s.group
	if s.slot != 0 {
		return
	}
	if g.turning == 0 && (g.pass == 0 || g.left < q.turns) {
		g.pass = q.pass + g.stride()
	}
	g.turning++
	s.lot.turns.Push(s)
}

func (q *queue) leaveTurns(s *taskGroup) {
	if s.slot != 0 {
		s.group.turning--
		s.group.left = q.turns
		s.lot.turns.Remove(s)
	}
}

// turn makes a group take turns, or none, depending on whether it may run more tasks.
func (q *queue) turn(g *group) {
	may := g.mayRun()
	if may != g.capped {
		return
	}
	g.capped = !may
	for _, s := range g.shelves {
		if may {
			q.enterTurns(s)
		} else {
			q.leaveTurns(s)
		}
	}
}

// served counts a turn of a group. One that has waited long for a worker that may hold
// its tasks has saved up nothing.
func (q *queue) served(g *group) {
	q.turns++
	q.pass = max(q.pass, g.pass)
	g.pass = q.pass + g.stride()
	for _, s := range g.shelves {
		s.lot.turns.Fix(s)
	}
}

// next returns the shelf from which a principal is to get the next task, nil if it may
// hold none of those that could run. Of a stale lot it may turn out later that it may not.
func (e *State) next(q *queue, by *interlock.Principal) (best *taskGroup) {
	may := func(l *taskClass) bool { return l.isStale(q.ns) || allowAll(l.rules, by) }
	if by != nil && len(by.Groups) > 0 { // only theirs, and what is in no group
		for i := range len(by.Groups) + 1 {
			name := ""
			if i < len(by.Groups) {
				name = by.Groups[i]
			}
			g := q.groups[name]
			if g == nil || g.turning == 0 {
				continue
			}
			e.objects += len(g.shelves)
			for _, s := range g.shelves {
				if s.slot != 0 && (best == nil || s.Less(best)) && may(s.lot) {
					best = s
				}
			}
		}
		return best
	}
	e.objects += len(q.lots)
	for _, l := range q.lots {
		if len(l.turns) > 0 && (best == nil || l.turns[0].Less(best)) && may(l) {
			best = l.turns[0]
		}
	}
	return best
}

// nextWorker returns the worker that has waited longest among those that may hold a task
// that could run, nil if there is none.
func (e *State) nextWorker(q *queue) (first *pull) {
	e.objects += len(q.crews)
	for _, c := range q.crews {
		if p := c.idle.Front().Value; (first == nil || p.order < first.order) && e.next(q, c.by) != nil {
			first = p
		}
	}
	return first
}

// hasWorker reports whether an idle worker may hold a task.
func (q *queue) hasWorker(t *task) bool {
	*q.ns.agenda.objects += len(q.crews)
	return slices.ContainsFunc(q.crews, func(c *workerGroup) bool { return t.mayHold(c.by) })
}

// isBarred reports whether a task could run, and workers are idle, and none of them may
// hold it. One that is dormant, and was passed by others since, could not run.
func (t *task) isBarred() bool { return t.couldRun() && !t.queue.hasWorker(t) }

// couldRun reports whether nothing blocks a task, and workers are idle.
func (t *task) couldRun() bool {
	return t.shelf != nil && len(t.queue.crews) > 0 && t.request.blocker() < 0
}

// Bar is a rule that keeps idle workers from a task.
type Bar struct {
	Workers int            // those of them that it keeps from it, each counted under one rule
	Pattern string         // the pattern with an Allow list that forbids them a key; "": they may not act for the task's group
	Mode    interlock.Mode // in which they would claim it
}

// bars returns what keeps each idle worker from a task that is barred: first the group, then
// the patterns by their names.
func (t *task) bars() (bars []Bar) {
	rules := t.queue.ns.rulesFor(t.spec.Claims)
	kept := make([]int, 1+len(rules))
	for _, c := range t.queue.crews {
		i := 0
		if c.by.InGroup(t.spec.Group) {
			i = 1 + slices.IndexFunc(rules, func(x rule) bool { return !x.policy.allows(c.by, x.mode) })
		}
		kept[i] += c.idle.Len()
	}
	for i, n := range kept {
		switch {
		case n == 0:
		case i == 0:
			bars = append(bars, Bar{Workers: n})
		default:
			bars = append(bars, Bar{Workers: n, Pattern: rules[i-1].policy.Name, Mode: rules[i-1].mode})
		}
	}
	return bars
}

// idle counts the workers that ask for tasks.
func (q *queue) idle() (n int) {
	for _, c := range q.crews {
		n += c.idle.Len()
	}
	return n
}

// enter makes a worker one of its crew.
func (q *queue) enter(p *pull) {
	i := slices.IndexFunc(q.crews, func(c *workerGroup) bool { return c.by == p.by })
	if i < 0 {
		i = len(q.crews)
		q.crews = append(q.crews, &workerGroup{by: p.by})
	}
	q.pulls++
	p.order, p.crew = q.pulls, q.crews[i]
	p.crew.idle.PushBack(&p.link)
}

// leave takes a worker out of its crew.
func (q *queue) leave(p *pull) {
	if p.crew.idle.Remove(&p.link); p.crew.idle.Len() == 0 {
		q.crews = slices.DeleteFunc(q.crews, func(c *workerGroup) bool { return c == p.crew })
		q.parted = true
	}
}

// rest has those tasks be dormant that have not found a worker: all if none of the idle
// ones is to be looked at any more, else those that none of them may hold.
func (e *Engine) rest(q *queue) {
	if !q.hungry {
		for _, t := range q.fresh {
			if t.eligibility == runnable {
				e.setEligibility(t, idle)
			}
		}
		q.fresh, q.parted = nil, false
	}
	if !q.parted {
		return
	}
	q.parted = false
	q.fresh = slices.DeleteFunc(q.fresh, func(t *task) bool {
		if t.eligibility == runnable && !q.hasWorker(t) {
			e.setEligibility(t, idle)
			return true
		}
		return false
	})
}

// sortAnew records that the rules of a namespace have changed: idle workers may now hold other
// tasks.
func (e *State) sortAnew(s *namespace) {
	s.rules++
	if !e.live {
		return
	}
	for _, q := range s.sortedQueues() {
		e.objects++
		e.needsDispatch(q)
	}
}
