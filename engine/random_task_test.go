package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/test/search"
)

// TestRandomTasks has workers, agents and operators do anything in any order, with
// crashes between, and holds against what is promised of tasks: each one that is
// acknowledged has one effect, those of one key never overlap and keep their order,
// messages keep that of their sender, no worker is idle while there is something for
// it, and none is lost.
func TestRandomTasks(t *testing.T) {
	t.Parallel()
	n := uint64(max(1, *runs/3))
	from, to := search.Seeds(t, *seed, n, n)
	for seed := from; seed < to; seed++ {
		w := newTaskWorld(seed)
		err := w.run(*steps)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(w.trace[max(0, len(w.trace)-120):], "\n"))
		}
	}
}

// taskWorld is a random run, and what is known of its tasks from the events alone.
type taskWorld struct {
	*rig
	rng     *rand.Rand
	tasks   map[interlock.TaskID]*taskSeen
	order   []*taskSeen
	byLease map[[16]byte]*taskSeen
	agents  map[[16]byte]bool // leases of agents
	held    map[interlock.Key][][16]byte
	workers []interlock.SessionID
	acks    []*engine.Ack // that were carried out
	logs    map[interlock.Key][]string
}

type taskSeen struct {
	id      interlock.TaskID
	num     uint64
	claims  []interlock.Claim
	state   interlock.TaskState
	arrived engine.Time
	lease   interlock.LeaseID
	acked   int
	sender  string // of a message

	asked, approved, used bool
}

const taskSpace = interlock.Namespace("one")

// mailboxes begins the keys that have a single writer.
const mailboxes = "m:"

func newTaskWorld(seed uint64) *taskWorld {
	w := &taskWorld{
		rig: newRig().wide(), rng: rand.New(rand.NewPCG(seed, 0x7a5c)), tasks: map[interlock.TaskID]*taskSeen{},
		byLease: map[[16]byte]*taskSeen{}, agents: map[[16]byte]bool{}, held: map[interlock.Key][][16]byte{},
		logs: map[interlock.Key][]string{},
	}
	w.blind = true
	w.ticked = func() {
		if err := w.look(); err != nil {
			panic(err)
		}
	}
	return w
}

func (w *taskWorld) run(steps int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	if err := w.start(); err != nil {
		return err
	}
	for _, cmd := range []engine.Command{
		&engine.SetQueue{Queue: w.queue()}, &engine.Configure{Settings: interlock.Settings{}},
		&engine.SetPattern{
			Pattern: interlock.Pattern{Name: "m", Shape: mailboxes + "{id}", Write: interlock.WriteSingle, WriterQueue: "q"},
		},
	} {
		if err := w.do(cmd); err != nil {
			return err
		}
	}
	for range steps {
		if err := w.one(); err != nil {
			return err
		}
	}
	return w.drain()
}

// do carries out a command and takes in what came of it.
func (w *taskWorld) do(cmd engine.Command) error {
	cmd.Header().Namespace = taskSpace
	if err := w.step(cmd); err != nil {
		return err
	}
	return w.look()
}

// look takes in the events of the last step, and checks what they say.
func (w *taskWorld) look() error {
	for i := range w.last.Events {
		if err := costly(w.last.Events[i].Cycle); err != nil {
			return err
		}
		if err := w.event(&w.last.Events[i]); err != nil {
			return err
		}
	}
	for i := range w.last.Effects {
		for _, h := range w.last.Effects[i].Handed {
			if t := w.byLease[h.Lease.ID]; t == nil || t.id != h.Task.ID || t.lease != h.Lease.ID {
				return fmt.Errorf("a worker was told of a task that it was not given")
			}
		}
	}
	if err := w.noCircle(); err != nil {
		return err
	}
	return w.idleInVain()
}

