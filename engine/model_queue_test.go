package engine_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// queue is a queue that is registered.
type queue struct {
	ns interlock.Namespace
	interlock.TaskQueue

	// passed has which groups had turns while one with tasks that could run had none, and
	// how long these were, the first of them left out: it may have been under way.
	passed map[turn]int
}

// length is how long a turn of a group is.
func length(s interlock.Share) int { return (1 << 20) / s.Weight }

type turn struct{ waits, goes string }

// worker is one that asks for tasks, and is idle.
type worker struct {
	pull    engine.Pull
	session *session
	handed  []*request // in this step
}

func (m *model) queue(ns interlock.Namespace, name string) *queue {
	for _, q := range m.queues {
		if q.ns == ns && q.Name == name {
			return q
		}
	}
	return nil
}

// queueOf returns what is said of a task's queue, also of one that was dropped.
func (m *model) queueOf(t *task) *interlock.TaskQueue {
	if q := m.queue(t.ns, t.spec.Queue); q != nil {
		return &q.TaskQueue
	}
	return &interlock.TaskQueue{}
}

// workerFor is the one that has waited longest of the idle workers that may hold a task,
// nil for none.
func (m *model) workerFor(t *task) *worker {
	for _, w := range m.workers {
		if w.pull.Namespace == t.ns && w.pull.Queue == t.spec.Queue && len(w.handed) == 0 &&
			m.mayHold(principalOf(w.pull.Actor), t) {
			return w
		}
	}
	return nil
}

// share returns a queue's settings for a group.
func (q *queue) share(group string) interlock.Share {
	s := interlock.Share{Group: group, Weight: 1}
	for _, g := range q.Groups {
		if g.Group == group {
			s = g
			s.Weight = max(1, s.Weight)
		}
	}
	return s
}

// mayRun reports whether neither a cap nor an operator keeps a task from running.
func (m *model) mayRun(t *task) bool {
	q := m.queue(t.ns, t.spec.Queue)
	if q == nil || q.Paused {
		return false
	}
	all, own := 0, 0
	for _, other := range m.tasks {
		if other.ns == t.ns && other.spec.Queue == q.Name && other.state == interlock.TaskRunning {
			all++
			if other.spec.Group == t.spec.Group {
				own++
			}
		}
	}
	most := q.share(t.spec.Group).Max
	return (q.MaxRunning == 0 || all < q.MaxRunning) && (most == 0 || own < most)
}

// ready returns the tasks of a queue that could run and may, and that the principal may hold.
func (m *model) ready(ns interlock.Namespace, queue string, by *interlock.Principal) (list []*task) {
	for _, t := range m.tasks {
		if t.ns == ns && t.spec.Queue == queue && t.stands() && m.mayHold(by, t) && m.free(t.request) && m.mayRun(t) {
			list = append(list, t)
		}
	}
	return list
}

// permitQueue: a queue is what was sent, and none is dropped that has work.
func (m *model) permitQueue(cmd engine.Command, ev *record.Event) error {
	switch c := cmd.(type) {
	case *engine.SetQueue:
		if ev.Kind == record.QueueSet && ev.QueueName == c.Queue.Name {
			return nil
		}
	case *engine.SwitchQueue:
		if ev.Kind == record.QueueSet && ev.QueueName == c.Name && m.queue(c.Namespace, c.Name) != nil {
			return nil
		}
	case *engine.DropQueue:
		if ev.Kind == record.QueueDropped && ev.QueueName == c.Name && len(m.openIn(c.Namespace, c.Name)) == 0 &&
			!m.isWriter(c.Namespace, c.Name) {
			return nil
		}
	}
	return errors.New("nobody asked for it")
}

// openIn returns the tasks of a queue that are not settled.
func (m *model) openIn(ns interlock.Namespace, queue string) (list []*task) {
	for _, t := range m.tasks {
		if t.ns == ns && t.spec.Queue == queue && !t.isSettled() {
			list = append(list, t)
		}
	}
	return list
}

