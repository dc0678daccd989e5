package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// task is a task as the model knows it. While it waits, and while it runs, it has a request
// like any other: the waiting one holds nothing, has no owner and no id; the running one is the
// worker's lease. Each attempt has a new one, and all of them have the number of the task.
type task struct {
	ns        interlock.Namespace
	id        interlock.TaskID
	num       uint64
	spec      engine.TaskSpec // with its keys in their one spelling
	submitted engine.Time
	agent     string
	flow      string
	session   string // public name
	principal string
	sender    string // of a message: the sender that determines its order, "" for none

	state    interlock.TaskState
	request  *request // of one that stands in line or runs
	lines    int      // how often it stood in line
	attempt  int
	arrived  engine.Time // when it first stood in line
	stood    engine.Time // when it last came to wait
	due      engine.Time // of a scheduled one
	deadline engine.Time // 0: none
	settled  engine.Time
	reason   *message.Text
	result   []byte
	doneBy   string            // the principal that acknowledged it
	past     []interlock.Fence // of the attempts that have failed
	question *question

	rests   bool // it could run and has no worker, or has slept since
	sleeps  bool // that was so at the end of a step, and no worker has come since
	rested  bool // that may be
	gaveWay bool // it stood in line, and one that its sender sent before was taken up again
	trailed bool // it stands behind another one of its queue, or did before this step

	followers []*follower
}

func (t *task) String() string { return fmt.Sprintf("task %d %v", t.num, t.state) }

// stands reports whether t stands in line.
func (t *task) stands() bool { return t.state == interlock.TaskWaiting && t.request != nil }

func (t *task) isSettled() bool { return t.state >= interlock.TaskDone }

func (m *model) task(ns interlock.Namespace, id interlock.TaskID) *task {
	for _, t := range m.tasks {
		if t.ns == ns && t.id == id {
			return t
		}
	}
	return nil
}

// newTask returns the task that a caller submits.
func (m *model) newTask(head *engine.Head, agent string, spec engine.TaskSpec, num uint64) *task {
	t := &task{
		ns: head.Namespace, id: spec.ID, num: num, spec: spec, submitted: m.now, agent: agent, principal: head.Actor,
		state: interlock.TaskWaiting,
	}
	t.spec.Claims = m.normal(head.Namespace, spec.Claims)
	if spec.Message {
		t.spec = m.addressed(head.Namespace, spec)
	}
	if spec.Deadline > 0 {
		t.deadline = m.now.Add(spec.Deadline)
	}
	if spec.Delay > 0 {
		t.state, t.due = interlock.TaskScheduled, m.now.Add(spec.Delay)
	}
	if spec.Ask != nil {
		t.state, t.question = interlock.TaskAsking, m.question(t.ns, spec.Ask, agent)
		t.question.least = leastApprovals(m.queueOf(t))
	}
	return t
}

// submitted is the task that cmd submits under an id, by itself or with an
// acknowledgement; nil for none.
func (m *model) submitted(cmd engine.Command, id [16]byte, num uint64) *task {
	switch c := cmd.(type) {
	case *engine.Submit:
		if c.Task.ID != id {
			return nil
		}
		s, agent := m.sessionByID(c.Namespace, c.Session), c.Agent
		if s != nil {
			agent = s.agent
		}
		t := m.newTask(&c.Head, agent, c.Task, num)
		if t.flow = c.Flow; s != nil {
			t.session = s.name
			if c.Flow == "" {
				t.flow = "main"
			}
		}
		return t.from("")
	case *engine.Ack:
		r := m.byID(c.Namespace, c.Lease)
		for _, spec := range c.Tasks {
			if spec.ID != id || r == nil {
				continue
			}
			t := m.newTask(&c.Head, m.agentOf(r), spec, num)
			t.flow = r.ask.Flow
			if r.session != nil {
				t.session = r.session.name
			}
			return t.from(r.task.mailbox())
		}
	}
	return nil
}

