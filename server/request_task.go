package server

import (
	"bytes"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The bodies of the calls about tasks, and what workers send.

var taskFields = []string{
	"queue", "kind", "claims", "payload", "purpose", "group", "priority", "delay_ms", "deadline_ms", "max_attempts", "backoff_ms", "max_backoff_ms",
	"approval",
}

var submitFields = append([]string{"agent", "session", "flow", "wait_ms"}, taskFields...)

// decodeSubmit reads the body of POST /v1/tasks. wait is how long the caller wants to
// wait within the call for the task's end.
func decodeSubmit(d *jsonIn, cmd *engine.Submit) (wait time.Duration) {
	d.object(submitFields, func(field int) {
		if name := submitFields[field]; name == "wait_ms" {
			wait = d.ms()
		} else if !d.sender(name, cmd) {
			d.taskField(name, &cmd.Task)
		}
	})
	d.taskQueue(&cmd.Task)
	return min(wait, interlock.MaxLongPoll)
}

// task reads a task that an acknowledgement submits.
func (d *jsonIn) task() (x engine.TaskSpec) {
	d.object(taskFields, func(field int) { d.taskField(taskFields[field], &x) })
	d.taskQueue(&x)
	return x
}

func (d *jsonIn) taskQueue(x *engine.TaskSpec) {
	if x.Queue == "" {
		d.fail("field %s is missing: name the queue whose workers are to do it", d.member("queue"))
	}
}

func (d *jsonIn) taskField(name string, x *engine.TaskSpec) {
	switch name {
	case "queue":
		x.Queue = d.str()
	case "claims":
		x.Claims = d.claims(interlock.MaxClaims)
	case "payload":
		x.Payload = d.json()
	case "group":
		x.Group = d.str()
	default:
		d.workField(name, x)
	}
}

// workField reads what tasks and messages have in common.
func (d *jsonIn) workField(name string, x *engine.TaskSpec) {
	switch name {
	case "kind":
		x.Kind = d.str()
	case "purpose":
		x.Purpose = d.str()
	case "priority":
		x.Priority = d.priority()
	case "delay_ms":
		x.Delay = d.ms()
	case "deadline_ms":
		x.Deadline = d.ms()
	case "max_attempts":
		x.MaxAttempts = int(d.whole(0, interlock.MaxAttempts))
	case "backoff_ms":
		x.Backoff = d.ms()
	case "max_backoff_ms":
		x.MaxBackoff = d.ms()
	case "approval":
		q := d.question()
		x.Ask = &q
	}
}

// json reads any value, which is kept as it is.
func (d *jsonIn) json() []byte { return bytes.Clone(d.any(maxDocumentDepth)) }

var questionFields = []string{"question", "limit_ms", "on_limit", "reads"}

// question reads what a person is to decide.
func (d *jsonIn) question() (q interlock.Question) {
	d.object(questionFields, func(field int) {
		switch questionFields[field] {
		case "question":
			q.Text = d.str()
		case "limit_ms":
			q.Limit = d.ms()
		case "on_limit":
			q.OnLimit = d.verdict()
		case "reads":
			q.Reads = d.reads()
		}
	})
	if q.Text == "" {
		d.fail("field %s is missing: say what the person is to decide", d.member("question"))
	}
	return q
}

func (d *jsonIn) verdict() interlock.Verdict {
	return named(d, "approved or denied", interlock.ParseVerdict)
}

var pullFields = []string{"agent", "session", "max", "ttl_ms", "wait_ms"}

// decodePull reads the body of POST /v1/queues/{queue}/pull. wait is how long the
// worker wants to wait within the call for a task.
func decodePull(d *jsonIn, cmd *engine.Pull) (wait time.Duration) {
	cmd.Max = 1
	d.object(pullFields, func(field int) {
		switch pullFields[field] {
		case "agent":
			cmd.Agent = d.str()
		case "session":
			cmd.Session = d.sessionID()
		case "max":
			cmd.Max = int(d.whole(1, interlock.MaxPull))
		case "ttl_ms":
			cmd.TTL = d.ms()
		case "wait_ms":
			wait = d.ms()
		}
	})
	return min(wait, interlock.MaxLongPoll)
}

var ackFields = []string{"result", "reads", "as_of", "writes", "tasks", "messages", "note"}

// decodeAck reads the body of POST /v1/leases/{id}/ack.
func decodeAck(d *jsonIn, cmd *engine.Ack) {
	follow := func(read func() engine.TaskSpec) {
		d.array(interlock.MaxFollowUps, d.tooLong(interlock.MaxFollowUps), func() {
			x := read()
			x.ID = freshID()
			cmd.Tasks = append(cmd.Tasks, x)
		})
	}
	d.object(ackFields, func(field int) {
		switch ackFields[field] {
		case "result":
			cmd.Result = d.json()
		case "reads":
			cmd.Reads = d.reads()
		case "as_of":
			cmd.AsOf = d.version()
		case "writes":
			cmd.Writes = d.writes()
		case "tasks":
			follow(d.task)
		case "messages":
			follow(d.message)
		case "note":
			cmd.Note = d.str()
		}
	})
}

var messageFields = []string{
	"key", "kind", "body", "purpose", "priority", "delay_ms", "deadline_ms", "max_attempts", "backoff_ms", "max_backoff_ms", "approval",
}

// message reads a message that an acknowledgement sends.
func (d *jsonIn) message() engine.TaskSpec {
	x := engine.TaskSpec{TaskSpec: interlock.TaskSpec{Message: true}}
	d.object(messageFields, func(field int) {
		if name := messageFields[field]; name == "key" {
			x.Key = interlock.Key(d.str())
		} else {
			d.messageField(name, &x)
		}
	})
	if x.Key == "" {
		d.fail("field %s is missing: name the key to whose writer it goes", d.member("key"))
	}
	return x
}

func (d *jsonIn) messageField(name string, x *engine.TaskSpec) {
	if name == "body" {
		x.Payload = d.json()
		return
	}
	d.workField(name, x)
}

var sendFields = append([]string{"agent", "session", "flow", "wait_ms"}, messageFields[1:]...)

// decodeSend reads the body of POST /v1/mailbox/{key}. wait is how long the caller wants
// to wait within the call for the reply.
func decodeSend(d *jsonIn, cmd *engine.Submit) (wait time.Duration) {
	d.object(sendFields, func(field int) {
		if name := sendFields[field]; name == "wait_ms" {
			wait = d.ms()
		} else if !d.sender(name, cmd) {
			d.messageField(name, &cmd.Task)
		}
	})
	return min(wait, interlock.MaxLongPoll)
}

// sender reads the submitter or sender.
func (d *jsonIn) sender(name string, cmd *engine.Submit) bool {
	switch name {
	case "agent":
		cmd.Agent = d.str()
	case "session":
		cmd.Session = d.sessionID()
	case "flow":
		cmd.Flow = d.str()
	default:
		return false
	}
	return true
}

var nackFields = []string{"reason", "delay_ms", "dead"}

// decodeNack reads the body of POST /v1/leases/{id}/nack. A delay of 0 is one that is
// given, so it is not the task's backoff.
func decodeNack(d *jsonIn, cmd *engine.Nack) {
	var delayed bool
	d.object(nackFields, func(field int) {
		switch nackFields[field] {
		case "reason":
			cmd.Reason = d.str()
		case "delay_ms":
			delayed = true
			if cmd.Delay = d.ms(); cmd.Delay == 0 {
				cmd.Delay = -1
			}
		case "dead":
			cmd.Dead = d.yes()
		}
	})
	if cmd.Dead && delayed {
		d.fail("field delay_ms: what is dead has no other attempt: leave one of the two out")
	}
}

var changeFields = []string{"delay_ms", "reason"}

// decodeChange reads the body of POST /v1/tasks/{id}/cancel and its like.
func decodeChange(d *jsonIn, cmd *engine.ChangeTask) {
	d.object(changeFields, func(field int) {
		switch changeFields[field] {
		case "delay_ms":
			cmd.Delay = d.ms()
			if cmd.Change != engine.RescheduleTask && cmd.Change != engine.ReplayTask {
				d.fail("field delay_ms: only a task that is rescheduled or replayed comes later: leave it out")
			}
		case "reason":
			cmd.Reason = d.str()
		}
	})
}

var writerFields = []string{"queue", "pattern"}

// decodeWriter reads the body of PUT /v1/writers/{pattern}.
func decodeWriter(d *jsonIn) (queue, shape string) {
	d.object(writerFields, func(field int) {
		switch writerFields[field] {
		case "queue":
			queue = d.str()
		case "pattern":
			shape = d.str()
		}
	})
	if queue == "" {
		d.fail("field queue is missing: name the queue whose workers alone may change the keys")
	}
	return queue, shape
}

var answerFields = []string{"verdict", "by", "reason"}

// decodeAnswer reads the body of POST /v1/approvals/{id}.
func decodeAnswer(d *jsonIn, cmd *engine.Answer) {
	d.object(answerFields, func(field int) {
		switch answerFields[field] {
		case "verdict":
			cmd.Verdict = d.verdict()
		case "by":
			cmd.By = d.str()
		case "reason":
			cmd.Reason = d.str()
		}
	})
	if cmd.Verdict == 0 {
		d.fail("field verdict is missing: approved or denied")
	}
}

var queueFields = []string{
	"paused", "drain", "max_attempts", "backoff_ms", "max_backoff_ms", "ttl_ms", "grace_ms", "max_hold_ms", "stall_ms", "max_running", "max_tasks",
	"groups", "pull", "submit", "admin", "approvers", "min_approvals",
}

// decodeQueue reads the body of PUT /v1/queues/{queue}. The engine checks whether it
// contradicts itself; a field that is left out is as if it had never been set.
func decodeQueue(d *jsonIn, q *interlock.TaskQueue) {
	d.object(queueFields, func(field int) {
		switch queueFields[field] {
		case "paused":
			q.Paused = d.yes()
		case "drain":
			q.Drain = d.yes()
		case "max_attempts":
			q.MaxAttempts = int(d.whole(0, interlock.MaxAttempts))
		case "backoff_ms":
			q.Backoff = d.ms()
		case "max_backoff_ms":
			q.MaxBackoff = d.ms()
		case "ttl_ms":
			q.TTL = d.ms()
		case "grace_ms":
			q.Grace = d.ms()
		case "max_hold_ms":
			q.MaxHold = d.ms()
		case "stall_ms":
			q.Stall = d.ms()
		case "max_running":
			q.MaxRunning = int(d.whole(0, interlock.MaxTasks))
		case "max_tasks":
			q.MaxTasks = int(d.whole(0, interlock.MaxTasks))
		case "groups":
			d.array(interlock.MaxShares, d.tooLong(interlock.MaxShares), func() { q.Groups = append(q.Groups, d.share()) })
		case "pull":
			q.Pull = d.texts(interlock.MaxAccess)
		case "submit":
			q.Submit = d.texts(interlock.MaxAccess)
		case "admin":
			q.Admin = d.texts(interlock.MaxAccess)
		case "approvers":
			q.Approvers = d.texts(interlock.MaxAccess)
		case "min_approvals":
			q.MinApprovals = int(d.whole(0, interlock.MaxApprovals))
		}
	})
}

var shareFields = []string{"name", "weight", "max"}

func (d *jsonIn) share() (s interlock.Share) {
	d.object(shareFields, func(field int) {
		switch shareFields[field] {
		case "name":
			s.Group = d.str()
		case "weight":
			s.Weight = int(d.whole(0, interlock.MaxTasks))
		case "max":
			s.Max = int(d.whole(0, interlock.MaxTasks))
		}
	})
	return s
}
