package engine

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/record"
)

// Tasks: requests that wait instead of their agents.
//
// A waiting task stands in the lines of its claims like any other request, and holds nothing.
// When nothing blocks it any more it could run; if its queue has no worker for it then, it is
// dormant, and stands aside until one comes: see eligibility.go. With a worker its request
// becomes a lease like any other, an attempt at the task. However that lease ends, unless by an
// acknowledgement, the attempt has failed: the task is scheduled again, with its first place in
// line, or dead.
//
// A task has the number of its request, whichever attempt it is, so the order of the
// lines among tasks is that in which they were submitted.

// task is one task.
type task struct {
	id    interlock.TaskID
	num   uint64
	queue *queue
	group *group // nil of a settled one
	spec  record.Task
	*taskHistory

	request *request                  // while it stands in line or runs
	arrived Time                      // when it first stood in line; 0: never
	since   Time                      // when it came to wait, or was settled
	link    collection.Element[*task] // in queue.lined, or in a chain of those that ask or are settled

	attempt     int32 // how many there were; of a running one, which it is
	seat        int32 // in tasks.all
	slot        int32 // volatile: in shelf.able
	state       interlock.TaskState
	eligibility eligibility // volatile
	shelf       *taskGroup  // volatile: of one that could run
}

// taskHistory is the history of a task so far, and the callers that currently deal with it. Tasks
// without any, such as most that wait, share an empty one.
type taskHistory struct {
	reason string        // why it is dead or cancelled, or fails
	past   []attempt     // the last of those that ended, oldest first
	going  *attempt      // of a running one
	mail   *lanePosition // of a message that is not settled and has an order

	// Volatile.
	timer     *timer // when it is due, or dead
	followers collection.List[*follower]
	awaited   int // how many of these are flows that wait
}

var noTrail = &taskHistory{}

// own returns t a trail of its own, to write to.
func (t *task) own() *taskHistory {
	if t.taskHistory == noTrail {
		t.taskHistory = &taskHistory{}
	}
	return t.taskHistory
}

// tidy drops a trail in which there is nothing.
func (t *task) tidy() {
	if x := t.taskHistory; x.reason == "" && len(x.past) == 0 && x.going == nil && x.mail == nil && x.timer == nil && x.followers.Len() == 0 {
		t.taskHistory = noTrail
	}
}

func (t *task) SetIndex() *int32  { return &t.seat }
func (t *task) HeapIndex() *int32 { return &t.slot }

func (t *task) Less(o *task) bool { return before(t.request, o.request) }

// attempt is one go at a task.
type attempt struct {
	number  int
	agent   string
	session string // public name
	fence   interlock.Fence
	why     record.Reason
	words   string
	held    time.Duration
	ended   Time
}

// tasks are those of a namespace.
type tasks struct {
	queues     map[string]*queue
	known      map[interlock.TaskID]*task
	lanes      map[laneID]*lane
	all        collection.Set[*task]
	asking     collection.List[*task] // in the order in which they asked
	done       collection.List[*task] // in the order in which they were settled
	failed     collection.List[*task] // dead and cancelled ones, likewise
	bytes      int                    // that all of them count
	settled    int                    // of that, those that are done
	registered int                    // queues
	origins    origins

	dead   int                       // of failed, the dead ones
	pulls  map[[16]byte]*pull        // volatile: of idle workers
	idle   collection.Set[*pull]     // volatile: the same
	heard  collection.Set[*follower] // volatile: the followers of tasks
	awaits collection.Set[*request]  // volatile: waits of flows for the ends of tasks
	loose  int                       // volatile: idle workers, and followers of tasks, without a session
}

func isSettled(state interlock.TaskState) bool { return state >= interlock.TaskDone }

// chainOf returns the chain in which tasks in a state stand, nil for none.
func (t *task) chainOf(state interlock.TaskState) *collection.List[*task] {
	switch s := &t.queue.ns.tasks; state {
	case interlock.TaskWaiting:
		return &t.queue.lined
	case interlock.TaskAsking:
		return &s.asking
	case interlock.TaskDone:
		return &s.done
	case interlock.TaskDead, interlock.TaskCancelled:
		return &s.failed
	}
	return nil
}

// turnTo puts the task in another state.
func (t *task) turnTo(state interlock.TaskState) {
	s := &t.queue.ns.tasks
	if c := t.chainOf(t.state); c != nil {
		c.Remove(&t.link)
	}
	t.queue.counts[t.state]--
	switch t.state {
	case interlock.TaskDone:
		s.settled -= t.cost()
	case interlock.TaskDead:
		s.dead--
	}
	t.state = state
	t.queue.counts[state]++
	switch state {
	case interlock.TaskDone:
		s.settled += t.cost()
	case interlock.TaskDead:
		s.dead++
	}
	if c := t.chainOf(state); state == interlock.TaskAsking {
		c.Insert(&t.link, (*task).askedBefore)
	} else if c != nil {
		c.PushBack(&t.link)
	}
}