// wrongTask names the rules that a task breaks which comes with some beside it.
func (m *model) wrongTask(head *engine.Head, x *engine.TaskSpec, beside int) (codes []interlock.Code) {
	if x.Ask != nil {
		codes = append(codes, m.wrongQuestion(head.Namespace, x.Ask)...)
	}
	if x.Message {
		if wrong := m.wrongMessage(head.Namespace, x); len(wrong) > 0 {
			return append(codes, wrong...)
		}
		addressed := m.addressed(head.Namespace, *x)
		x = &addressed
		codes = append(codes, reserved(addressed.Claims[0].Key, principalOf(head.Actor))...)
	} else if x.Key != "" {
		codes = append(codes, interlock.CodeInvalidRequest)
	}
	by := principalOf(head.Actor)
	q := m.queue(head.Namespace, x.Queue)
	if q != nil && (!listed(q.Submit, by) || !mayGive(x.Queue, by)) || !actsFor(by, x.Group) {
		codes = append(codes, interlock.CodeForbidden)
	}
	switch {
	case q == nil:
		codes = append(codes, interlock.CodeUnknownQueue)
	case q.Drain:
		codes = append(codes, interlock.CodeQueueDraining)
	case q.MaxTasks > 0 && len(m.openIn(head.Namespace, x.Queue))+beside >= q.MaxTasks:
		codes = append(codes, interlock.CodeTooManyTasks)
	}
	if len(x.Payload) > 0 && !json.Valid(x.Payload) {
		codes = append(codes, interlock.CodeInvalidPayload)
	}
	if x.Deadline > 0 && x.Deadline <= x.Delay || x.Delay < 0 || x.Deadline < 0 ||
		x.MaxBackoff > 0 && x.MaxBackoff < x.Backoff {
		codes = append(codes, interlock.CodeInvalidTTL)
	}
	if len(x.Claims) > 0 && !x.Message { // the writer claims for itself
		codes = append(codes, m.wrongClaims(head, nil, x.Claims, x.Group, interlock.Permits)...)
	}
	for i, c := range x.Claims {
		for _, other := range x.Claims[:i] {
			if other.Key == c.Key && other.Mode.Counts() != c.Mode.Counts() {
				codes = append(codes, interlock.CodeNeverTogether)
			}
		}
	}
	return codes
}

func (m *model) permitTask(cmd engine.Command, ev *record.Event) error {
	t := m.submitted(cmd, ev.ID, ev.Num)
	switch {
	case t == nil:
		return errors.New("nobody submitted it")
	case m.task(t.ns, t.id) != nil || ev.Num <= m.highestNum():
		return fmt.Errorf("%v is not new", t)
	case interlock.TaskState(ev.Op) != t.state:
		return fmt.Errorf("it begins as %v, not as %v", t.state, interlock.TaskState(ev.Op))
	case !slices.Equal(ev.Claims, t.spec.Claims) || ev.Purpose != t.spec.Purpose || ev.Group != t.spec.Group ||
		ev.Priority != t.spec.Priority ||
		ev.Agent != t.agent || ev.Flow != t.flow || ev.Actor != t.principal:
		return fmt.Errorf("it does not say what was submitted: %+v", ev)
	}
	return nil
}

// unseen reports whether cmd returns a task that never reached its worker.
func unseen(cmd engine.Command) bool {
	c, ok := cmd.(*engine.Nack)
	return ok && c.Unseen
}

