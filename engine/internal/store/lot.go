package store

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
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
	shelves map[*group]*TaskGroup       // that are not empty
	turns   collection.Heap[*TaskGroup] // of groups that may run more tasks
}

// rule is a pattern with an Allow list and the mode in which its key is claimed.
type rule struct {
	policy *Policy
	mode   interlock.Mode
	above  bool // its key is an ancestor of a claimed one: each mode that covers mode will do
}

// admits reports whether the rule lets a principal claim.
func (x rule) admits(by *interlock.Principal) bool {
	if !x.above {
		return x.policy.allows(by, x.mode)
	}
	return x.policy.allowsAny(by, func(m interlock.Mode) bool { return lockmode.Covers(lockmode.Lock(m), x.mode) })
}

// place returns the number of the rule among those of its pattern.
func (x rule) place() uint64 {
	n := uint64(x.mode) << 1
	if x.above {
		n++
	}
	return n
}

// TaskGroup is the tasks of a group in a lot.
type TaskGroup struct {
	group *group
	Lot   *taskClass
	Able  collection.Heap[*Task]
	slot  int32 // in lot.turns
	place int   // in group.shelves
}

func (s *TaskGroup) HeapIndex() *int32 { return &s.slot }

func (s *TaskGroup) Less(o *TaskGroup) bool {
	if s.group != o.group {
		return s.group.Less(o.group)
	}
	return s.Able[0].Less(o.Able[0])
}

// WorkerGroup is the idle workers of one principal at a queue.
type WorkerGroup struct {
	By   *interlock.Principal
	Idle collection.List[*Pull]
}

// rulesFor returns the rules under which claims are: none for most.
func (s *Namespace) rulesFor(claims []interlock.Claim) (rules []rule) {
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
		if p := s.PolicyAt(string(c.Key)); p != nil && len(p.Allow) > 0 {
			add(rule{policy: p, mode: c.Mode})
		}
		s.rulesAbove(c)(add)
		s.rulesBelow(c)(add)
	}
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(strings.Compare(a.policy.Name, b.policy.Name), cmp.Compare(a.place(), b.place()))
	})
	return rules
}

// allowAll reports whether a principal may claim under all of some rules.
func allowAll(rules []rule, by *interlock.Principal) bool {
	for _, x := range rules {
		if !x.admits(by) {
			return false
		}
	}
	return true
}

// mayHold reports whether a principal may hold the task.
func (t *Task) mayHold(by *interlock.Principal) bool {
	return by.InGroup(t.Spec.Group) && allowAll(t.Queue.NS.rulesFor(t.Spec.Claims), by)
}

// IsStale reports whether the rules have changed since the lot was made.
func (l *taskClass) IsStale(s *Namespace) bool { return l.edition != s.rules }

// lot returns the lot of tasks under some rules.
func (q *Queue) lot(rules []rule) *taskClass {
	if q.edition != q.NS.rules {
		q.edition, q.Current = q.NS.rules, nil
	}
	var key []byte
	for _, x := range rules {
		key = append(key, x.policy.Name...)
		key = binary.AppendUvarint(append(key, 0), x.place())
	}
	l := q.Current[string(key)]
	if l == nil {
		l = &taskClass{key: string(key), rules: rules, edition: q.edition, shelves: map[*group]*TaskGroup{}}
		if q.Current == nil {
			q.Current = map[string]*taskClass{}
		}
		q.Current[l.key] = l
		q.Lots = append(q.Lots, l)
	}
	return l
}

// Shelve makes a task that nothing blocks one of those that could run, unless it is one
// already: a task that steps aside stays where it is. A search moves it out of a stale lot.
func (q *Queue) Shelve(t *Task) {
	if t.Shelf != nil {
		return
	}
	l, g := q.lot(q.NS.rulesFor(t.Spec.Claims)), t.Group
	s := l.shelves[g]
	if s == nil {
		s = &TaskGroup{group: g, Lot: l, place: len(g.Shelves)}
		l.shelves[g], g.Shelves = s, append(g.Shelves, s)
	}
	t.Shelf = s
	s.Able.Push(t)
	if s.slot == 0 && g.MayRun() {
		q.enterTurns(s)
	} else {
		s.Lot.turns.Fix(s)
	}
}