// evolveTask folds that a task was submitted. In a snapshot it begins as it stands.
func (e *State) evolveTask(ev *record.Event) error {
	s := e.ns(ev.Namespace)
	spec := e.hint.spec
	if spec == nil {
		var err error
		if spec, err = record.DecodeTask(ev); err != nil {
			return err
		}
	}
	state := interlock.TaskState(ev.Op)
	if s.tasks.known[ev.ID] != nil || state == 0 || state > interlock.TaskCancelled || state == interlock.TaskAsking && spec.Approval == nil {
		return fmt.Errorf("engine: task %d is made twice, or stands nowhere", ev.Num)
	}
	if s.tasks.known == nil {
		s.tasks.known = map[interlock.TaskID]*task{}
	}
	t := &task{id: ev.ID, num: ev.Num, queue: s.queue(spec.Queue), spec: *spec, taskHistory: noTrail, attempt: int32(ev.Generation)}
	t.link.Value, t.spec.Address = t, s.tasks.origins.share(*spec.Address)
	s.tasks.bytes += t.cost()
	t.setReason(ev.Outcome)
	if ev.Queued {
		t.arrived = ev.At.Add(ev.Arrived)
	}
	e.num = max(e.num, t.num)
	s.tasks.known[t.id] = t
	s.tasks.all.Add(t)
	t.queue.counts[0]++ // of those that stand nowhere yet
	if !isSettled(state) {
		t.queue.join(t, spec.Group)
		e.joinLane(t)
	}
	t.turnTo(state)
	switch state {
	case interlock.TaskDone, interlock.TaskDead, interlock.TaskCancelled:
		t.since = ev.At.Add(ev.After)
	case interlock.TaskWaiting:
		e.await(t, ev.At.Add(ev.After), ev.Changed)
	case interlock.TaskRunning:
		r := s.live(ev.BaseID)
		if r == nil || r.task != nil {
			return errUnknown
		}
		t.runAs(r)
	}
	s.tasks.makeRoom()
	return nil
}

// await makes a task wait from a time on: in line, unless a message is ahead of it.
func (e *State) await(t *task, at Time, changed bool) {
	if t.arrived == 0 {
		t.arrived = at
	}
	t.since = at
	if t.ahead() == nil {
		e.queueTask(t, changed)
	}
}

// queueTask puts a task that waits in line.
func (e *State) queueTask(t *task, changed bool) {
	t.eligibility = queuedBehindSibling
	r := e.newRequest()
	r.num, t.request = t.num, r
	r.priority, r.changed = int8(t.spec.Priority), changed
	r.setDetails(requestDetail{purpose: t.spec.Purpose, task: t})
	r.setClaims(t.spec.Claims)
	r.granted, r.renewed, r.phase = t.arrived, t.since, waiting
	var c interlock.Terms
	if countsAny(r.claims()) {
		c.Group = t.spec.Group
	}
	r.terms = t.queue.ns.agree(c)
	e.resolve(r)
	r.wait = e.newWait()
	r.setScore()
	e.enqueue(r)
}

func countsAny(claims []interlock.Claim) bool {
	for _, c := range claims {
		if c.Mode.Counts() {
			return true
		}
	}
	return false
}

// runAs makes r the attempt at t that is under way.
func (t *task) runAs(r *request) {
	t.request, t.eligibility = r, queuedBehindSibling
	r.setTask(t)
	t.group.running++
	going := &attempt{number: int(t.attempt), agent: r.agentName(), fence: r.fence}
	if s := r.session(); s != nil {
		going.session = s.name
		s.worksAt(r)
	}
	t.own().going = going
}

// stepBack takes a task that waits out of line, if it stands there.
func (e *State) stepBack(t *task) {
	r := t.request
	if t.state != interlock.TaskWaiting || r == nil {
		return
	}
	t.queue.unshelve(t)
	r.unline()
	e.changed(r)
	t.request, t.eligibility = nil, queuedBehindSibling
	r.setTask(nil)
	e.discard(r)
}

// quit takes t out of the lines, or ends that it runs, before its state changes.
func (e *State) quit(t *task) {
	switch t.state {
	case interlock.TaskWaiting:
		e.stepBack(t)
	case interlock.TaskRunning:
		t.group.running--
		t.request, t.own().going = nil, nil
		t.tidy()
		if e.live {
			t.queue.turn(t.group)
		}
	}
}

// taskQueue is the queue of a task that waits, nil for others.
func (r *request) taskQueue() *queue {
	if r.task == nil {
		return nil
	}
	return r.task.queue
}

