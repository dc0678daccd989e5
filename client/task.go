package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// TaskSpec is work for a queue: a request that waits in line for its keys instead of the agent
// that asks for it.
type TaskSpec struct {
	Queue   string // a registered one
	Kind    string // the kind, for workers that handle several kinds
	Claims  []interlock.Claim
	Payload any // marshalled by encoding/json for the worker; nil: nothing; at most interlock.MaxPayloadBytes
	Purpose string
	Group   string // for the queue's fairness and caps
	Trace   string // W3C traceparent; the worker gets it, and the spans of the task are in that trace
	// Priority is from -interlock.MaxPriority to interlock.MaxPriority.
	Priority int

	Delay    time.Duration // it does not run before
	Deadline time.Duration // from now; if it is not done by then it is dead; 0: none

	// The fields below take the queue's value where they are 0.
	MaxAttempts int
	Backoff     time.Duration // the pause after the first failure is random, up to this
	MaxBackoff  time.Duration // up to which it doubles from failure to failure

	// Approval, if set, makes a person decide before it may run at all.
	Approval *Question

	// ID makes the submission happen once, even from several agents: for a day the same ID in
	// the same namespace is the same task, also from another process, and with other words it
	// is refused. "": this call alone. A task with an ID is submitted in the name of the agent
	// and its credential, and not of the session, which does not outlive the process. At most
	// interlock.MaxRequestIDBytes.
	ID string
}

// Question is a question to a person.
type Question = interlock.Question

// TaskFilter selects the tasks that are listed. Its zero value is all of them.
type TaskFilter struct {
	Queue string
	State interlock.TaskState
	Group string
	Key   interlock.Key // that they claim
}

// TaskError reports that a task has come to an end without being done: it is dead or cancelled.
// It wraps an *interlock.Error with CodeTaskSettled.
type TaskError struct {
	Refusal *interlock.Error
	Task    interlock.Task // as it stands; its texts are others'
}

func (e *TaskError) Error() string { return e.Refusal.Error() }

func (e *TaskError) Unwrap() error { return e.Refusal }

// Submit puts a task into its queue, and returns it as it stands: it is durable then, and
// runs when its keys are free and a worker of its queue is idle. With CodeOutcomeUnknown
// ctx ended before the answer came, or the session did: with a TaskSpec.ID it can be
// submitted again, and is one task. A server that is shutting down or has too much to do
// is asked again, as by Acquire.
func (c *Client) Submit(ctx context.Context, t TaskSpec) (interlock.Task, error) {
	spec, err := t.wire()
	if err != nil {
		return interlock.Task{}, err
	}
	return c.submitted(ctx, spec, t.ID, false)
}

// submitted submits a task; with attach it waits for the end of it.
func (c *Client) submitted(
	ctx context.Context, spec interlock.TaskSpec, id string, attach bool,
) (interlock.Task, error) {
	flow, agent := "", c.cfg.Agent // with an id it is the same task whichever flow submits it
	if id == "" {
		flow, agent = c.flow(ctx, ""), ""
	}
	task, err := c.taskCall(ctx, "the task", func() *call {
		k := c.newCall(proto.OpSubmitTask)
		k.op.Flow, k.op.RequestID, k.op.Agent = flow, id, agent
		k.op.Task = &proto.TaskOp{Specs: []interlock.TaskSpec{spec}, Attach: attach}
		return k
	})
	if !task.ID.IsZero() {
		task.Payload = spec.Payload
	}
	return task, err
}

// taskCall carries out an operation about one task.
func (c *Client) taskCall(ctx context.Context, what string, prepare func() *call) (interlock.Task, error) {
	var got *found
	err := c.again(ctx, serverBusy, func() (err error) {
		got, err = c.do(ctx, prepare(), what)
		return err
	})
	return taskOf(got, err)
}

// taskOf returns the task of an answer. One that has ended without being done is an error for
// the caller that waited for its end.
func taskOf(got *found, err error) (task interlock.Task, _ error) {
	if got != nil && len(got.Tasks) == 1 {
		task = cloneTask(got.Tasks[0])
	}
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeTaskSettled &&
		!task.ID.IsZero() {
		return task, &TaskError{Refusal: refusal, Task: task}
	}
	if err == nil && task.ID.IsZero() {
		err = &interlock.Error{Code: interlock.CodeInternal, At: got.at, Message: "the server returned no task"}
	}
	return task, err
}

// ended returns a task that has come to its end; unless it is done, with a *TaskError.
func ended(task interlock.Task, err error) (interlock.Task, error) {
	if err != nil || task.State == interlock.TaskDone {
		return task, err
	}
	return task, &TaskError{Task: task, Refusal: &interlock.Error{
		Code: interlock.CodeTaskSettled, Message: fmt.Sprintf("the task is %v: %s", task.State, task.Reason),
	}}
}

// Await waits for the end of a task, and returns it with its result. If it is dead or
// cancelled the error is a *TaskError. The wait is one of the flow of ctx, and counts as
// such in a deadlock: the error has CodeDeadlock then, and the task stays where it is.
func (c *Client) Await(ctx context.Context, id interlock.TaskID) (interlock.Task, error) {
	flow, what := c.flow(ctx, ""), "task "+id.String()
	task, err := c.taskCall(ctx, what, func() *call {
		k := c.newCall(proto.OpFollowTask)
		k.op.ID, k.op.Flow, k.op.Task = id, flow, &proto.TaskOp{Attach: true}
		return k
	})
	if ctx.Err() != nil && errors.Is(err, &interlock.Error{Code: interlock.CodeOutcomeUnknown}) { // it only looks
		err = fmt.Errorf("waiting for the end of %s: %w", what, context.Cause(ctx))
	}
	return ended(task, err)
}

