package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// The figures of tasks. GET /v1/queues reports how many a queue has in which state: the names of
// queues are their tenants' own, and their number has no bound.

// taskFigures count the events of tasks, and how long they waited.
type taskFigures struct {
	submitted, handedOut, failed prometheus.Counter
	to                           [interlock.TaskCancelled + 1]prometheus.Counter // by where a task went; nil: not counted
	wait                         prometheus.Histogram
}

func (f *figures) newTaskFigures() {
	tasks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_tasks_total",
		Help: "Transitions of tasks: submitted, handed_out, failed (an attempt), asking (a person), done, dead, cancelled.",
	}, []string{"event"})
	t := &f.tasks
	t.submitted, t.handedOut, t.failed = tasks.WithLabelValues("submitted"), tasks.WithLabelValues(
		"handed_out",
	), tasks.WithLabelValues("failed")
	for _, state := range []interlock.TaskState{
		interlock.TaskAsking, interlock.TaskDone, interlock.TaskDead, interlock.TaskCancelled,
	} {
		t.to[state] = tasks.WithLabelValues(state.String())
	}
	t.wait = prometheus.NewHistogram(histogram("interlock_task_wait_seconds",
		"Time that tasks waited until they were dispatched to a worker.", thinkBuckets))
	f.registry.MustRegister(tasks, t.wait)
}

func (t *taskFigures) event(ev *record.Event) {
	switch ev.Kind {
	case record.TaskSubmitted:
		t.submitted.Inc()
	case record.TaskDispatched:
		t.handedOut.Inc()
		t.wait.Observe(ev.Waited.Seconds())
		return
	case record.AttemptFailed:
		t.failed.Inc()
	}
	if c := t.to[ev.Op]; c != nil {
		c.Inc()
	}
}