func (w *taskWorld) event(ev *record.Event) error {
	switch ev.Kind {
	case record.TaskSubmitted:
		t := &taskSeen{id: ev.ID, num: ev.Num, claims: ev.Claims, state: interlock.TaskState(ev.Op)}
		if v, ok := w.e.Task(taskSpace, t.id); ok {
			t.sender = v.Sender
		}
		t.asked = t.state == interlock.TaskAsking
		w.tasks[t.id] = t
		w.order = append(w.order, t)
		w.stands(t, t.state, ev.At)
	case record.TaskMoved, record.AttemptFailed, record.ApprovalRequested, record.ApprovalDecided:
		t := w.tasks[ev.ID]
		if interlock.TaskState(ev.Op) == interlock.TaskDone {
			if t.acked++; t.acked > 1 {
				return fmt.Errorf("task %d is done twice", t.num)
			}
		}
		if key, ok := t.mailbox(); ok && interlock.TaskState(ev.Op) >= interlock.TaskDone {
			w.logs[key] = append(w.logs[key], fmt.Sprint(t.id, " ", interlock.TaskState(ev.Op)))
		}
		switch {
		case ev.Kind == record.ApprovalRequested, t.state.IsSettled() && interlock.TaskState(ev.Op) == interlock.TaskAsking:
			t.asked, t.approved, t.used = true, false, false
		case t.state.IsSettled() && t.used:
			return fmt.Errorf("task %d is replayed, and an attempt has used its approval", t.num)
		case ev.Kind == record.ApprovalDecided:
			t.approved = interlock.TaskState(ev.Op) != interlock.TaskDead
		}
		w.stands(t, interlock.TaskState(ev.Op), ev.At)
	case record.TaskForgotten:
		w.order = slices.DeleteFunc(w.order, func(t *taskSeen) bool { return t.id == ev.ID })
	case record.TaskDispatched:
		t := w.tasks[ev.BaseID]
		if t.asked && !t.approved {
			return fmt.Errorf("task %d is handed out, and nobody has approved it", t.num)
		}
		if t.state != interlock.TaskWaiting {
			return fmt.Errorf("task %d is handed out, and is %v", t.num, t.state)
		}
		for _, o := range w.order {
			if o != t && o.state == interlock.TaskWaiting && o.before(t) && overlap(o.claims, t.claims) && !w.isHeldBack(o) {
				return fmt.Errorf("task %d overtakes task %d", t.num, o.num)
			}
		}
		if w.isHeldBack(t) {
			return fmt.Errorf("message %d overtakes another one of its sender", t.num)
		}
		t.state, t.lease, t.used = interlock.TaskRunning, ev.ID, t.asked
		w.byLease[ev.ID] = t
		return w.take(ev)
	case record.Granted, record.Admitted:
		w.agents[ev.ID] = true
		return w.take(ev)
	case record.Ended:
		delete(w.agents, ev.ID)
		for _, c := range ev.Claims {
			w.held[c.Key] = slices.DeleteFunc(w.held[c.Key], func(id [16]byte) bool { return id == ev.ID })
		}
	}
	return nil
}

func (w *taskWorld) stands(t *taskSeen, state interlock.TaskState, at engine.Time) {
	t.state = state
	if state == interlock.TaskWaiting && t.arrived == 0 {
		t.arrived = at
	}
}

// mailbox returns the key to which a message is.
func (t *taskSeen) mailbox() (key interlock.Key, ok bool) {
	if len(t.claims) == 1 && strings.HasPrefix(string(t.claims[0].Key), mailboxes) {
		return t.claims[0].Key, true
	}
	return "", false
}

// isHeldBack reports whether an earlier message of the same sender to the same key is
// not settled.
func (w *taskWorld) isHeldBack(t *taskSeen) bool {
	return t.sender != "" && slices.ContainsFunc(w.order, func(o *taskSeen) bool {
		return o.sender == t.sender && o.claims[0].Key == t.claims[0].Key && o.num < t.num && o.state < interlock.TaskDone
	})
}

func (t *taskSeen) before(o *taskSeen) bool {
	return t.arrived < o.arrived || t.arrived == o.arrived && t.num < o.num
}

func overlap(a, b []interlock.Claim) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Key == y.Key && (x.Mode == interlock.Exclusive || y.Mode == interlock.Exclusive) {
				return true
			}
		}
	}
	return false
}

// take checks that no other lease has what a new lease excludes.
func (w *taskWorld) take(ev *record.Event) error {
	for _, c := range ev.Claims {
		if strings.HasPrefix(string(c.Key), "m/") {
			continue // a flow may have it twice
		}
		if c.Mode == interlock.Exclusive && len(w.held[c.Key]) > 0 {
			return fmt.Errorf("%s is in two hands", c.Key)
		}
		w.held[c.Key] = append(w.held[c.Key], ev.ID)
	}
	return nil
}