// Task looks at a task, with its place in line. To wait for its end, use Await.
func (c *Client) Task(ctx context.Context, id interlock.TaskID) (interlock.Task, error) {
	k := c.newCall(proto.OpGetTask)
	k.op.ID = id
	return taskOf(c.do(ctx, k, "the look at a task"))
}

// Tasks lists tasks in the order in which they were submitted, without their payloads. It
// asks for more as it goes, so each part is of a moment of its own. After an error
// nothing more comes.
func (c *Client) Tasks(ctx context.Context, f TaskFilter) iter.Seq2[interlock.Task, error] {
	return func(yield func(interlock.Task, error) bool) {
		for after := uint64(0); ; {
			if ctx.Err() != nil {
				yield(interlock.Task{}, context.Cause(ctx))
				return
			}
			k := c.newCall(proto.OpListTasks)
			k.op.Group, k.op.Key = f.Group, f.Key
			k.op.Task = &proto.TaskOp{Queue: f.Queue, State: f.State, From: after}
			got, err := c.do(ctx, k, "the list of tasks")
			if err != nil {
				yield(interlock.Task{}, err)
				return
			}
			for i := range got.Tasks {
				if !yield(cloneTask(got.Tasks[i]), nil) {
					return
				}
			}
			if !got.More || len(got.Tasks) == 0 {
				return
			}
			after = got.Next
		}
	}
}

// CancelTask takes back a task that does not run. One that is settled already is a
// *TaskError.
func (c *Client) CancelTask(ctx context.Context, id interlock.TaskID, reason string) (interlock.Task, error) {
	return c.changeTask(ctx, id, proto.CancelTask, 0, reason)
}

// RescheduleTask makes a task that does not run due after delay, regardless of its schedule.
func (c *Client) RescheduleTask(ctx context.Context, id interlock.TaskID, delay time.Duration) (interlock.Task, error) {
	return c.changeTask(ctx, id, proto.RescheduleTask, delay, "")
}

// ReplayTask takes up a task again that is dead or cancelled, due after delay and with all
// its attempts before it.
func (c *Client) ReplayTask(ctx context.Context, id interlock.TaskID, delay time.Duration) (interlock.Task, error) {
	return c.changeTask(ctx, id, proto.ReplayTask, delay, "")
}

// DiscardTask has a settled task forgotten, and returns it as it was.
func (c *Client) DiscardTask(ctx context.Context, id interlock.TaskID, reason string) (interlock.Task, error) {
	return c.changeTask(ctx, id, proto.DiscardTask, 0, reason)
}

func (c *Client) changeTask(
	ctx context.Context, id interlock.TaskID, change proto.TaskChange, delay time.Duration, reason string,
) (interlock.Task, error) {
	return c.taskCall(ctx, "the change of a task", func() *call {
		k := c.newCall(proto.OpChangeTask)
		k.op.ID, k.op.Task = id, &proto.TaskOp{Change: change, Delay: delay, Reason: reason}
		return k
	})
}

// AnswerTask is a person's word on a task that waits for it. by is that person's name.
func (c *Client) AnswerTask(
	ctx context.Context, id interlock.TaskID, verdict interlock.Verdict, by, reason string,
) (interlock.Task, error) {
	return c.taskCall(ctx, "the answer", func() *call {
		k := c.newCall(proto.OpAnswerTask)
		k.op.ID, k.op.Task = id, &proto.TaskOp{Verdict: verdict, By: by, Reason: reason}
		return k
	})
}

// AnswerLease answers the question of a parked lease; fence is the lease's fence, and by
// that person's name. A resumption that waits for the answer has it at once.
func (c *Client) AnswerLease(
	ctx context.Context, fence interlock.Fence, verdict interlock.Verdict, by, reason string,
) error {
	k := c.newCall(proto.OpAnswerTask)
	k.op.Fence, k.op.Task = fence, &proto.TaskOp{Verdict: verdict, By: by, Reason: reason}
	_, err := c.do(ctx, k, "the answer")
	return err
}

// wire returns the submitted form of a task.
func (t *TaskSpec) wire() (interlock.TaskSpec, error) {
	payload, err := encode(t.Payload)
	return interlock.TaskSpec{
		Queue: t.Queue, Kind: t.Kind, Claims: slices.Clone(t.Claims), Payload: payload, Purpose: t.Purpose,
		Group: t.Group, Trace: t.Trace,
		Priority: clampPriority(t.Priority), Delay: t.Delay, Deadline: t.Deadline, MaxAttempts: t.MaxAttempts,
		Backoff: t.Backoff, MaxBackoff: t.MaxBackoff,
		Ask: cloneQuestion(t.Approval),
	}, err
}

// cloneQuestion makes a question that shares no memory with the caller's.
func cloneQuestion(q *Question) *Question {
	if q == nil {
		return nil
	}
	own := *q
	own.Reads = slices.Clone(q.Reads)
	return &own
}

// encode makes JSON of a payload, a body or a result. It leaves <, > and & as they are, for people and models to read.
func encode(v any) (b []byte, err error) {
	if v == nil {
		return nil, nil
	}
	defer func() {
		if thrown := recover(); thrown != nil { // of a method of the value
			err = &interlock.Error{Code: interlock.CodeInvalidPayload, Message: fmt.Sprintf("encoding it panicked: %v", thrown)}
		}
	}()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, &interlock.Error{Code: interlock.CodeInvalidPayload, Message: err.Error()}
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// cloneTask makes a task that shares no memory: in one process, it is the server's own.
func cloneTask(t interlock.Task) interlock.Task {
	t.Claims, t.Payload, t.Result, t.Attempts = slices.Clone(t.Claims), slices.Clone(t.Payload), slices.Clone(t.Result),
		slices.Clone(t.Attempts)
	return t
}
