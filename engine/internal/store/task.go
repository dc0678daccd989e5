package store

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/message"
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

// Task is one task.
type Task struct {
	ID    interlock.TaskID
	Num   uint64
	Queue *Queue
	Group *group // nil of a settled one
	Spec  record.Task
	*TaskHistory

	Request *Request                  // while it stands in line or runs
	Arrived Time                      // when it first stood in line; 0: never
	Since   Time                      // when it came to wait, or was settled
	Link    collection.Element[*Task] // in queue.lined, or in a chain of those that ask or are settled

	Attempt     int32 // how many there were; of a running one, which it is
	seat        int32 // in tasks.all
	Slot        int32 // volatile: in shelf.able
	State       interlock.TaskState
	Eligibility Eligibility // volatile
	Shelf       *TaskGroup  // volatile: of one that could run
}

// TaskHistory is the history of a task so far, and the callers that currently deal with it. Tasks
// without any, such as most that wait, share an empty one.
type TaskHistory struct {
	Reason *message.Text // why it is dead or cancelled, or fails
	Past   []attempt     // the last of those that ended, oldest first
	Going  *attempt      // of a running one
	Mail   *lanePosition // of a message that is not settled and has an order

	// Volatile.
	Timer     *Timer // when it is due, or dead
	Followers collection.List[*Follower]
	Awaited   int // how many of these are flows that wait
}

var NoTrail = &TaskHistory{}

// Own returns t a trail of its own, to write to.
func (t *Task) Own() *TaskHistory {
	if t.TaskHistory == NoTrail {
		t.TaskHistory = &TaskHistory{}
	}
	return t.TaskHistory
}

// Tidy drops a trail in which there is nothing.
func (t *Task) Tidy() {
	if x := t.TaskHistory; x.Reason == nil && len(x.Past) == 0 && x.Going == nil && x.Mail == nil && x.Timer == nil &&
		x.Followers.Len() == 0 {
		t.TaskHistory = NoTrail
	}
}

func (t *Task) SetIndex() *int32 { return &t.seat }

func (t *Task) HeapIndex() *int32 { return &t.Slot }

func (t *Task) Less(o *Task) bool { return Before(t.Request, o.Request) }

// attempt is one go at a task.
type attempt struct {
	Number  int
	Agent   string
	Session string // public name
	Fence   interlock.Fence
	Why     record.Reason
	Words   *message.Text
	Held    time.Duration
	Ended   Time
}

// Tasks are those of a namespace.
type Tasks struct {
	Queues     map[string]*Queue
	Known      map[interlock.TaskID]*Task
	lanes      map[laneID]*lane
	All        collection.Set[*Task]
	Asking     collection.List[*Task] // in the order in which they asked
	Done       collection.List[*Task] // in the order in which they were settled
	Failed     collection.List[*Task] // dead and cancelled ones, likewise
	Bytes      int                    // that all of them count
	Settled    int                    // of that, those that are done
	Registered int                    // queues
	origins    origins

	Dead   int                       // of failed, the dead ones
	Pulls  map[[16]byte]*Pull        // volatile: of idle workers
	Idle   collection.Set[*Pull]     // volatile: the same
	Heard  collection.Set[*Follower] // volatile: the followers of tasks
	Awaits collection.Set[*Request]  // volatile: waits of flows for the ends of tasks
	Loose  int                       // volatile: idle workers, and followers of tasks, without a session
}

// ChainOf returns the chain in which tasks in a state stand, nil for none.
func (t *Task) ChainOf(state interlock.TaskState) *collection.List[*Task] {
	switch s := &t.Queue.NS.Tasks; state {
	case interlock.TaskWaiting:
		return &t.Queue.Lined
	case interlock.TaskAsking:
		return &s.Asking
	case interlock.TaskDone:
		return &s.Done
	case interlock.TaskDead, interlock.TaskCancelled:
		return &s.Failed
	}
	return nil
}

// turnTo puts the task in another state.
func (t *Task) turnTo(state interlock.TaskState) {
	s := &t.Queue.NS.Tasks
	if c := t.ChainOf(t.State); c != nil {
		c.Remove(&t.Link)
	}
	t.Queue.Counts[t.State]--
	switch t.State {
	case interlock.TaskDone:
		s.Settled -= t.Cost()
	case interlock.TaskDead:
		s.Dead--
	}
	t.State = state
	t.Queue.Counts[state]++
	switch state {
	case interlock.TaskDone:
		s.Settled += t.Cost()
	case interlock.TaskDead:
		s.Dead++
	}
	if c := t.ChainOf(state); state == interlock.TaskAsking {
		c.Insert(&t.Link, (*Task).askedBefore)
	} else if c != nil {
		c.PushBack(&t.Link)
	}
}