// foldQueue takes in that a queue was registered or dropped.
func (m *model) foldQueue(cmd engine.Command) {
	ns := cmd.Header().Namespace
	if c, ok := cmd.(*engine.SetQueue); ok {
		m.dismiss(interlock.CodeForbidden, func(w *worker) bool {
			return w.pull.Namespace == ns && w.pull.Queue == c.Queue.Name && !listed(c.Queue.Pull, principalOf(w.pull.Actor))
		})
		m.queues = append(
			slices.DeleteFunc(m.queues, func(q *queue) bool { return q.ns == ns && q.Name == c.Queue.Name }),
			&queue{ns: ns, TaskQueue: c.Queue},
		)
		return
	}
	if c, ok := cmd.(*engine.SwitchQueue); ok {
		q := m.queue(ns, c.Name)
		if c.Paused != engine.AsIs {
			q.Paused = c.Paused == engine.On
		}
		if c.Drain != engine.AsIs {
			q.Drain = c.Drain == engine.On
		}
		return
	}
	name := cmd.(*engine.DropQueue).Name
	m.queues = slices.DeleteFunc(m.queues, func(q *queue) bool { return q.ns == ns && q.Name == name })
	m.dismiss(interlock.CodeUnknownQueue, func(w *worker) bool { return w.pull.Namespace == ns && w.pull.Queue == name })
}

// dismiss ends the pulls of idle workers and reports the code to them; "" for those that know.
func (m *model) dismiss(code interlock.Code, which func(*worker) bool) {
	m.workers = slices.DeleteFunc(m.workers, func(w *worker) bool {
		gone := which(w)
		if gone && code != "" {
			m.dismissed = append(m.dismissed, w)
		}
		return gone
	})
}

// taker is the worker that gets a task by ev: the one that just asks, or the one that
// has waited longest.
func (m *model) taker(cmd engine.Command, ev *record.Event) *worker {
	takes := func(w *worker) bool {
		return w.pull.Namespace == ev.Namespace && len(w.handed) < w.pull.Max && w.pull.Leases[len(w.handed)] == ev.ID
	}
	if m.asking != nil && takes(m.asking) {
		return m.asking
	}
	t := m.task(ev.Namespace, ev.BaseID)
	for _, w := range m.workers {
		if w.pull.Namespace == ev.Namespace && w.pull.Queue == t.spec.Queue {
			if takes(w) {
				return w
			} else if len(w.handed) == 0 && len(m.ready(t.ns, t.spec.Queue, principalOf(w.pull.Actor))) > 0 {
				return nil
			}
		}
	}
	return nil
}

// permitHanding: a worker is given a task that could run, and may, in fair order.
func (m *model) permitHanding(cmd engine.Command, ev *record.Event) error {
	t := m.task(ev.Namespace, ev.BaseID)
	if t == nil || t.state != interlock.TaskWaiting {
		return fmt.Errorf("%v does not wait", t)
	} else if first := m.ahead(t); first != nil {
		return fmt.Errorf("%v passes %v, which its sender sent before", t, first)
	}
	w := m.taker(cmd, ev)
	switch {
	case w == nil || w.pull.Queue != t.spec.Queue:
		return fmt.Errorf("it is no worker's turn to get %v", t)
	case w.session != nil && w.session.ended:
		return fmt.Errorf("%v goes to a session that has ended (I4)", t)
	case !m.atBest().free(t.request):
		return fmt.Errorf("%v is blocked by %v (I1, I5)", t, m.atBest().blockers(t.request))
	case !m.mayHold(principalOf(w.pull.Actor), t):
		return fmt.Errorf("%v goes to %q, which may not hold it", t, w.pull.Actor)
	case !m.mayRun(t):
		return fmt.Errorf("%v may not run: a cap or a pause is in the way (I13)", t)
	case ev.Waited != m.now.Sub(t.stood) || int(ev.Generation) != t.attempt+1:
		return fmt.Errorf("%v has waited %v for attempt %d", t, ev.Waited, ev.Generation)
	}
	r := m.attemptAt(t, w, ev.ID)
	if !slices.Equal(ev.Claims, r.claims) || ev.TTL != r.ttl() || ev.Grace != r.ask.Grace ||
		ev.MaxHold != r.ask.MaxHold || ev.Stall != r.ask.Stall ||
		ev.LockDelay != r.ask.LockDelay || ev.Flow != r.ask.Flow || ev.Agent != m.agentOf(r) {
		return fmt.Errorf("the lease is not that of %v: %+v", r, ev)
	}
	if err := m.permitTurn(t, principalOf(w.pull.Actor)); err != nil {
		return err
	}
	return m.permitFence(ev.Fence)
}

