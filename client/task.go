package client

import (
	"time"

	"github.com/interlockdev/interlock"
)

// TaskSpec is work for a queue: a request that waits in line for its keys instead of
// the agent who asks for it.
type TaskSpec struct {
	Queue   string // a registered one
	Kind    string // what is asked for, for workers that handle several kinds
	Claims  []interlock.Claim
	Payload any // what encoding/json makes of it is handed to the worker; nil: nothing; at most interlock.MaxPayloadBytes
	Purpose string
	Group   string // for the queue's fairness and caps
	// Priority is from -interlock.MaxPriority to interlock.MaxPriority.
	Priority int

	Delay    time.Duration // it does not run before
	Deadline time.Duration // from now; if it is not done by then it is dead; 0: none

	// What follows is the queue's where it is 0.
	MaxAttempts int
	Backoff     time.Duration // the pause after the first failure is random, up to this
	MaxBackoff  time.Duration // up to which it doubles from failure to failure

	// Approval, if set, has a person decide before it may run at all.
	Approval *Question

	// ID makes the submission happen once, whoever makes it: for a day the same ID in the
	// same namespace is the same task, also from another process, and with other words
	// it is refused. "": this call alone. A task with an ID is submitted in the name of
	// the agent and its credential, and not of the session, which does not outlive the
	// process. At most interlock.MaxRequestIDBytes.
	ID string
}

// Question is what a person is to decide.
type Question struct {
	Text    string
	Limit   time.Duration     // how long it stands; 0: until somebody answers
	OnLimit interlock.Verdict // then; 0: Denied
	// Reads are the versions on which the question rests. Whoever has the task after the
	// answer is told which of them have changed since: Task.Approval.Stale.
	Reads []interlock.Read
}

// TaskFilter says which tasks are listed. Its zero value is all of them.
type TaskFilter struct {
	Queue string
	State interlock.TaskState
	Group string
	Key   interlock.Key // that they claim
}

// TaskError says that a task has come to an end without being done: it is dead or
// cancelled. It wraps an *interlock.Error with CodeTaskSettled.
type TaskError struct {
	Refusal *interlock.Error
	Task    interlock.Task // as it stands; its texts are others'
}

func (e *TaskError) Error() string { return e.Refusal.Error() }

func (e *TaskError) Unwrap() error { return e.Refusal }