// evolveTask folds that a task was submitted. In a snapshot it begins as it stands.
func (st *State) evolveTask(ev *record.Event) error {
	s := st.Namespace(ev.Namespace)
	spec := st.Hint.Spec
	if spec == nil {
		var err error
		if spec, err = record.DecodeTask(ev); err != nil {
			return err
		}
	}
	state := interlock.TaskState(ev.Op)
	if s.Tasks.Known[ev.ID] != nil || state == 0 || state > interlock.TaskCancelled ||
		state == interlock.TaskAsking && spec.Approval == nil {
		return fmt.Errorf("engine: task %d is made twice, or stands nowhere", ev.Num)
	}
	if s.Tasks.Known == nil {
		s.Tasks.Known = map[interlock.TaskID]*Task{}
	}
	t := &Task{
		ID: ev.ID, Num: ev.Num, Queue: s.queue(spec.Queue), Spec: *spec, TaskHistory: NoTrail, Attempt: int32(ev.Generation),
	}
	t.Link.Value, t.Spec.Address = t, s.Tasks.origins.share(*spec.Address)
	s.Tasks.Bytes += t.Cost()
	t.setReason(ev.Why())
	if ev.Queued {
		t.Arrived = ev.At.Add(ev.Arrived)
	}
	st.Num = max(st.Num, t.Num)
	s.Tasks.Known[t.ID] = t
	s.Tasks.All.Add(t)
	t.Queue.Counts[0]++ // of those that stand nowhere yet
	if !state.IsSettled() {
		t.Queue.join(t, spec.Group)
		st.joinLane(t)
	}
	t.turnTo(state)
	switch state {
	case interlock.TaskDone, interlock.TaskDead, interlock.TaskCancelled:
		t.Since = ev.At.Add(ev.After)
	case interlock.TaskWaiting:
		st.await(t, ev.At.Add(ev.After), ev.Changed)
	case interlock.TaskRunning:
		r := s.Live(ev.BaseID)
		if r == nil || r.Task != nil {
			return errUnknown
		}
		t.runAs(r)
	}
	s.Tasks.makeRoom()
	return nil
}

// await makes a task wait from a time on: in line, unless a message is ahead of it.
func (st *State) await(t *Task, at Time, changed bool) {
	if t.Arrived == 0 {
		t.Arrived = at
	}
	t.Since = at
	if t.Ahead() == nil {
		st.queueTask(t, changed)
	}
}