// Unshelve takes a task out of those that could run, if it is one.
func (q *Queue) Unshelve(t *Task) {
	s := t.Shelf
	if s == nil {
		return
	}
	t.Shelf = nil
	s.Able.Remove(t)
	if len(s.Able) > 0 {
		return
	}
	q.leaveTurns(s)
	g, l := s.group, s.Lot
	last := g.Shelves[len(g.Shelves)-1]
	g.Shelves[s.place], last.place = last, s.place
	g.Shelves = g.Shelves[:len(g.Shelves)-1]
	if delete(l.shelves, g); len(l.shelves) > 0 || len(l.rules) == 0 && !l.IsStale(q.NS) {
		return
	}
	q.Lots = slices.DeleteFunc(q.Lots, func(o *taskClass) bool { return o == l })
	if q.Current[l.key] == l {
		delete(q.Current, l.key)
	}
}

// enterTurns adds the tasks of a shelf to their group's turns. A group that had nothing to run
// begins a stride behind the queue's position, unless no group had a turn meanwhile.
func (q *Queue) enterTurns(s *TaskGroup) {
	g := s.group
	if s.slot != 0 {
		return
	}
	if g.Turning == 0 && (g.Pass == 0 || g.left < q.turns) {
		g.Pass = q.Pass + g.stride()
	}
	g.Turning++
	s.Lot.turns.Push(s)
}

func (q *Queue) leaveTurns(s *TaskGroup) {
	if s.slot != 0 {
		s.group.Turning--
		s.group.left = q.turns
		s.Lot.turns.Remove(s)
	}
}

// turn makes a group take turns, or none, depending on whether it may run more tasks.
func (q *Queue) turn(g *group) {
	may := g.MayRun()
	if may != g.Capped {
		return
	}
	g.Capped = !may
	for _, s := range g.Shelves {
		if may {
			q.enterTurns(s)
		} else {
			q.leaveTurns(s)
		}
	}
}

// Served counts a turn of a group. One that has waited long for a worker that may hold
// its tasks has saved up nothing.
func (q *Queue) Served(g *group) {
	q.turns++
	q.Pass = max(q.Pass, g.Pass)
	g.Pass = q.Pass + g.stride()
	for _, s := range g.Shelves {
		s.Lot.turns.Fix(s)
	}
}

// Next returns the shelf from which a principal is to get the next task, nil if it may
// hold none of those that could run. Of a stale lot it may turn out later that it may not.
func (st *State) Next(q *Queue, by *interlock.Principal) (best *TaskGroup) {
	may := func(l *taskClass) bool { return l.IsStale(q.NS) || allowAll(l.rules, by) }
	if by != nil && len(by.Groups) > 0 { // only theirs, and what is in no group
		for i := range len(by.Groups) + 1 {
			name := ""
			if i < len(by.Groups) {
				name = by.Groups[i]
			}
			g := q.groups[name]
			if g == nil || g.Turning == 0 {
				continue
			}
			st.Visited += len(g.Shelves)
			for _, s := range g.Shelves {
				if s.slot != 0 && (best == nil || s.Less(best)) && may(s.Lot) {
					best = s
				}
			}
		}
		return best
	}
	st.Visited += len(q.Lots)
	for _, l := range q.Lots {
		if len(l.turns) > 0 && (best == nil || l.turns[0].Less(best)) && may(l) {
			best = l.turns[0]
		}
	}
	return best
}

// NextWorker returns the worker that has waited longest among those that may hold a task
// that could run, nil if there is none.
func (st *State) NextWorker(q *Queue) (first *Pull) {
	st.Visited += len(q.WorkerGroups)
	for _, c := range q.WorkerGroups {
		if p := c.Idle.Front().Value; (first == nil || p.order < first.order) && st.Next(q, c.By) != nil {
			first = p
		}
	}
	return first
}

// HasWorker reports whether an idle worker may hold a task.
func (q *Queue) HasWorker(t *Task) bool {
	*q.NS.Agenda.objects += len(q.WorkerGroups)
	return slices.ContainsFunc(q.WorkerGroups, func(c *WorkerGroup) bool { return t.mayHold(c.By) })
}

