package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// written checks the versions that a commit writes.
func (a *audit) written(w *world, s *space, ev *record.Event) {
	if len(ev.Claims) != 1 {
		return
	}
	key := ev.Claims[0].Key
	switch {
	case s.written == ev.Version:
	case s.written != 0 || ev.Version <= s.version:
		w.fail("I11", "at index %d version %d is given to %s, and %d was given out", a.index, ev.Version, key, s.version)
	}
	a.mayWrite(w, key, ev)
	s.written, s.version = ev.Version, max(s.version, ev.Version)
	d := s.docs[key]
	if d == nil {
		d = &document{}
		s.docs[key] = d
	}
	d.history = append(d.history, edition{a.index, ev.Version, interlock.WriteOp(ev.Op) == interlock.Delete})
	if key == "done" {
		s.counted++
	}
}

// handed hands a task to a worker.
func (a *audit) handed(w *world, s *space, ev *record.Event) {
	t := s.tasks[ev.BaseID]
	if t == nil {
		w.fail("I12", "at index %d a task is handed out that was never submitted", a.index)
		return
	}
	if t.state == interlock.TaskRunning || t.settled() {
		w.fail("I12", "at index %d task %x is handed out, and it is %s", a.index, t.id[12:], t.state)
	}
	for _, before := range s.mail {
		if before == t {
			break
		}
		if t.key != "" && before.key == t.key && before.sender == t.sender && !before.replayed && !t.replayed {
			w.fail(
				"I12", "at index %d message %x is handed out ahead of %x of the same sender", a.index, t.id[12:], before.id[12:],
			)
		}
	}
	running := 1
	for _, x := range s.mail {
		if t.key != "" && x.state == interlock.TaskRunning {
			running++
		}
	}
	if running > mailCap {
		w.fail("I13", "at index %d %d messages are in hand, and the cap of their queue is %d", a.index, running, mailCap)
	}
	r := a.came(s, ev)
	r.task = true
	a.mayWork(w, r, t)
	t.state = interlock.TaskRunning
	a.grant(w, r, ev, t.claims)
}

func (t *task) settled() bool {
	return t.state == interlock.TaskDone || t.state == interlock.TaskDead || t.state == interlock.TaskCancelled
}

// taskMoved follows a task from state to state.
func (a *audit) taskMoved(w *world, s *space, ev *record.Event) {
	if ev.Kind == record.TaskSubmitted {
		t := &task{
			id: ev.ID, state: interlock.TaskState(ev.Op), claims: ev.Claims, actor: ev.Actor, askers: map[string]bool{},
			sender: fmt.Sprint(ev.Session, ev.Agent, ev.Actor),
		}
		if len(ev.Claims) == 1 && strings.HasPrefix(string(ev.Claims[0].Key), "box:") {
			t.key = ev.Claims[0].Key
			s.mail = append(s.mail, t)
		}
		s.tasks[t.id] = t
		return
	}
	t := s.tasks[ev.ID]
	if t == nil {
		w.fail("I12", "%s at index %d is about a task that was never submitted", ev.Kind, a.index)
		return
	}
	if ev.Kind == record.TaskForgotten {
		return
	}
	switch ev.Kind {
	case record.ApprovalRequested:
		t.askers[ev.Actor] = true
	case record.ApprovalDecided:
		a.answeredBy(w, t, ev)
	}
	to := interlock.TaskState(ev.Op)
	if to == interlock.TaskDone {
		if t.state != interlock.TaskRunning {
			w.fail("I12", "at index %d task %x is done, and it was %s", a.index, t.id[12:], t.state)
		}
		s.acked++
	}
	if t.settled() && to != t.state {
		t.replayed = true
		if t.state == interlock.TaskDone {
			w.fail("I12", "at index %d task %x is taken up again, and it was done", a.index, t.id[12:])
		}
	}
	if to != 0 {
		t.state = to
	}
	if i := slices.Index(s.mail, t); i >= 0 && t.settled() {
		s.mail = slices.Delete(s.mail, i, i+1)
	}
}
