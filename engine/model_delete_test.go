package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// began is the model's knowledge of a namespace's beginning.
type began struct {
	above interlock.Version // its versions and the numbers of its log entries are above it
	kept  bool              // something was journaled of it that stays
}

// beginning returns where the versions of a namespace begin. One that is not there has none,
// but for a step that makes it.
func (m *model) beginning(ns interlock.Namespace) interlock.Version {
	b, known := m.began[ns]
	switch {
	case known && (b.kept || m.queued(ns) || m.hasWebhooks(ns)):
		return b.above
	case m.cmd != nil && m.cmd.Header().Namespace == ns:
		return m.past
	}
	return 0
}

// queued reports whether a namespace has a queue.
func (m *model) queued(ns interlock.Namespace) bool {
	return slices.ContainsFunc(m.queues, func(q *queue) bool { return q.ns == ns })
}

// begins takes in that an event is about a namespace.
func (m *model) begins(ev *record.Event) {
	if ev.Namespace == "" || ev.Kind == record.NamespaceDeleted || ev.Kind == record.NamespaceForgotten {
		return
	}
	if m.began == nil {
		m.began = map[interlock.Namespace]began{}
	}
	b, known := m.began[ev.Namespace]
	if !known || !b.kept && !m.queued(ev.Namespace) && !m.hasWebhooks(ev.Namespace) {
		b.above = m.past
	}
	switch ev.Kind {
	case record.QueueSet, record.QueueDropped, record.WebhookSet, record.WebhookRotated, record.WebhookDeleted,
		record.WebhookDelivered: // a queue and a webhook leave nothing behind
		b.kept = b.kept || ev.RequestID != ""
	default:
		b.kept = true
	}
	m.began[ev.Namespace] = b
}

// lives reports whether something is in a namespace that is not deleted without force.
func (m *model) lives(ns interlock.Namespace) bool {
	_, set := m.settings[ns]
	return set || len(m.patterns[ns]) > 0 || m.queued(ns) || m.hasWebhooks(ns) ||
		slices.ContainsFunc(m.logs, func(x logEntry) bool { return x.ns == ns }) ||
		slices.ContainsFunc(m.sessions, func(s *session) bool { return s.ns == ns && !s.ended }) ||
		slices.ContainsFunc(m.requests, func(r *request) bool { return r.ns == ns && r.phase != over }) ||
		slices.ContainsFunc(
			m.tasks, func(t *task) bool { return t.ns == ns && (!t.isSettled() || t.state == interlock.TaskDead) },
		) ||
		len(m.documents(ns)) > 0 ||
		slices.ContainsFunc(m.sideEffects, func(d *sideEffect) bool { return d.ns == ns && d.told != 0 })
}

func (m *model) expectDeletion(c *engine.DeleteNamespace) answer {
	if !c.Force && m.lives(c.Namespace) {
		return refusalKey(interlock.CodeNamespaceInUse)
	}
	return answer{outcome: engine.Done}
}

func (m *model) permitDeletion(cmd engine.Command, ev *record.Event) error {
	c, ok := cmd.(*engine.DeleteNamespace)
	switch {
	case !ok || c.Namespace != ev.Namespace || ev.Actor != c.Actor:
		return errors.New("nobody deletes the namespace")
	case !c.Force && m.lives(ev.Namespace):
		return errors.New("the namespace is in use")
	}
	return nil
}

// farewell is the notification of a listener in a namespace that is deleted.
type farewell struct {
	to      engine.Caller
	outcome interlock.Outcome
	about   [16]byte
}