// permitStanding: a task changes its state, for a reason that a caller or a deadline supplied.
func (m *model) permitStanding(cmd engine.Command, ev *record.Event) error {
	t, state := m.task(ev.Namespace, ev.ID), interlock.TaskState(ev.Op)
	if t == nil {
		return errors.New("there is no such task")
	}
	wrong := fmt.Errorf("nobody gave a reason why %v is to be %v", t, state)
	change, _ := cmd.(*engine.ChangeTask)
	if change != nil && (change.Task != t.id || change.Namespace != t.ns) {
		change = nil
	}
	attempt := t.attempt
	switch {
	case t.state == interlock.TaskRunning && unseen(cmd):
		attempt--
		if state != interlock.TaskWaiting || cmd.(*engine.Nack).Lease != t.request.ask.ID || !t.request.active() {
			return wrong
		}
	case t.state == interlock.TaskRunning: // only its holder reports that it is done
		c, ok := cmd.(*engine.Ack)
		if !ok || state != interlock.TaskDone || c.Lease != t.request.ask.ID || !t.request.active() {
			return fmt.Errorf("%v is not acknowledged (I12)", t)
		}
		if string(ev.Blob) != string(c.Result) {
			return fmt.Errorf("the result of %v is %s", t, ev.Blob)
		}
	case t.deadline != 0 && t.deadline <= m.now && !t.isSettled() && state == interlock.TaskDead:
		if !reflect.DeepEqual(ev.Why(), message.New(message.TaskPastDeadline)) {
			return wrong
		}
	case ev.Reason == record.ByPattern:
		if state != interlock.TaskDead || !t.stands() || !m.neverServed(t.request) ||
			!reflect.DeepEqual(ev.Why(), message.New(message.TaskNeverPermitted)) {
			return wrong
		}
	case ev.Reason == record.ByDeadlock:
		if !t.stands() || state != interlock.TaskScheduled || ev.Due <= 0 || ev.Due > m.longestRest(t) {
			return wrong
		}
		if err := m.chosen(t.request); err != nil {
			return err
		}
	case t.state == interlock.TaskScheduled && t.due <= m.now && state == interlock.TaskWaiting && change == nil:
	case change == nil:
		return wrong
	case change.Change == engine.CancelTask:
		if state != interlock.TaskCancelled || t.isSettled() || ev.Outcome != change.Reason {
			return wrong
		}
	default:
		want := interlock.TaskScheduled
		if change.Delay == 0 {
			want = interlock.TaskWaiting
		}
		replay := change.Change == engine.ReplayTask
		if m.asksAgain(t, replay) {
			want = interlock.TaskAsking
		}
		if state != want || ev.Due != change.Delay || replay != t.isSettled() || t.state == interlock.TaskDone ||
			!replay && change.Change != engine.RescheduleTask {
			return wrong
		}
		if replay {
			attempt = 0
		}
	}
	if int(ev.Generation) != attempt {
		return fmt.Errorf("%v had %d attempts, not %d", t, attempt, ev.Generation)
	}
	return nil
}

// deadBecause returns why a task is dead after its attempt has failed. c is the worker's report, nil
// if there is none.
func (m *model) deadBecause(t *task, c *engine.Nack, why record.Reason) *message.Text {
	switch {
	case c != nil && c.Reason != "":
		return message.Plain(c.Reason)
	case t.attempt >= m.maxAttempts(t):
		return message.New(message.TaskLastAttempt, message.Num(t.attempt), message.Str(why.String()))
	case t.deadline != 0 && t.deadline <= m.now:
		return message.New(message.TaskPastDeadline)
	}
	return message.New(message.TaskGivenUp)
}

// permitFailure: an attempt has failed when its lease has ended, or when its worker reports so;
// and there is another one unless it was the last.
func (m *model) permitFailure(cmd engine.Command, ev *record.Event) error {
	t, state := m.task(ev.Namespace, ev.ID), interlock.TaskState(ev.Op)
	if t == nil || t.state != interlock.TaskRunning || ev.Fence != t.request.fence || int(ev.Generation) != t.attempt ||
		ev.Held != m.now.Sub(t.request.granted) {
		return fmt.Errorf("%v has no such attempt", t)
	}
	last := t.attempt >= m.maxAttempts(t) || t.deadline != 0 && t.deadline <= m.now
	c, ok := cmd.(*engine.Nack)
	if !ok || c.Lease != t.request.ask.ID || ev.Reason != record.ByNack {
		if t.request.phase != over && t.request.phase != closed || ev.Reason != t.request.why {
			return fmt.Errorf("the attempt at %v goes on", t)
		}
		c = nil
	}
	switch {
	case last || c != nil && c.Dead:
		if want := m.deadBecause(t, c, ev.Reason); state != interlock.TaskDead || !reflect.DeepEqual(ev.Why(), want) {
			return fmt.Errorf("%v is to have no other attempt for %v, and is %v for %v", t, want, state, ev.Why())
		}
	case c != nil && c.Delay < 0:
		if state != interlock.TaskWaiting {
			return fmt.Errorf("%v is to be tried again at once, and is %v", t, state)
		}
	case state != interlock.TaskScheduled:
		return fmt.Errorf("%v is to be tried again, and is %v", t, state)
	case c != nil && c.Delay > 0:
		if ev.Due != c.Delay {
			return fmt.Errorf("%v is to be tried again after %v, not %v", t, c.Delay, ev.Due)
		}
	case c != nil:
		if want := m.pause(t, c.Jitter); ev.Due != want {
			return fmt.Errorf("%v is to be tried again after %v, not %v", t, want, ev.Due)
		}
	case !m.isPause(t, ev.Due):
		return fmt.Errorf("%v is no pause after attempt %d at %v", ev.Due, t.attempt, t)
	}
	return nil
}

