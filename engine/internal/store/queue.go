package store

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
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

// Queue is one queue. It outlives its registration as long as tasks of it are
// remembered.
type Queue struct {
	interlock.TaskQueue
	NS         *Namespace
	Registered bool
	shares     map[string]*interlock.Share // of the groups that it lists
	groups     map[string]*group           // of those with tasks that are not settled
	Counts     [interlock.TaskCancelled + 1]int
	Lined      collection.List[*Task] // those that wait, as they came

	// Volatile.
	WorkerGroups  []*WorkerGroup        // the workers that ask for tasks
	pulls         uint64                // how many came
	Lots          []*taskClass          // the tasks that could run: see lot.go
	Current       map[string]*taskClass // those of them that are not stale, by the rules
	edition       uint64                // namespace.rules when they were made
	Pass          uint64                // where the last turn ended
	turns         uint64                // how many there were
	NeedsDispatch bool                  // stands in agenda.hungry
	Parted        bool                  // the last idle worker of a principal has gone
	Fresh         []*Task               // meanwhile: that could run, and have not found a worker yet
}

// group is those tasks of a queue that are not settled, of one group.
type group struct {
	queue   *Queue
	name    string
	tasks   int
	running int

	// Volatile.
	Shelves []*TaskGroup // those that could run
	Turning int          // shelves that take turns
	Capped  bool         // as many run as may
	Pass    uint64       // where its next turn ends
	left    uint64       // turns that the queue had seen when a shelf of it last took part
}

func (g *group) Less(o *group) bool {
	if g.Pass != o.Pass {
		return g.Pass < o.Pass
	}
	return g.name < o.name
}

// name is the name of a queue, "" of none.
func (q *Queue) name() string {
	if q == nil {
		return ""
	}
	return q.Name
}

func (g *group) stride() uint64 { return strideOf(g.queue.shares[g.name]) }

func strideOf(s *interlock.Share) uint64 {
	if s == nil {
		return FullTurn
	}
	return FullTurn / uint64(max(1, s.Weight))
}

// MayRun reports whether one more task of the group may run.
func (g *group) MayRun() bool {
	s := g.queue.shares[g.name]
	return s == nil || s.Max == 0 || g.running < s.Max
}

// queue finds or makes the queue with a name.
func (s *Namespace) queue(name string) *Queue {
	q := s.Tasks.Queues[name]
	if q == nil {
		if s.Tasks.Queues == nil {
			s.Tasks.Queues = map[string]*Queue{}
		}
		q = &Queue{TaskQueue: interlock.TaskQueue{Name: name}, NS: s, groups: map[string]*group{}}
		s.Tasks.Queues[name] = q
	}
	return q
}

// Registered returns a queue that tasks may be submitted to, or nil.
func (s *Namespace) Registered(name string) *Queue {
	if s == nil {
		return nil
	}
	if q := s.Tasks.Queues[name]; q != nil && q.Registered {
		return q
	}
	return nil
}

// drop forgets the queue if it is of no use any more.
func (q *Queue) drop() {
	total := 0
	for _, n := range q.Counts {
		total += n
	}
	if total == 0 && !q.Registered {
		delete(q.NS.Tasks.Queues, q.Name)
	}
}

// Open counts the tasks that are not settled.
func (q *Queue) Open() int {
	return q.Counts[interlock.TaskScheduled] + q.Counts[interlock.TaskWaiting] + q.Counts[interlock.TaskRunning] +
		q.Counts[interlock.TaskAsking]
}

// join makes t one of its group's.
func (q *Queue) join(t *Task, name string) {
	g := q.groups[name]
	if g == nil {
		g = &group{queue: q, name: name}
		q.groups[name] = g
	}
	g.tasks++
	t.Group = g
}

// part ends that.
func (t *Task) part() {
	g := t.Group
	if g.tasks--; g.tasks == 0 {
		delete(g.queue.groups, g.name)
	}
	t.Group = nil
}

