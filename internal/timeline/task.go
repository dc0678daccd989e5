package timeline

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// task is a Task with what the reducer needs of it.
type task struct {
	Task
	number int // in the order of the beginnings
	at     id
}

// submitted begins a task.
func (r *Reducer) submitted(index interlock.Index, ev *record.Event, at id) {
	if len(r.tasks) >= MaxOpen {
		r.moreTasks++
		return
	}
	r.number++
	t := &task{number: r.number, at: at, Task: Task{
		ID: ev.ID, Namespace: ev.Namespace, Agent: ev.Agent, Flow: ev.Flow, Claims: ev.Claims, Purpose: ev.Purpose,
		From: ev.At, Index: index, Context: contextOf(ev.Trace),
	}}
	t.Queue, t.Kind, _ = ev.Task() // the engine has refused one that cannot be read
	r.tasks[at] = t
}

// attempted counts an attempt.
func (r *Reducer) attempted(ev *record.Event) {
	if t := r.tasks[id{ev.Namespace, ev.BaseID}]; t != nil {
		t.Attempts++
	}
}

// taskMoved ends a task that has come to its end. A task is unknown here if it was submitted before the first event, or
// taken up again after its end.
func (r *Reducer) taskMoved(index interlock.Index, ev *record.Event, at id) {
	switch state := interlock.TaskState(ev.Op); state {
	case interlock.TaskDone, interlock.TaskDead, interlock.TaskCancelled:
		if t := r.tasks[at]; t != nil {
			r.settle(t, index, ev.At, state.String())
		}
	}
}

// settle ends a task.
func (r *Reducer) settle(t *task, index interlock.Index, at record.Time, outcome string) {
	delete(r.tasks, t.at)
	t.To, t.EndIndex, t.Outcome = max(at, t.From), index, outcome
	r.keepTask(t)
}

// keepTask keeps a task that is asked for, if there is room.
func (r *Reducer) keepTask(t *task) {
	switch {
	case !r.filter.shows(t.From, t.To, t.Agent, t.Claims):
	case len(r.settled) == r.most(MaxTasks):
		r.moreTasks++
	default:
		r.settled = append(r.settled, t)
		r.newest = max(r.newest, t.To)
	}
}

// openTasks returns the tasks that go on, in the order of their beginnings.
func (r *Reducer) openTasks() (list []*task) {
	for _, t := range r.tasks {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *task) int { return cmp.Compare(a.number, b.number) })
	return list
}

// keptTasks returns the tasks of the result, by their beginning.
func (r *Reducer) keptTasks() (list []Task) {
	for _, t := range r.openTasks() {
		r.keepTask(t)
	}
	slices.SortFunc(r.settled, func(a, b *task) int { return cmp.Compare(a.number, b.number) })
	for _, t := range r.settled {
		list = append(list, t.Task)
	}
	return list
}