func (m *model) maxAttempts(t *task) int {
	for _, n := range []int{t.spec.MaxAttempts, m.queueOf(t).MaxAttempts} {
		if n > 0 {
			return n
		}
	}
	return interlock.DefaultAttempts
}

// pauses are the longest pause after a first attempt, and the longest one of all.
func (m *model) pauses(t *task) (first, most time.Duration) {
	firsts := []time.Duration{t.spec.Backoff, m.queueOf(t).Backoff, interlock.DefaultBackoff}
	mosts := []time.Duration{t.spec.MaxBackoff, m.queueOf(t).MaxBackoff, interlock.DefaultMaxBackoff}
	set := func(d time.Duration) bool { return d > 0 }
	return firsts[slices.IndexFunc(firsts, set)], mosts[slices.IndexFunc(mosts, set)]
}

// longestPause doubles with each attempt.
func (m *model) longestPause(t *task) time.Duration {
	first, most := m.pauses(t)
	bound := new(big.Int).Lsh(big.NewInt(int64(first)), uint(max(0, t.attempt-1)))
	if bound.Cmp(big.NewInt(int64(most))) > 0 {
		return most
	}
	return time.Duration(bound.Int64())
}

// longestRest is how long a deadlock's victim may pause: as long as the time since it
// first stood in line.
func (m *model) longestRest(t *task) time.Duration {
	first, most := m.pauses(t)
	return min(most, max(first, m.now.Sub(t.request.arrived)))
}

func (m *model) isPause(t *task, d time.Duration) bool { return 0 < d && d <= m.longestPause(t) }

// pause returns the pause that random bits select, up to the longest.
func (m *model) pause(t *task, random uint64) time.Duration {
	part := new(big.Int).SetUint64(random)
	part.Mul(part, big.NewInt(int64(m.longestPause(t))))
	return time.Duration(part.Rsh(part, 64).Int64()) + 1
}

// foldTask takes in a new task.
func (m *model) foldTask(cmd engine.Command, ev *record.Event) {
	t := m.submitted(cmd, ev.ID, ev.Num)
	m.tasks = append(m.tasks, t)
	m.await(t)
	if c, ok := cmd.(*engine.Submit); ok && c.Attach {
		m.follow(&c.Head, t, c.Flow)
	}
}

// foldStanding takes in that a task stands elsewhere.
func (m *model) foldStanding(cmd engine.Command, ev *record.Event) {
	t := m.task(ev.Namespace, ev.ID)
	if ev.Kind == record.AttemptFailed {
		t.past = append(t.past, ev.Fence)
	}
	if t.stands() {
		if ev.Reason == record.ByDeadlock {
			m.victims = append(m.victims, t.request.party())
		}
		m.requests = slices.DeleteFunc(m.requests, func(r *request) bool { return r == t.request })
	}
	if t.isSettled() && t.deadline <= m.now {
		t.deadline = 0
	}
	if t.isSettled() && interlock.TaskState(ev.Op) == interlock.TaskAsking {
		t.question.asked, t.question.idle, t.question.verdict, t.question.by, t.question.name, t.question.words = m.now, 0,
			0, "", "", nil
		t.question.given, t.question.acted, t.question.usedIn, t.question.user = nil, nil, 0, nil
		t.question.barred = append(t.question.barred, cmd.Header().Actor)
	}
	if q := t.question; q != nil && unseen(cmd) && t.request != nil && t.request == q.user {
		q.usedIn, q.user = 0, nil
	}
	m.log(cmd, t, ev)
	t.state, t.reason, t.attempt, t.request, t.rested, t.rests, t.sleeps, t.trailed = interlock.TaskState(ev.Op),
		ev.Why(), int(ev.Generation), nil, false, false, false, false
	switch {
	case t.isSettled():
		t.settled = m.now
		if t.state == interlock.TaskDone {
			t.result, t.doneBy = ev.Blob, cmd.Header().Actor
		}
		m.endings = append(m.endings, t)
		for _, f := range t.followers {
			m.endWait(f)
		}
	case t.state == interlock.TaskScheduled, t.state == interlock.TaskAsking:
		t.due = m.now.Add(ev.Due)
	}
	m.await(t)
}