// attemptAt is the lease under which a worker has a task.
func (m *model) attemptAt(t *task, w *worker, id [16]byte) *request {
	r, q := *t.request, m.queueOf(t)
	r.session = w.session
	r.ask.ID, r.ask.Agent, r.ask.Actor = id, w.pull.Agent, w.pull.Actor
	if r.session != nil {
		r.ask.Flow = t.id.String()
	}
	r.ask.TTL, r.ask.Grace, r.ask.MaxHold, r.ask.Stall = w.pull.TTL, q.Grace, q.MaxHold, q.Stall
	if r.ask.TTL == 0 {
		r.ask.TTL = q.TTL
	}
	m.terms(&r)
	if left := max(1, t.deadline.Sub(m.now)); t.deadline != 0 && (r.ask.MaxHold == 0 || left < r.ask.MaxHold) {
		r.ask.MaxHold = left
	}
	return &r
}

// permitTurn: within a group no task that could run is overtaken; and among groups one of
// weight 3 has at most three turns for each of one of weight 1, plus the one that was under
// way.
func (m *model) permitTurn(t *task, by *interlock.Principal) error {
	q := m.queue(t.ns, t.spec.Queue)
	for _, o := range m.ready(t.ns, q.Name, by) {
		if o.spec.Group == t.spec.Group && m.aheadOf(o.request, t.request) {
			return fmt.Errorf("%v overtakes %v", t, o)
		}
		if o.spec.Group == t.spec.Group {
			continue
		}
		goes, waits := q.share(t.spec.Group), q.share(o.spec.Group)
		if n, ok := q.passed[turn{waits.Group, goes.Group}]; ok && n+length(goes) > length(waits) {
			return fmt.Errorf(
				"turns of group %q make %d, and %q waits for one of %d", goes.Group, n+length(goes), waits.Group, length(waits),
			)
		}
	}
	return nil
}

// foldHanding takes in that a worker has a task.
func (m *model) foldHanding(cmd engine.Command, ev *record.Event) {
	t := m.task(ev.Namespace, ev.BaseID)
	q, w := m.queue(t.ns, t.spec.Queue), m.taker(cmd, ev)
	m.takeTurn(q, t, principalOf(w.pull.Actor))
	r := m.attemptAt(t, w, ev.ID)
	r.changed, r.unsure = m.changedMeanwhile(t.request, false), m.changedMeanwhile(t.request, true)
	m.requests = append(slices.DeleteFunc(m.requests, func(o *request) bool { return o == t.request }), r)
	t.request, t.state, t.attempt, t.rested, t.rests, t.sleeps, t.trailed = r, interlock.TaskRunning, int(
		ev.Generation,
	), false, false, false, false
	if q := t.question; q != nil && q.usedIn == 0 {
		q.usedIn, q.user = t.attempt, r
	}
	m.hand(r, held, ev.Fence)
	r.dispatchedAt = m.version(r.ns)
	w.handed = append(w.handed, r)
	m.handing = append(m.handing, w.pull)
}

// takeTurn counts for the other groups that could go that one of them does.
func (m *model) takeTurn(q *queue, t *task, by *interlock.Principal) {
	if q.passed == nil {
		q.passed = map[turn]int{}
	}
	seen := map[string]bool{t.spec.Group: true}
	for _, o := range m.ready(t.ns, q.Name, by) {
		if k := (turn{o.spec.Group, t.spec.Group}); !seen[o.spec.Group] {
			if n, ok := q.passed[k]; ok {
				q.passed[k] = n + length(q.share(t.spec.Group))
			} else {
				q.passed[k] = 0
			}
		}
		seen[o.spec.Group] = true
	}
	for k := range q.passed {
		if k.waits == t.spec.Group {
			delete(q.passed, k)
		}
	}
}

// forgetTurns begins to count anew for the groups that could not go.
func (m *model) forgetTurns() {
	for _, q := range m.queues {
		could := map[string]bool{}
		for _, t := range m.tasks {
			if t.ns != q.ns || t.spec.Queue != q.Name || !t.stands() || !m.free(t.request) || !m.mayRun(t) {
				continue
			}
			could[t.spec.Group] = true
		}
		for k := range q.passed {
			if !could[k.waits] {
				delete(q.passed, k)
			}
		}
	}
}