// MayRun reports whether one more task of the queue may run.
func (q *Queue) MayRun() bool {
	return q.Registered && !q.Paused && (q.MaxRunning == 0 || q.Counts[interlock.TaskRunning] < q.MaxRunning)
}

// NeedsDispatch has a queue looked at if it may have a task for a worker.
func (st *State) NeedsDispatch(q *Queue) {
	if st.Live && !q.NeedsDispatch && q.MayRun() && st.NextWorker(q) != nil {
		q.NeedsDispatch = true
		st.ToDispatch = append(st.ToDispatch, q)
	}
}

// evolveQueue folds that a queue was registered, or its registration dropped.
func (st *State) evolveQueue(ev *record.Event) error {
	s := st.Namespace(ev.Namespace)
	if ev.Kind == record.QueueDropped {
		q := s.Registered(ev.QueueName)
		if q == nil {
			return errUnknown
		}
		s.Tasks.Registered--
		q.Registered, q.TaskQueue, q.shares = false, interlock.TaskQueue{Name: q.Name}, nil
		q.drop()
		return nil
	}
	def, err := record.DecodeQueue(ev.Blob)
	if err != nil {
		return err
	}
	q := s.queue(def.Name)
	if !q.Registered {
		s.Tasks.Registered++
	}
	old := q.shares
	q.Registered, q.TaskQueue, q.shares = true, def, map[string]*interlock.Share{}
	for i := range q.Groups {
		q.shares[q.Groups[i].Group] = &q.Groups[i]
	}
	if st.Live {
		for _, g := range q.shared(old) { // the others have neither a weight nor a bound
			st.Visited++
			q.reweigh(g, old[g.name])
			q.turn(g)
		}
		st.NeedsDispatch(q)
	}
	return nil
}

// reweigh moves the end of a group's next turn from where its old share put it to where its
// present share puts it. The turn begins where it did.
func (q *Queue) reweigh(g *group, old *interlock.Share) {
	if g.Pass == 0 {
		return
	}
	g.Pass += g.stride() - strideOf(old)
	for _, s := range g.Shelves {
		s.Lot.turns.Fix(s)
	}
}

// shared returns the groups that have tasks and a share, or had one before, by their names.
func (q *Queue) shared(old map[string]*interlock.Share) (list []*group) {
	names := maps.Clone(q.shares)
	maps.Copy(names, old)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if g := q.groups[name]; g != nil {
			list = append(list, g)
		}
	}
	return list
}

func (q *Queue) SortedGroups() []*group {
	return slices.SortedFunc(maps.Values(q.groups), func(a, b *group) int { return strings.Compare(a.name, b.name) })
}

// Pull is a worker that asks for tasks.
type Pull struct {
	ID     [16]byte
	Queue  *Queue
	Sess   *Session // nil for one without
	Agent  string   // of one without a session
	Actor  string
	By     *interlock.Principal // nil without credentials
	Leases [][16]byte           // ids to be
	TTL    time.Duration
	Caller Caller
	Wire   uint64 // over which its caller listens: Head.Link

	order uint64 // among the idle ones of its queue
	crew  *WorkerGroup
	Link  collection.Element[*Pull] // in crew.idle
	Mine  collection.Element[*Pull] // in session.pulls
	seat  int32                     // in tasks.idle
}

func (p *Pull) SetIndex() *int32 { return &p.seat }

// Dismiss ends a worker's pull.
func (p *Pull) Dismiss() {
	s := &p.Queue.NS.Tasks
	delete(s.Pulls, p.ID)
	s.Idle.Remove(p)
	p.Queue.leave(p)
	if p.Sess != nil {
		p.Sess.Pulls.Remove(&p.Mine)
	} else {
		s.Loose--
	}
}

func UnknownQueue(name string) *Refusal {
	return &Refusal{
		Code: interlock.CodeUnknownQueue, Message: message.New(message.UnknownQueue, message.Str(keypath.Clip(name, 64))),
	}
}