// await has a task that waits do so from now on, and those stand in line that are to.
func (m *model) await(t *task) {
	if t.state == interlock.TaskWaiting {
		if t.arrived == 0 {
			t.arrived = m.now
		}
		t.stood = m.now
	}
	m.straighten()
}

// lineUp moves a task into the line, to its first place.
func (m *model) lineUp(t *task) {
	t.lines++
	r := &request{
		num: t.num, ns: t.ns, task: t, turn: t.lines, claims: t.spec.Claims, arrived: t.arrived, phase: waiting,
		queuedAt: m.events,
	}
	r.ask.Agent, r.ask.Purpose, r.ask.Priority, r.ask.Group = t.agent, t.spec.Purpose, t.spec.Priority, t.spec.Group
	m.requests = append(m.requests, r)
	t.request = r
}

// rest finds the tasks that could run and have no worker: they step aside, and block only tasks
// of their own queue, until a worker looks at them. It is not specified which of them are
// looked at by a worker that took as many as it may.
func (m *model) rest() {
	var list []*task
	for _, t := range m.tasks {
		if t.stands() {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *task) int {
		if m.aheadOf(a.request, b.request) {
			return -1
		}
		return 1
	})
	for _, t := range list {
		free, worked := m.free(t.request), m.mayRun(t) && m.workerFor(t) != nil
		looked := func(by engine.Pull) bool { return by.Queue == t.spec.Queue && m.mayHold(principalOf(by.Actor), t) }
		if worked || slices.ContainsFunc(m.handing, looked) {
			t.sleeps = false
		}
		t.rests = t.sleeps || free && !worked
		t.rested = t.rested || m.atBest().free(t.request)
		t.trailed = t.trailed || m.trails(t, true)
	}
	m.forgetTurns()
}

// settle records, at the end of a step, that every due request was looked at.
func (m *model) settle() {
	for _, t := range m.tasks {
		if t.stands() {
			t.trailed, t.sleeps = m.trails(t, true), t.rests
			if !m.atBest().free(t.request) && m.mayRun(t) && m.workerFor(t) != nil {
				t.rested = false
			}
		}
	}
}

// trails reports whether a task stands behind another one of its queue, or, with
// maybe, whether it could be short of permits that one before it waits for, too.
func (m *model) trails(t *task, maybe bool) bool {
	return slices.ContainsFunc(m.tasks, func(o *task) bool {
		if o == t || !o.stands() || o.ns != t.ns || o.spec.Queue != t.spec.Queue || !m.aheadOf(o.request, t.request) {
			return false
		}
		permits := func(c interlock.Claim) bool { return c.Mode == interlock.Permits && o.request.needs(c.Key) > 0 }
		return anyClash(o.spec.Claims, t.spec.Claims) || maybe && slices.ContainsFunc(t.spec.Claims, permits)
	})
}

// aside reports whether a waiting task does not block r.
func (m *model) aside(q, r *request) bool {
	if q.task == nil || q.phase != waiting || r.task != nil && r.task.spec.Queue == q.task.spec.Queue {
		return false
	}
	t := q.task
	if m.best {
		return t.rested || t.trailed || m.trails(t, true)
	}
	return t.rests || m.trails(t, false)
}

// atBest returns the state without the tasks that may stand aside. Where it makes a difference,
// the model does not specify which state applies.
func (m *model) atBest() *model {
	rest := *m
	rest.best = true
	return &rest
}

// checkTasks checks what must hold of tasks between steps.
func (m *model) checkTasks() error {
	for _, t := range m.tasks {
		switch {
		case t.state == interlock.TaskRunning && (t.request.task != t || !t.request.active()):
			return fmt.Errorf("%v is lost: %v (I4)", t, t.request)
		case t.stands() && m.free(t.request) && m.mayRun(t) && m.workerFor(t) != nil:
			return fmt.Errorf("%v was left waiting, and a worker is idle (I4)", t)
		}
	}
	for _, r := range m.inPhase(offered, held, inGrace) {
		if r.task != nil && r.task.request != r {
			return fmt.Errorf("%v is no attempt at %v any more", r, r.task)
		}
	}
	return nil
}
