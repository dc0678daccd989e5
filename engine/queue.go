package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/record"
)

// Queues of tasks: an operator's settings of one, the numbers of its tasks by state, and the
// order of dispatching.
//
// Groups take turns in proportion to their weights (self-clocked fair queueing, Golestani,
// 1994): a group's pass is where its next turn ends, the one with the lowest pass is next, and
// then the queue's position moves there and the group's pass goes up by its stride. A group
// that had nothing to run begins a stride behind the queue's position. So turns cannot be saved
// up; nor does a group gain by having one task at a time, or a new name for each, since the
// queue's position is never before the end of a turn that a group had. Within a group the order
// is that of the lines.

// queue is one queue. It outlives its registration as long as tasks of it are
// remembered.
type queue struct {
	interlock.TaskQueue
	ns         *namespace
	registered bool
	shares     map[string]*interlock.Share // of the groups that it lists
	groups     map[string]*group           // of those with tasks that are not settled
	counts     [interlock.TaskCancelled + 1]int
	lined      collection.List[*task] // those that wait, as they came

	// Volatile.
	crews   []*workerGroup        // the workers that ask for tasks
	pulls   uint64                // how many came
	lots    []*taskClass          // the tasks that could run: see lot.go
	current map[string]*taskClass // those of them that are not stale, by the rules
	edition uint64                // namespace.rules when they were made
	pass    uint64                // where the last turn ended
	turns   uint64                // how many there were
	hungry  bool                  // stands in agenda.hungry
	parted  bool                  // the last idle worker of a principal has gone
	fresh   []*task               // meanwhile: that could run, and have not found a worker yet
}

// group is those tasks of a queue that are not settled, of one group.
type group struct {
	queue   *queue
	name    string
	tasks   int
	running int

	// Volatile.
	shelves []*taskGroup // those that could run
	turning int          // shelves that take turns
	capped  bool         // as many run as may
	pass    uint64       // where its next turn ends
	left    uint64       // turns that the queue had seen when a shelf of it last took part
}

func (g *group) Less(o *group) bool {
	if g.pass != o.pass {
		return g.pass < o.pass
	}
	return g.name < o.name
}

// name is the name of a queue, "" of none.
func (q *queue) name() string {
	if q == nil {
		return ""
	}
	return q.Name
}

func (g *group) stride() uint64 { return strideOf(g.queue.shares[g.name]) }

func strideOf(s *interlock.Share) uint64 {
	if s == nil {
		return fullTurn
	}
	return fullTurn / uint64(max(1, s.Weight))
}

// mayRun reports whether one more task of the group may run.
func (g *group) mayRun() bool {
	s := g.queue.shares[g.name]
	return s == nil || s.Max == 0 || g.running < s.Max
}

// queue finds or makes the queue with a name.
func (s *namespace) queue(name string) *queue {
	q := s.tasks.queues[name]
	if q == nil {
		if s.tasks.queues == nil {
			s.tasks.queues = map[string]*queue{}
		}
		q = &queue{TaskQueue: interlock.TaskQueue{Name: name}, ns: s, groups: map[string]*group{}}
		s.tasks.queues[name] = q
	}
	return q
}

// registered returns a queue that tasks may be submitted to, or nil.
func (s *namespace) registered(name string) *queue {
	if s == nil {
		return nil
	}
	if q := s.tasks.queues[name]; q != nil && q.registered {
		return q
	}
	return nil
}

// drop forgets the queue if it is of no use any more.
func (q *queue) drop() {
	total := 0
	for _, n := range q.counts {
		total += n
	}
	if total == 0 && !q.registered {
		delete(q.ns.tasks.queues, q.Name)
	}
}

// open counts the tasks that are not settled.
func (q *queue) open() int {
	return q.counts[interlock.TaskScheduled] + q.counts[interlock.TaskWaiting] + q.counts[interlock.TaskRunning] + q.counts[interlock.TaskAsking]
}

// join makes t one of its group's.
func (q *queue) join(t *task, name string) {
	g := q.groups[name]
	if g == nil {
		g = &group{queue: q, name: name}
		q.groups[name] = g
	}
	g.tasks++
	t.group = g
}

// part ends that.
func (t *task) part() {
	g := t.group
	if g.tasks--; g.tasks == 0 {
		delete(g.queue.groups, g.name)
	}
	t.group = nil
}

// mayRun reports whether one more task of the queue may run.
func (q *queue) mayRun() bool {
	return q.registered && !q.Paused && (q.MaxRunning == 0 || q.counts[interlock.TaskRunning] < q.MaxRunning)
}

// needsDispatch has a queue looked at if it may have a task for a worker.
func (e *State) needsDispatch(q *queue) {
	if e.live && !q.hungry && q.mayRun() && e.nextWorker(q) != nil {
		q.hungry = true
		e.hungry = append(e.hungry, q)
	}
}

// evolveQueue folds that a queue was registered, or its registration dropped.
func (e *State) evolveQueue(ev *record.Event) error {
	s := e.ns(ev.Namespace)
	if ev.Kind == record.QueueDropped {
		q := s.registered(ev.QueueName)
		if q == nil {
			return errUnknown
		}
		s.tasks.registered--
		q.registered, q.TaskQueue, q.shares = false, interlock.TaskQueue{Name: q.Name}, nil
		q.drop()
		return nil
	}
	def, err := record.DecodeQueue(ev.Blob)
	if err != nil {
		return err
	}
	q := s.queue(def.Name)
	if !q.registered {
		s.tasks.registered++
	}
	old := q.shares
	q.registered, q.TaskQueue, q.shares = true, def, map[string]*interlock.Share{}
	for i := range q.Groups {
		q.shares[q.Groups[i].Group] = &q.Groups[i]
	}
	if e.live {
		for _, g := range q.shared(old) { // the others have neither a weight nor a bound
			e.objects++
			q.reweigh(g, old[g.name])
			q.turn(g)
		}
		e.needsDispatch(q)
	}
	return nil
}

// reweigh moves the end of a group's next turn from where its old share put it to where its
// present share puts it. The turn begins where it did.
func (q *queue) reweigh(g *group, old *interlock.Share) {
	if g.pass == 0 {
		return
	}
	g.pass += g.stride() - strideOf(old)
	for _, s := range g.shelves {
		s.lot.turns.Fix(s)
	}
}

// shared returns the groups that have tasks and a share, or had one before, by their names.
func (q *queue) shared(old map[string]*interlock.Share) (list []*group) {
	names := maps.Clone(q.shares)
	maps.Copy(names, old)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if g := q.groups[name]; g != nil {
			list = append(list, g)
		}
	}
	return list
}

func (q *queue) sortedGroups() []*group {
	return slices.SortedFunc(maps.Values(q.groups), func(a, b *group) int { return strings.Compare(a.name, b.name) })
}

func (e *Engine) refuseQueue(name string) {
	no := noSuchQueue(name)
	e.refuse(no.code, no.message)
}