// IsBarred reports whether a task could run, and workers are idle, and none of them may
// hold it. One that is dormant, and was passed by others since, could not run.
func (t *Task) IsBarred() bool { return t.CouldRun() && !t.Queue.HasWorker(t) }

// CouldRun reports whether nothing blocks a task, and workers are idle.
func (t *Task) CouldRun() bool {
	return t.Shelf != nil && len(t.Queue.WorkerGroups) > 0 && t.Request.Blocker() < 0
}

// Bar is a rule that keeps idle workers from a task.
type Bar struct {
	Workers int // those of them that it keeps from it, each counted under one rule
	// the pattern with an Allow list that forbids them a key; "": they may not act for the task's
	// group
	Pattern string
	Mode    interlock.Mode // in which they would claim it
}

// Bars returns what keeps each idle worker from a task that is barred: first the group, then
// the patterns by their names.
func (t *Task) Bars() (bars []Bar) {
	rules := t.Queue.NS.rulesFor(t.Spec.Claims)
	kept := make([]int, 1+len(rules))
	for _, c := range t.Queue.WorkerGroups {
		i := 0
		if c.By.InGroup(t.Spec.Group) {
			i = 1 + slices.IndexFunc(rules, func(x rule) bool { return !x.admits(c.By) })
		}
		kept[i] += c.Idle.Len()
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

// Idle counts the workers that ask for tasks.
func (q *Queue) Idle() (n int) {
	for _, c := range q.WorkerGroups {
		n += c.Idle.Len()
	}
	return n
}

// Enter makes a worker one of its crew.
func (q *Queue) Enter(p *Pull) {
	i := slices.IndexFunc(q.WorkerGroups, func(c *WorkerGroup) bool { return c.By == p.By })
	if i < 0 {
		i = len(q.WorkerGroups)
		q.WorkerGroups = append(q.WorkerGroups, &WorkerGroup{By: p.By})
	}
	q.pulls++
	p.order, p.crew = q.pulls, q.WorkerGroups[i]
	p.crew.Idle.PushBack(&p.Link)
}

// leave takes a worker out of its crew.
func (q *Queue) leave(p *Pull) {
	if p.crew.Idle.Remove(&p.Link); p.crew.Idle.Len() == 0 {
		q.WorkerGroups = slices.DeleteFunc(q.WorkerGroups, func(c *WorkerGroup) bool { return c == p.crew })
		q.Parted = true
	}
}

// sortAnew records that the rules of a namespace have changed: idle workers may now hold other
// tasks.
func (st *State) sortAnew(s *Namespace) {
	s.rules++
	if !st.Live {
		return
	}
	for _, q := range s.SortedQueues() {
		st.Visited++
		st.NeedsDispatch(q)
	}
}

// FullTurn is the stride of a group of weight 1.
const FullTurn = 1 << 20

// AddIdleWorker makes a worker one of the idle ones of its queue.
func (st *State) AddIdleWorker(p *Pull) {
	s := &p.Queue.NS.Tasks
	if s.Pulls == nil {
		s.Pulls = map[[16]byte]*Pull{}
	}
	s.Pulls[p.ID] = p
	s.Idle.Add(p)
	p.Queue.Enter(p)
	if p.Sess != nil {
		p.Sess.Pulls.PushBack(&p.Mine)
	} else {
		s.Loose++
	}
	st.NeedsDispatch(p.Queue)
}

// Rest has those tasks be dormant that have not found a worker: all if none of the idle
// ones is to be looked at any more, else those that none of them may hold.
func (st *State) Rest(q *Queue) {
	if !q.NeedsDispatch {
		for _, t := range q.Fresh {
			if t.Eligibility == Runnable {
				st.SetEligibility(t, Idle)
			}
		}
		q.Fresh, q.Parted = nil, false
	}
	if !q.Parted {
		return
	}
	q.Parted = false
	q.Fresh = slices.DeleteFunc(q.Fresh, func(t *Task) bool {
		if t.Eligibility == Runnable && !q.HasWorker(t) {
			st.SetEligibility(t, Idle)
			return true
		}
		return false
	})
}