// idleInVain reports whether a worker is idle although there is something for it.
func (w *taskWorld) idleInVain() error {
	q, ok := w.e.QueueStatus(taskSpace, "q")
	if !ok || q.Idle == 0 || q.Paused || q.MaxRunning > 0 && q.Running >= q.MaxRunning {
		return nil
	}
	for _, t := range w.order {
		if t.state != interlock.TaskWaiting {
			continue
		}
		v, _ := w.e.Task(taskSpace, t.id)
		capped := slices.ContainsFunc(q.Groups, func(g interlock.Share) bool { return g.Group == v.Group && g.Max > 0 })
		if v.Blocker == "" && !capped {
			return fmt.Errorf("a worker is idle, and task %d could run", t.num)
		}
	}
	return nil
}

func (w *taskWorld) chance(n int) bool { return w.rng.IntN(n) == 0 }

func choose[T any](w *taskWorld, list ...T) T { return list[w.rng.IntN(len(list))] }

func (w *taskWorld) queue() interlock.TaskQueue {
	q := interlock.TaskQueue{
		Name: "q", Backoff: choose(w, 0, time.Millisecond, 3*time.Second), MaxAttempts: choose(w, 0, 2, 100),
		MaxBackoff: choose(w, 0, 5*time.Second),
		TTL:        choose(w, 0, 5*time.Second), Grace: choose(w, 0, time.Second), Paused: w.chance(8),
		MaxRunning: choose(w, 0, 0, 3),
	}
	if w.chance(2) {
		q.Groups = []interlock.Share{{Group: "a", Weight: 3, Max: choose(w, 0, 1)}, {Group: "b"}}
	}
	return q
}

func (w *taskWorld) spec() engine.TaskSpec {
	x := engine.TaskSpec{ID: w.id(), TaskSpec: interlock.TaskSpec{Queue: "q", Group: choose(w, "", "a", "b")}}
	if w.chance(3) {
		x.Message, x.Queue, x.Key = true, "", choose(w, interlock.Key(mailboxes+"1"), mailboxes+"2")
	}
	for _, key := range []interlock.Key{"k/1", "k/2", "k/3", "l"} {
		if !x.Message && w.chance(3) {
			x.Claims = append(
				x.Claims, interlock.Claim{Key: key, Mode: choose(w, interlock.Exclusive, interlock.Exclusive, interlock.Shared)},
			)
		}
	}
	if w.chance(5) {
		x.Delay = choose(w, time.Second, 7*time.Second)
	}
	if w.chance(8) {
		x.Deadline = choose(w, 10*time.Second, 20*time.Second)
	}
	if w.chance(8) {
		q := w.question()
		x.Ask = &q
	}
	return x
}

func (w *taskWorld) question() interlock.Question {
	return interlock.Question{
		Text: "may I?", Limit: choose(w, 0, 3*time.Second, time.Minute),
		OnLimit: choose(w, 0, interlock.Approved, interlock.Denied),
		Reads:   []interlock.Read{{Key: choose(w, interlock.Key("k/1"), "did/none")}},
	}
}

// running returns a running task, or nil.
func (w *taskWorld) running() *taskSeen { return w.inState(interlock.TaskRunning) }