// queueTask puts a task that waits in line.
func (st *State) queueTask(t *Task, changed bool) {
	t.Eligibility = QueuedBehindSibling
	r := st.NewRequest()
	r.Num, t.Request = t.Num, r
	r.Priority, r.Changed = int8(t.Spec.Priority), changed
	r.SetDetails(RequestDetail{Purpose: t.Spec.Purpose, Trace: t.Spec.Trace, Task: t})
	r.SetClaims(t.Spec.Claims)
	r.Granted, r.Renewed, r.Phase = t.Arrived, t.Since, Waiting
	var c interlock.Terms
	if countsAny(r.Claims()) {
		c.Group = t.Spec.Group
	}
	r.Conditions = t.Queue.NS.Agree(c)
	st.Resolve(r)
	r.Wait = st.newWait()
	r.SetScore()
	st.enqueue(r)
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
func (t *Task) runAs(r *Request) {
	t.Request, t.Eligibility = r, QueuedBehindSibling
	r.setTask(t)
	t.Group.running++
	going := &attempt{Number: int(t.Attempt), Agent: r.AgentName(), Fence: r.Fence}
	if s := r.Session(); s != nil {
		going.Session = s.Name
		s.worksAt(r)
	}
	t.Own().Going = going
}

// stepBack takes a task that waits out of line, if it stands there.
func (st *State) stepBack(t *Task) {
	r := t.Request
	if t.State != interlock.TaskWaiting || r == nil {
		return
	}
	t.Queue.Unshelve(t)
	r.unline()
	st.Changed(r)
	t.Request, t.Eligibility = nil, QueuedBehindSibling
	r.setTask(nil)
	st.Discard(r)
}

// quit takes t out of the lines, or ends that it runs, before its state changes.
func (st *State) quit(t *Task) {
	switch t.State {
	case interlock.TaskWaiting:
		st.stepBack(t)
	case interlock.TaskRunning:
		t.Group.running--
		t.Request, t.Own().Going = nil, nil
		t.Tidy()
		if st.Live {
			t.Queue.turn(t.Group)
		}
	}
}

// taskQueue is the queue of a task that waits, nil for others.
func (r *Request) taskQueue() *Queue {
	if r.Task == nil {
		return nil
	}
	return r.Task.Queue
}

// evolveDispatched folds that a worker has a task: its request is a lease now.
func (st *State) evolveDispatched(ev *record.Event) error {
	s := st.Namespace(ev.Namespace)
	t := s.Tasks.Known[ev.BaseID]
	if t == nil || t.State != interlock.TaskWaiting || t.Request == nil || s.Knows(ev.ID) ||
		ev.Changed && t.Spec.Approval == nil {
		return errUnknown
	}
	r := t.Request
	t.Queue.Unshelve(t)
	r.Changed = r.SawWrites()
	r.unline()
	st.dropWait(r)
	if ev.Session != 0 {
		sess := s.ByNum[ev.Session]
		if sess == nil || sess.NS != s {
			return errUnknown
		}
		r.Join(sess.Flow(ev.Flow))
	} else {
		r.MutableExt().Guest = &AnonymousCaller{ev.Agent, ev.Actor}
	}
	r.ID, r.Fence, r.Granted, r.Renewed, r.Waited, r.Phase = ev.ID, ev.Fence, ev.At, ev.At, ev.Waited, Held
	given := ev.Terms
	given.Group = t.Spec.Group // its lease may be changed to one with permits
	r.Conditions = s.Agree(given)
	st.Fence = max(st.Fence, ev.Fence)
	r.Session().adapt(ev.TTL)
	s.Requests.Add(r)
	r.hold()
	r.spend(ev.At)
	r.observe()
	t.turnTo(interlock.TaskRunning)
	t.Attempt = int32(ev.Generation)
	if ev.Changed {
		t.Spec.Approval.UsedIn = int(t.Attempt)
	}
	t.runAs(r)
	if st.Live {
		t.Queue.turn(t.Group)
	}
	return nil
}

// evolveAttempt folds that an attempt has failed, and where the task stands since. In
// a snapshot it is only part of the history.
func (st *State) evolveAttempt(ev *record.Event) error {
	t := st.Namespace(ev.Namespace).Tasks.Known[ev.ID]
	if t == nil || ev.Op != 0 && t.State != interlock.TaskRunning {
		return errUnknown
	}
	t.failed(attempt{
		Number: int(ev.Generation), Agent: ev.Agent, Session: ev.SessionName, Fence: ev.Fence, Why: ev.Reason,
		Words: ev.Why(), Held: ev.Held, Ended: ev.At,
	})
	if ev.Op == 0 {
		return nil
	}
	t.trimPast()
	return st.stands(t, ev)
}

// evolveTaskMoved folds that a task stands elsewhere.
func (st *State) evolveTaskMoved(ev *record.Event) error {
	t := st.Namespace(ev.Namespace).Tasks.Known[ev.ID]
	if t == nil || ev.Op == 0 {
		return errUnknown
	}
	if t.State == interlock.TaskDone && interlock.TaskState(ev.Op) == interlock.TaskDone { // in a snapshot
		t.remember(func() { t.Spec.Extend(func(x *record.TaskExtras) { x.DoneBy = ev.Actor }) })
		return nil
	}
	t.keepApproval(int(ev.Generation))
	t.Attempt = int32(ev.Generation)
	return st.stands(t, ev)
}

// stands moves a task to the state of an event.
func (st *State) stands(t *Task, ev *record.Event) error {
	state, was := interlock.TaskState(ev.Op), t.State
	if state == interlock.TaskRunning || state > interlock.TaskCancelled ||
		state == interlock.TaskAsking && t.Spec.Approval == nil {
		return errUnknown
	}
	s, q := &t.Queue.NS.Tasks, t.Queue
	if t.Spec.Message && !was.IsSettled() && state.IsSettled() {
		t.logEnd(t.Going, ev)
	}
	st.quit(t)
	t.setReason(ev.Why())
	switch {
	case was.IsSettled() && !state.IsSettled():
		q.join(t, t.Spec.Group)
		st.joinLane(t)
		t.Spec.Revive(ev.At)
		if state == interlock.TaskAsking {
			principal, err := record.DecodePrincipal(ev.Blob)
			if err != nil {
				return err
			}
			t.remember(func() { t.Spec.Approval.Reopen(ev.At, principal) })
		}
	case !was.IsSettled() && state.IsSettled():
		st.leaveLane(t)
		t.part()
	}
	if state == interlock.TaskDone {
		t.remember(func() { // what is done is not done again
			t.Spec.Payload = nil
			t.Spec.Extend(func(x *record.TaskExtras) { x.Result, x.DoneBy = ev.Blob, ev.Actor })
		})
	}
	if state != was || state != interlock.TaskAsking { // a task that asks keeps its place among those that ask
		t.turnTo(state)
	}
	switch {
	case state.IsSettled():
		t.Since = ev.At
	case state == interlock.TaskScheduled || state == interlock.TaskAsking:
		t.Spec.Extend(func(x *record.TaskExtras) { x.Due = ev.At.Add(ev.Due) })
	case state == interlock.TaskWaiting:
		st.await(t, ev.At, false)
	}
	s.makeRoom()
	st.NeedsDispatch(q)
	return nil
}

// evolveForgotten folds that a settled task was discarded.
func (sp *Namespace) evolveForgotten(ev *record.Event) error {
	t := sp.Tasks.Known[ev.ID]
	if t == nil || !t.State.IsSettled() {
		return errUnknown
	}
	t.forget()
	return nil
}

func (t *Task) forget() {
	s := &t.Queue.NS.Tasks
	s.Bytes -= t.Cost()
	t.turnTo(0)
	t.Queue.Counts[0]--
	s.All.Remove(t)
	s.origins.leave(t.Spec.Address)
	delete(s.Known, t.ID)
	t.Queue.NS.kept.drop(createdObject{MadeTask, t.ID})
	t.Queue.drop()
}

func (t *Task) MaxAttempts() int {
	return cmp.Or(t.Spec.Attempts, t.Queue.MaxAttempts, interlock.DefaultAttempts)
}

// Pause makes the time until the next attempt of random bits: it is uniform up to a
// bound that doubles with each attempt (full jitter).
func (t *Task) Pause(random uint64) time.Duration {
	bound := t.Backoff()
	for range max(0, t.Attempt-1) {
		if bound >= t.maxBackoff() {
			break
		}
		bound *= 2
	}
	return t.PauseUpTo(bound, random)
}

// PauseUpTo makes a pause of random bits, up to a bound and the longest one.
func (t *Task) PauseUpTo(bound time.Duration, random uint64) time.Duration {
	high, _ := bits.Mul64(random, uint64(min(bound, t.maxBackoff())))
	return 1 + time.Duration(high)
}

func (t *Task) Backoff() time.Duration {
	return cmp.Or(t.Spec.Backoff, t.Queue.Backoff, interlock.DefaultBackoff)
}

func (t *Task) maxBackoff() time.Duration {
	return cmp.Or(t.Spec.MaxBackoff, t.Queue.MaxBackoff, interlock.DefaultMaxBackoff)
}

// Dice returns the bits for the pause after an attempt, when the command brought no random
// ones.
func (t *Task) Dice() uint64 { return uint64(collection.Mix(t.Num<<16+uint64(t.Attempt))) << 32 }

// Unready keeps a task from being handed out before it is checked.
func (t *Task) Unready() {
	if t.Eligibility == Runnable {
		t.Queue.Unshelve(t)
	}
}

// lane is the messages of one sender to one key that are not settled.
type lane struct {
	collection.Heap[*lanePosition]
	id    laneID
	Waits collection.List[*Follower] // volatile: flows that wait for the ends of these messages
}

// lanePosition is a message's place in its lane.
type lanePosition struct {
	task *Task
	Lane *lane
	slot int32
}

func (m *lanePosition) HeapIndex() *int32 { return &m.slot }

func (m *lanePosition) Less(o *lanePosition) bool { return m.task.Num < o.task.Num }

// IsFor reports whether t is a message for the writer's queue.
func (t *Task) IsFor(queue string) bool {
	return t != nil && t.Spec.Message && t.Queue.Name == queue
}

// Ahead returns the message that holds t back: the first of its lane, if that is
// another; nil for none.
func (t *Task) Ahead() *Task {
	if t.Mail == nil {
		return nil
	}
	if first := t.Mail.Lane.Heap[0]; first != t.Mail {
		return first.task
	}
	return nil
}

// Successor returns the message that continues once t is settled, nil for none: the first of
// its lane, which t held back. If t was not the first itself, it held back others only.
func (t *Task) Successor() *Task {
	if !t.Spec.Message {
		return nil
	}
	l := t.Queue.NS.Tasks.lanes[laneID{t.Spec.Mailbox(), t.Spec.Sender}]
	if l == nil {
		return nil
	}
	first := l.Heap[0].task
	if first.Num < t.Num || first.State != interlock.TaskWaiting {
		return nil
	}
	return first
}
