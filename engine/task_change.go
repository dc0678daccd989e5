package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Operators' commands for queues, and for tasks that do not run.

func (c *SetQueue) decide(e *Engine) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		e.refuse(interlock.CodeInvalidNamespace, problem)
		return
	}
	if problem := checkQueue(&c.Queue); problem != nil {
		e.refuse(interlock.CodeInvalidQueue, problem)
		return
	}
	if problem := e.noRoomForSpace(); problem != nil {
		e.refuse(interlock.CodeTooManyNamespaces, problem)
		return
	}
	if s := e.PendingWork.NS; s.Registered(c.Queue.Name) == nil && s != nil && s.Tasks.Registered >= interlock.MaxQueues {
		e.refuse(
			interlock.CodeTooManyQueues,
			message.New(message.QueuesAtLimit, message.Str(c.Namespace), message.Num(interlock.MaxQueues)),
		)
		return
	}
	e.replaceQueue(&c.Head, &c.Queue, "")
}

func (c *SwitchQueue) decide(e *Engine) {
	q := e.PendingWork.NS.Registered(c.Name)
	if q == nil {
		e.refuseQueue(c.Name)
		return
	}
	if no := q.NotAdmin(c.Principal, message.New(message.ChangeQueue)); no != nil {
		e.refuseFor(no)
		return
	}
	if !e.acceptsReason(c.Reason) {
		return
	}
	next := q.TaskQueue
	next.Paused, next.Drain = c.Paused.apply(q.Paused), c.Drain.apply(q.Drain)
	e.replaceQueue(&c.Head, &next, c.Reason)
}

// replaceQueue sets a queue's settings, and answers the command.
func (e *Engine) replaceQueue(h *Head, q *interlock.TaskQueue, reason string) {
	*e.draft() = record.Event{
		Kind: record.QueueSet, Namespace: h.Namespace, QueueName: q.Name, Blob: record.AppendQueue(nil, q), Actor: h.Actor,
		Note: reason,
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	if known := e.PendingWork.NS.Registered(q.Name); len(known.Pull) > 0 {
		e.dismissPulls(known, known.NotPuller)
	}
	e.reply(Done)
}

func (c *DropQueue) decide(e *Engine) {
	q := e.PendingWork.NS.Registered(c.Name)
	if q == nil {
		e.refuseQueue(c.Name)
		return
	}
	if n := q.Open(); n > 0 {
		e.refuse(interlock.CodeQueueInUse, message.New(message.QueueInUse, message.Str(q.Name), message.Num(n)))
		return
	}
	if p := q.NS.WrittenBy(q.Name); p != nil {
		e.refuse(interlock.CodeQueueInUse, message.New(message.QueueIsWriter, message.Str(q.Name), message.Str(p.Name)))
		return
	}
	*e.draft() = record.Event{Kind: record.QueueDropped, Namespace: c.Namespace, QueueName: c.Name, Actor: c.Actor}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.dismissPulls(q, func(*interlock.Principal) *store.Refusal { return store.UnknownQueue(q.Name) })
	e.reply(Done)
}

func (c *ChangeTask) decide(e *Engine) {
	if !e.acceptsReason(c.Reason) {
		return
	}
	if c.Delay < 0 || c.Delay > interlock.MaxDelay {
		no := badTime("delay", c.Delay)
		e.refuse(no.Code, no.Message)
		return
	}
	t := e.findTask(c.Task)
	if t == nil {
		return
	}
	if no := t.NotChangedBy(c.Principal); no != nil {
		e.refuseFor(no)
		return
	}
	if no := e.mayChange(t, c.Change); no != nil {
		e.refuse(no.Code, no.Message).Tasks = []Task{t.Show()}
		return
	}
	ev := e.standing(t, interlock.TaskCancelled)
	switch c.Change {
	case CancelTask:
		ev.SetWhy(message.Plain(c.Reason))
	case RescheduleTask, ReplayTask:
		ev.Op, ev.Due = uint8(interlock.TaskScheduled), c.Delay
		if c.Delay == 0 {
			ev.Op = uint8(interlock.TaskWaiting)
		}
		if c.Change == ReplayTask {
			ev.Generation = 0
			ev.SetWhy(nil)
		}
		if t.IsUnapproved() || c.Change == ReplayTask && t.IsSpent() {
			ev.Op = uint8(interlock.TaskAsking)
			if c.Change == ReplayTask {
				ev.Blob = record.AppendPrincipal(nil, c.Actor)
			}
		}
	case DiscardTask:
		ev.Kind, ev.Op, ev.Generation = record.TaskForgotten, 0, 0
		ev.SetWhy(message.Plain(c.Reason))
	}
	ev.Actor = c.Actor
	if sess := e.scope(); sess != nil {
		ev.Session, ev.Agent = sess.Num, sess.Agent
	}
	e.tag(ev, Done)
	shown := t.Show()
	if e.emit(ev); c.Change != DiscardTask {
		e.placed(t)
		shown = t.Show()
	}
	e.reply(Done).Tasks = []Task{shown}
}

// mayChange returns why a task cannot be changed so, nil if it can.
func (e *Engine) mayChange(t *store.Task, change TaskChange) *store.Refusal {
	settled := t.State.IsSettled()
	switch change {
	case CancelTask, RescheduleTask:
		if settled {
			return &store.Refusal{
				Code: interlock.CodeTaskSettled, Message: message.New(message.TaskSettled, message.Str(t.State.String())),
			}
		}
		if t.State == interlock.TaskRunning {
			return &store.Refusal{Code: interlock.CodeHeld, Message: message.New(message.TaskInHand, message.Str(t.Going.Agent))}
		}
	case ReplayTask:
		switch {
		case !settled:
			return &store.Refusal{
				Code: interlock.CodeTaskNotSettled, Message: message.New(message.TaskNotReplayable, message.Str(t.State.String())),
			}
		case t.State == interlock.TaskDone:
			return &store.Refusal{
				Code: interlock.CodeTaskSettled, Message: message.New(message.TaskNotReplayable, message.Str(t.State.String())),
			}
		case !t.Queue.Registered:
			return store.UnknownQueue(t.Queue.Name)
		case t.Queue.Open() >= store.Within(interlock.MaxTasks, t.Queue.MaxTasks):
			return &store.Refusal{
				Code: interlock.CodeTooManyTasks, Message: message.New(message.QueueFull, message.Str(t.Queue.Name)),
			}
		}
		if code, problem := e.closedFor(); code != "" {
			return &store.Refusal{Code: code, Message: problem}
		}
	case DiscardTask:
		if !settled {
			return &store.Refusal{
				Code: interlock.CodeTaskNotSettled, Message: message.New(message.TaskNotSettled, message.Str(t.State.String())),
			}
		}
	default:
		return invalid("", message.New(message.UnknownTaskChange))
	}
	return nil
}

// again answers an acknowledgement that was carried out before.
func (c *Ack) again(e *Engine, a *store.StoredAnswer) {
	commit := Commit{Head: c.Head, CommitRequest: interlock.CommitRequest{Writes: c.Writes}}
	commit.again(e, a)
	e.out.Effects[e.replied].Tasks = []Task{e.taskAgain(a)}
}

func (c *ChangeTask) again(e *Engine, a *store.StoredAnswer) { e.replyTaskAgain(a) }