func (w *taskWorld) inState(state interlock.TaskState) *taskSeen {
	var list []*taskSeen
	for _, t := range w.order {
		if t.state == state {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return choose(w, list...)
}

func (w *taskWorld) worker() interlock.SessionID {
	if w.chance(3) {
		return interlock.SessionID{}
	}
	if len(w.workers) < 3 {
		id := interlock.SessionID(w.id())
		w.workers = append(w.workers, id)
		if err := w.do(&engine.OpenSession{ID: id, Agent: "worker", TTL: choose(w, 10*time.Second, time.Hour)}); err != nil {
			panic(err)
		}
	}
	return choose(w, w.workers...)
}

// ackOf acknowledges a task, and counts it in a document of its own.
func (w *taskWorld) ackOf(t *taskSeen) error {
	c := &engine.Ack{
		Head: engine.Head{RequestID: fmt.Sprint("ack ", t.lease)}, Lease: t.lease, Result: []byte("1"),
		CommitRequest: interlock.CommitRequest{
			Writes: []interlock.Write{{Key: interlock.Key("did/" + t.id.String()), Op: interlock.Add, Delta: 1}},
		},
	}
	if key, ok := t.mailbox(); ok {
		c.Writes = append(c.Writes, interlock.Write{Key: key, Op: interlock.Add, Delta: 1})
	}
	if w.chance(4) {
		c.Tasks = []engine.TaskSpec{w.spec()}
	}
	if w.chance(9) { // it is refused, and the attempt continues
		c.RequestID = ""
		c.Reads = []interlock.Read{{Key: "none", Present: true}}
	}
	again := *c
	if err := w.do(c); err != nil {
		return err
	}
	if c.RequestID != "" && w.last.Effects[len(w.last.Effects)-1].Outcome == engine.Done {
		w.acks = append(w.acks, &again)
	}
	return nil
}

func (w *taskWorld) one() error {
	switch w.rng.IntN(27) {
	case 0, 1, 2, 3, 4, 5:
		if w.chance(4) {
			return w.waitFor()
		}
		return w.do(&engine.Submit{
			Head: engine.Head{RequestID: choose(w, "", fmt.Sprint(w.ids))}, Agent: choose(w, "ann", "bob", ""), Task: w.spec(),
			Attach: w.chance(2),
		})
	case 6, 7, 8, 9:
		c := &engine.Pull{
			Head: engine.Head{Session: w.worker(), Link: 1}, ID: w.id(), Queue: "q", Max: 1 + w.rng.IntN(3),
			Attach: !w.chance(3),
		}
		for range c.Max {
			c.Leases = append(c.Leases, w.id())
		}
		return w.do(c)
	case 10, 11, 12:
		if t := w.running(); t != nil {
			return w.ackOf(t)
		}
	case 13, 14:
		if t := w.running(); t != nil {
			return w.do(&engine.Nack{
				Lease: t.lease, Delay: choose(w, 0, 0, -1, 2*time.Second), Dead: w.chance(8), Jitter: w.rng.Uint64(),
			})
		}
	case 15:
		if t := w.running(); t != nil {
			return w.do(&engine.Release{Lease: t.lease})
		}
	case 16, 17:
		return w.advanceBy(choose(w, time.Millisecond, time.Second, 4*time.Second, 12*time.Second))
	case 18:
		return w.do(&engine.Acquire{
			ID: w.id(), Agent: "agent", LeaseRequest: interlock.LeaseRequest{
				Claims: []interlock.Claim{{
					Key: choose(w, interlock.Key("k/1"), "k/2", "k/3", "l"), Mode: choose(w, interlock.Exclusive, interlock.Shared),
				}},
				Terms:      interlock.Terms{TTL: choose(w, 2*time.Second, time.Minute), Grace: engine.NoGrace},
				OnConflict: interlock.Wait,
			},
			Attach: true,
		})
	case 19:
		for _, id := range sortedIDs(w.agents) {
			if w.chance(2) {
				return w.do(&engine.Release{Lease: id})
			}
		}
	case 20:
		return w.do(&engine.SetQueue{Queue: w.queue()})
	case 21:
		c := &engine.ChangeTask{Delay: choose(w, 0, 3*time.Second)}
		state := choose(
			w, interlock.TaskScheduled, interlock.TaskWaiting, interlock.TaskAsking, interlock.TaskDead,
			interlock.TaskCancelled,
		)
		t := w.inState(state)
		if t == nil {
			return nil
		}
		c.Task, c.Change = t.id, choose(w, engine.CancelTask, engine.RescheduleTask)
		if state >= interlock.TaskDead {
			c.Change = choose(w, engine.ReplayTask, engine.ReplayTask, engine.DiscardTask)
		}
		return w.do(c)
	case 22:
		if len(w.workers) > 0 && w.chance(2) {
			id := w.workers[0]
			w.workers = w.workers[1:]
			return w.do(&engine.CloseSession{Head: engine.Head{Session: id}})
		}
		for _, id := range w.workers {
			if err := w.do(&engine.Heartbeat{Head: engine.Head{Session: id}}); err != nil {
				return err
			}
		}
		if len(w.workers) > 0 {
			return w.do(&engine.Detach{Head: engine.Head{Session: w.workers[0], Link: 1}})
		}
	case 23:
		if w.chance(2) {
			return w.snap()
		}
		return w.crash()
	case 24:
		return w.late()
	case 25:
		if t := w.running(); t != nil {
			return w.do(&engine.AskHuman{Lease: t.lease, Question: w.question()})
		}
	case 26:
		if t := w.inState(interlock.TaskAsking); t != nil {
			return w.do(&engine.Answer{
				Task: t.id, Verdict: choose(w, interlock.Approved, interlock.Approved, interlock.Denied), By: "eve",
			})
		}
	}
	return nil
}

// waitFor has a flow of a worker's session wait for a task, or for a key that no task
// claims: its own flow, or the one in which it has a task.
func (w *taskWorld) waitFor() error {
	head, flow := engine.Head{Session: w.worker(), Link: 1}, ""
	if t := w.running(); t != nil && w.chance(2) {
		flow = t.id.String()
	}
	if w.chance(2) {
		return w.do(&engine.Acquire{
			Head: head, ID: w.id(), LeaseRequest: interlock.LeaseRequest{
				Flow: flow, Claims: []interlock.Claim{{Key: choose(w, interlock.Key("m/1"), "m/2"), Mode: interlock.Exclusive}},
				Terms: interlock.Terms{Grace: engine.NoGrace}, OnConflict: interlock.Wait, Priority: choose(w, 0, 0, 1),
			},
			Attach: true,
		})
	}
	if t := w.inState(choose(w, interlock.TaskWaiting, interlock.TaskRunning, interlock.TaskScheduled)); t != nil &&
		w.chance(2) {
		return w.do(&engine.FollowTask{Head: head, Flow: flow, Task: t.id, Attach: true})
	}
	return w.do(&engine.Submit{Head: head, Flow: flow, Task: w.spec(), Attach: true})
}

// noCircle reports whether flows wait in a circle in which each waits for a task, or for
// the holder of a key.
func (w *taskWorld) noCircle() error {
	name := func(p engine.FlowRef) string {
		if p.Session != "" {
			return p.Session + "/" + p.Flow
		}
		return fmt.Sprint(p.Request)
	}
	next := map[string][]string{}
	for _, e := range w.e.Waits(taskSpace) {
		if !e.Ahead {
			next[name(e.Waiter)] = append(next[name(e.Waiter)], name(e.Blocker))
		}
	}
	state := map[string]int{}
	var visit func(at string) bool
	visit = func(at string) bool {
		state[at] = 1
		for _, to := range next[at] {
			if state[to] == 1 || state[to] == 0 && visit(to) {
				return true
			}
		}
		state[at] = 2
		return false
	}
	for at := range next {
		if state[at] == 0 && visit(at) {
			return fmt.Errorf("a circle of waits through %s is not found", at)
		}
	}
	return nil
}

// costly reports whether a wait in line ended for a cycle that the end of a wait for a task,
// which alone is for no key, would have broken at no cost.
func costly(cycle []interlock.CycleStep) error {
	if slices.ContainsFunc(cycle, func(s interlock.CycleStep) bool { return s.Key == "" }) {
		return fmt.Errorf("somebody lost their place in line to the cycle %+v", cycle)
	}
	return nil
}

// late acknowledges a task under a lease that is over, or writes a key with a single writer
// without a message.
func (w *taskWorld) late() error {
	id := w.id()
	for _, t := range w.order {
		if t.state != interlock.TaskRunning && t.lease != (interlock.LeaseID{}) {
			id = t.lease
		}
	}
	writes := []interlock.Write{{Key: mailboxes + "1", Op: interlock.Add, Delta: 1}}
	for _, cmd := range []engine.Command{&engine.Ack{Lease: id, CommitRequest: interlock.CommitRequest{
		Writes: writes,
	}}, &engine.Commit{Agent: "ann", CommitRequest: interlock.CommitRequest{
		Writes: writes,
	}}} {
		if err := w.do(cmd); err != nil {
			return err
		}
		if eff := w.last.Effects[len(w.last.Effects)-1]; eff.Outcome != engine.Refused {
			return fmt.Errorf("a %T that comes too late, or from nobody, is answered by %v", cmd, eff.Outcome)
		}
	}
	return nil
}

func sortedIDs(set map[[16]byte]bool) (list [][16]byte) {
	for id := range set {
		list = append(list, id)
	}
	slices.SortFunc(list, func(a, b [16]byte) int { return slices.Compare(a[:], b[:]) })
	return list
}

func (w *taskWorld) advanceBy(d time.Duration) error {
	if err := w.advance(w.now.Add(d), choose(w, everyTimer, atOnce)); err != nil {
		return err
	}
	return nil
}

// crash restarts the engine; what was acknowledged is asked again, and no task is lost.
func (w *taskWorld) crash() error {
	w.now = w.now.Add(choose(w, 0, 3*time.Second))
	if err := w.restart(uint64(w.rng.IntN(2))); err != nil {
		return err
	}
	if err := w.look(); err != nil {
		return err
	}
	if len(w.acks) > 0 {
		again := *choose(w, w.acks...)
		if err := w.do(&again); err != nil {
			return err
		}
		if eff := w.last.Effects[len(w.last.Effects)-1]; eff.Outcome != engine.Done || !eff.Repeated {
			return fmt.Errorf("an acknowledgement is answered by %v %s when it is repeated", eff.Outcome, eff.Code)
		}
	}
	return w.all()
}

// all compares what is listed with what the events said.
func (w *taskWorld) all() error {
	l := engine.TaskList{Namespace: taskSpace, Limit: 1000}
	for !l.Look(w.e) {
	}
	if len(l.Rows) != len(w.order) {
		return fmt.Errorf("%d tasks are listed, and there are %d", len(l.Rows), len(w.order))
	}
	for i := range l.Rows {
		if got, t := &l.Rows[i], w.order[i]; got.ID != t.id || got.State != t.state {
			return fmt.Errorf("task %d is listed as %v, and is %v", t.num, got.State, t.state)
		}
	}
	for _, key := range []interlock.Key{mailboxes + "1", mailboxes + "2"} {
		var logged []string
		entries, _, _ := w.e.Log(taskSpace, key, 0, interlock.MaxLogEntries)
		for i := range entries {
			logged = append(logged, fmt.Sprint(entries[i].Message, " ", entries[i].State))
		}
		if !slices.Equal(logged, w.logs[key]) {
			return fmt.Errorf("the log of %s has %v, and what was decided is %v", key, logged, w.logs[key])
		}
	}
	return nil
}

// drain has everything come to its end: then each task that was acknowledged has one
// effect, and no other has any.
func (w *taskWorld) drain() error {
	if err := w.do(&engine.SetQueue{Queue: interlock.TaskQueue{Name: "q", Backoff: time.Millisecond}}); err != nil {
		return err
	}
	open := func(t *taskSeen) bool { return t.state < interlock.TaskDone }
	for round := 0; slices.ContainsFunc(w.order, open); round++ {
		if round > 200 {
			return fmt.Errorf("the queue never comes to its end")
		}
		for _, id := range sortedIDs(w.agents) {
			if err := w.do(&engine.Release{Lease: id}); err != nil {
				return err
			}
		}
		c := &engine.Pull{ID: w.id(), Agent: "last", Queue: "q", Max: 8}
		for range c.Max {
			c.Leases = append(c.Leases, w.id())
		}
		if err := w.do(c); err != nil {
			return err
		}
		for _, t := range slices.Clone(w.order) {
			if t.state == interlock.TaskAsking {
				if err := w.do(&engine.Answer{Task: t.id, Verdict: interlock.Approved, By: "eve"}); err != nil {
					return err
				}
			}
			if t.state == interlock.TaskRunning {
				c := &engine.Ack{Lease: t.lease, CommitRequest: interlock.CommitRequest{
					Writes: []interlock.Write{{Key: interlock.Key("did/" + t.id.String()), Op: interlock.Add, Delta: 1}},
				}}
				if key, ok := t.mailbox(); ok {
					c.Writes = append(c.Writes, interlock.Write{Key: key, Op: interlock.Add, Delta: 1})
				}
				if err := w.do(c); err != nil {
					return err
				}
			}
		}
		if err := w.advanceBy(time.Second); err != nil {
			return err
		}
	}
	if err := w.crash(); err != nil {
		return err
	}
	for key, log := range w.logs {
		done := 0
		for _, line := range log {
			if strings.HasSuffix(line, interlock.TaskDone.String()) {
				done++
			}
		}
		docs, _, err := w.e.Documents(taskSpace, []interlock.Key{key}, true)
		if err != nil || done > 0 && string(docs[0].Body) != fmt.Sprint(done) {
			return fmt.Errorf("%s is %s after %d messages (%v)", key, docs[0].Body, done, err)
		}
	}
	did := map[interlock.Key]bool{}
	for _, d := range w.e.DocumentsFrom(taskSpace, "did/", "", 1000, true) {
		if did[d.Key] = true; string(d.Body) != "1" {
			return fmt.Errorf("%s happened %s times", d.Key, d.Body)
		}
	}
	for _, t := range w.order {
		if done := t.state == interlock.TaskDone; done != did[interlock.Key("did/"+t.id.String())] {
			return fmt.Errorf("task %d is %v, and its effect happened: %v", t.num, t.state, !done)
		}
	}
	return nil
}