// evolveHanded folds that a worker has a task: its request is a lease now.
func (e *State) evolveHanded(ev *record.Event) error {
	s := e.ns(ev.Namespace)
	t := s.tasks.known[ev.BaseID]
	if t == nil || t.state != interlock.TaskWaiting || t.request == nil || s.knows(ev.ID) {
		return errUnknown
	}
	r := t.request
	t.queue.unshelve(t)
	r.changed = r.sawWrites()
	r.unline()
	e.dropWait(r)
	if ev.Session != 0 {
		sess := s.byNum[ev.Session]
		if sess == nil || sess.ns != s {
			return errUnknown
		}
		r.join(sess.flow(ev.Flow))
	} else {
		r.mutableExt().guest = &anonymousCaller{ev.Agent, ev.Actor}
	}
	r.id, r.fence, r.granted, r.renewed, r.waited, r.phase = ev.ID, ev.Fence, ev.At, ev.At, ev.Waited, held
	given := ev.Terms
	given.Group = t.spec.Group // its lease may be changed to one with permits
	r.terms = s.agree(given)
	e.fence = max(e.fence, ev.Fence)
	s.requests.Add(r)
	r.hold()
	r.spend(ev.At)
	r.observe()
	t.turnTo(interlock.TaskRunning)
	t.attempt = int32(ev.Generation)
	t.runAs(r)
	if e.live {
		t.queue.turn(t.group)
	}
	return nil
}

// evolveAttempt folds that an attempt has failed, and where the task stands since. In
// a snapshot it is only part of the history.
func (e *State) evolveAttempt(ev *record.Event) error {
	t := e.ns(ev.Namespace).tasks.known[ev.ID]
	if t == nil || ev.Op != 0 && t.state != interlock.TaskRunning {
		return errUnknown
	}
	t.failed(attempt{
		number: int(ev.Generation), agent: ev.Agent, session: ev.SessionName, fence: ev.Fence, why: ev.Reason, words: ev.Outcome, held: ev.Held, ended: ev.At,
	})
	if ev.Op == 0 {
		return nil
	}
	t.trimPast()
	return e.stands(t, ev)
}

// evolveStands folds that a task stands elsewhere.
func (e *State) evolveStands(ev *record.Event) error {
	t := e.ns(ev.Namespace).tasks.known[ev.ID]
	if t == nil || ev.Op == 0 {
		return errUnknown
	}
	t.attempt = int32(ev.Generation)
	return e.stands(t, ev)
}

// stands moves a task to the state of an event.
func (e *State) stands(t *task, ev *record.Event) error {
	state, was := interlock.TaskState(ev.Op), t.state
	if state == interlock.TaskRunning || state > interlock.TaskCancelled || state == interlock.TaskAsking && t.spec.Approval == nil {
		return errUnknown
	}
	s, q := &t.queue.ns.tasks, t.queue
	if t.spec.Message && !isSettled(was) && isSettled(state) {
		t.logEnd(t.going, ev)
	}
	e.quit(t)
	t.setReason(ev.Outcome)
	switch {
	case isSettled(was) && !isSettled(state):
		q.join(t, t.spec.Group)
		e.joinLane(t)
		t.spec.Revive(ev.At)
		if state == interlock.TaskAsking {
			principal, err := record.DecodePrincipal(ev.Blob)
			if err != nil {
				return err
			}
			t.remember(func() { t.spec.Approval.Reopen(ev.At, principal) })
		}
	case !isSettled(was) && isSettled(state):
		e.leaveLane(t)
		t.part()
	}
	if state == interlock.TaskDone {
		t.remember(func() { // what is done is not done again
			t.spec.Payload = nil
			t.spec.Extend(func(x *record.TaskExtras) { x.Result = ev.Blob })
		})
	}
	if state != was || state != interlock.TaskAsking { // a task that asks keeps its place among those that ask
		t.turnTo(state)
	}
	switch {
	case isSettled(state):
		t.since = ev.At
	case state == interlock.TaskScheduled || state == interlock.TaskAsking:
		t.spec.Extend(func(x *record.TaskExtras) { x.Due = ev.At.Add(ev.Due) })
	case state == interlock.TaskWaiting:
		e.await(t, ev.At, false)
	}
	s.makeRoom()
	e.needsDispatch(q)
	return nil
}

// evolveForgotten folds that a settled task was discarded.
func (sp *namespace) evolveForgotten(ev *record.Event) error {
	t := sp.tasks.known[ev.ID]
	if t == nil || !isSettled(t.state) {
		return errUnknown
	}
	t.forget()
	return nil
}

func (t *task) forget() {
	s := &t.queue.ns.tasks
	s.bytes -= t.cost()
	t.turnTo(0)
	t.queue.counts[0]--
	s.all.Remove(t)
	s.origins.leave(t.spec.Address)
	delete(s.known, t.id)
	t.queue.ns.kept.drop(createdObject{madeTask, t.id})
	t.queue.drop()
}
