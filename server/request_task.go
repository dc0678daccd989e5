package server

import (
	"bytes"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The bodies of the calls about tasks, and of workers.

// decodeSubmit reads the body of POST /v1/tasks. wait is how long the caller wants to
// wait within the call for the task's end.
func decodeSubmit(d *jsonIn, cmd *engine.Submit) (wait time.Duration) {
	d.submitRequest(cmd, &cmd.Task, &wait)
	d.taskQueue(&cmd.Task)
	return min(wait, interlock.MaxLongPoll)
}

// task reads a task that an acknowledgement submits.
func (d *jsonIn) task() (x engine.TaskSpec) {
	d.taskRequest(&x)
	d.taskQueue(&x)
	return x
}

func (d *jsonIn) taskQueue(x *engine.TaskSpec) {
	if x.Queue == "" {
		d.fail("field %s is missing: name the queue of the task", d.member("queue"))
	}
}

// json reads any value, which is kept as it is.
func (d *jsonIn) json() []byte { return bytes.Clone(d.any(maxDocumentDepth)) }

// question reads a question to a person.
func (d *jsonIn) question() (q interlock.Question) {
	d.questionRequest(&q)
	if q.Text == "" {
		d.fail("field %s is missing: describe what the person has to decide", d.member("question"))
	}
	return q
}

// decodePull reads the body of POST /v1/queues/{queue}/pull. wait is how long the
// worker wants to wait within the call for a task.
func decodePull(d *jsonIn, cmd *engine.Pull) (wait time.Duration) {
	cmd.Max = 1
	d.pullRequest(cmd, &wait)
	return min(wait, interlock.MaxLongPoll)
}

// followUps reads a list of tasks or messages that an acknowledgement submits.
func (d *jsonIn) followUps(cmd *engine.Ack, read func() engine.TaskSpec) {
	d.array(interlock.MaxFollowUps, d.tooLong(interlock.MaxFollowUps), func() {
		x := read()
		x.ID = freshID()
		cmd.Tasks = append(cmd.Tasks, x)
	})
}

// message reads a message that an acknowledgement sends.
func (d *jsonIn) message() engine.TaskSpec {
	x := engine.TaskSpec{TaskSpec: interlock.TaskSpec{Message: true}}
	d.messageRequest(&x)
	if x.Key == "" {
		d.fail("field %s is missing: name the key of the message", d.member("key"))
	}
	return x
}

// decodeSend reads the body of POST /v1/mailbox/{key}. wait is how long the caller wants
// to wait within the call for the reply.
func decodeSend(d *jsonIn, cmd *engine.Submit) (wait time.Duration) {
	d.sendRequest(cmd, &cmd.Task, &wait)
	return min(wait, interlock.MaxLongPoll)
}

// decodeNack reads the body of POST /v1/leases/{id}/nack. A delay of 0 in the body is not the
// same as none, which means the task's backoff.
func decodeNack(d *jsonIn, cmd *engine.Nack) {
	delayed := d.nackRequest(cmd)&nackHasDelay != 0
	if cmd.Dead && delayed {
		d.fail("field delay_ms: a dead task has no further attempt: omit dead or delay_ms")
	}
	if delayed && cmd.Delay == 0 {
		cmd.Delay = -1
	}
}

// decodeChange reads the body of POST /v1/tasks/{id}/cancel and its like.
func decodeChange(d *jsonIn, cmd *engine.ChangeTask) {
	delayed := d.changeTaskRequest(cmd)&changeTaskHasDelay != 0
	if delayed && cmd.Change != engine.RescheduleTask && cmd.Change != engine.ReplayTask {
		d.fail("field delay_ms is only for reschedule and replay: omit it")
	}
}

// decodeWriter reads the body of PUT /v1/writers/{pattern}.
func decodeWriter(d *jsonIn) (queue, shape string) {
	d.writerRequest(&queue, &shape)
	if queue == "" {
		d.fail("field queue is missing: name the queue of the single writer")
	}
	return queue, shape
}

// decodeAnswer reads the body of POST /v1/approvals/{id}.
func decodeAnswer(d *jsonIn, cmd *engine.Answer) {
	d.answerRequest(cmd)
	if cmd.Verdict == 0 {
		d.fail("field verdict is missing: approved or denied")
	}
}