// foldDeletion forgets all of a namespace.
func (m *model) foldDeletion(ns interlock.Namespace) {
	say := func(to engine.Caller, outcome interlock.Outcome, about [16]byte) {
		m.farewells = append(m.farewells, farewell{to, outcome, about})
	}
	for _, r := range m.requests {
		for _, h := range r.hearers {
			if r.ns == ns {
				say(h.to, engine.Refused, r.ask.ID)
			}
		}
		switch {
		case r.ns != ns:
		case r.phase == waiting && r.attached != nil && r.task == nil && r.awaits == nil:
			say(r.attached, engine.Refused, r.ask.ID)
		case r.active() && r.member == nil && r.session != nil && r.session.receiver != nil:
			say(r.session.receiver, engine.Lost, r.ask.ID)
		}
	}
	for _, w := range m.workers {
		if w.pull.Namespace == ns {
			say(w.pull.From, engine.Refused, w.pull.ID)
		}
	}
	for _, f := range m.following(func(f *follower) bool { return f.task.ns == ns }) {
		say(f.to, engine.Refused, f.task.id)
	}
	m.past = max(m.past, m.version(ns)+1)
	for _, x := range m.logs {
		if x.ns == ns {
			m.past = max(m.past, interlock.Version(x.Seq)+1)
		}
	}
	m.lowest = m.highestNum()
	delete(m.began, ns)
	m.recorded = slices.DeleteFunc(m.recorded, func(r recordedRefusal) bool { return r.pattern.ns == ns })
	mine := func(r *request) bool { return r != nil && r.ns == ns }
	m.sessions = slices.DeleteFunc(m.sessions, func(s *session) bool { return s.ns == ns })
	m.asks = slices.DeleteFunc(m.asks, func(a yieldAsk) bool { return mine(a.lease) })
	m.due = slices.DeleteFunc(m.due, func(a yieldAsk) bool { return mine(a.lease) })
	m.requests = slices.DeleteFunc(m.requests, mine)
	m.answers = slices.DeleteFunc(m.answers, func(a *storedReply) bool { return a.ns == ns })
	m.notes = slices.DeleteFunc(m.notes, func(n note) bool { return n.ns == ns })
	m.writes = slices.DeleteFunc(m.writes, func(w write) bool { return w.ns == ns })
	m.written = slices.DeleteFunc(m.written, func(w written) bool { return w.ns == ns })
	m.sideEffects = slices.DeleteFunc(m.sideEffects, func(d *sideEffect) bool { return d.ns == ns })
	m.revisions = slices.DeleteFunc(m.revisions, func(r *revision) bool { return r.place.ns == ns })
	m.tasks = slices.DeleteFunc(m.tasks, func(t *task) bool { return t.ns == ns })
	m.logs = slices.DeleteFunc(m.logs, func(x logEntry) bool { return x.ns == ns })
	m.queues = slices.DeleteFunc(m.queues, func(q *queue) bool { return q.ns == ns })
	m.workers = slices.DeleteFunc(m.workers, func(w *worker) bool { return w.pull.Namespace == ns })
	maps.DeleteFunc(m.buckets, func(p queueEntry, _ *bucket) bool { return p.ns == ns })
	maps.DeleteFunc(m.inUse, func(p queueEntry, _ int) bool { return p.ns == ns })
	delete(m.patterns, ns)
	delete(m.settings, ns)
	maps.DeleteFunc(m.webhooks, func(k webhookOf, _ engine.WebhookView) bool { return k.ns == ns })
}

// checkFarewells returns the effects other than those of a deletion, and an error if one of
// these is missing.
func (m *model) checkFarewells(effects []engine.Effect) ([]engine.Effect, error) {
	for _, f := range m.farewells {
		i := slices.IndexFunc(effects, func(e engine.Effect) bool {
			about := [16]byte(e.Ticket.ID)
			switch {
			case f.outcome == engine.Lost:
				about = [16]byte(e.Lease.ID)
			case len(e.Tasks) == 1:
				about = [16]byte(e.Tasks[0].ID)
			}
			return e.To == f.to && e.Outcome == f.outcome && about == f.about && e.Code == interlock.CodeRevoked
		})
		if i < 0 {
			return nil, fmt.Errorf("%v is not told of %s that the namespace is deleted", f.to, shortID(f.about))
		}
		effects = slices.Delete(effects, i, i+1)
	}
	m.farewells = nil
	return effects, nil
}
