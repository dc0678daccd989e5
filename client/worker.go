package client

import (
	"context"
	"time"

	"github.com/interlockdev/interlock"
)

// Worker says how a process works on the tasks of a queue: see Client.Work. Queue and
// Handle are required.
type Worker struct {
	Queue       string
	Concurrency int // how many tasks are handled at a time; 0: 1

	TTL   time.Duration // of the leases under which they run; 0: the queue's, else the session's
	Drain time.Duration // how long those under way may take to finish when Work is to end; 0: DefaultDrain

	// Handle does the task. Its context is that of the lease (Lease.Context): it ends
	// when the lease is lost, with the reason as its cause, or when Drain is over, and
	// what is acquired under it belongs to the task's flow. What Handle returns ends the
	// attempt: a Done says that the task is done, and is written down together with its
	// result, its writes and what is to be done next, all or nothing. An error says that
	// the attempt has failed, and the task is tried again after a pause, unless this was
	// the last one: RetryAfter, Dead and NeedsApproval say otherwise. A panic is an error.
	//
	// It runs outside Interlock, so it may run again: after a crash, or when its lease
	// was lost. What it does in the world belongs into Client.Do.
	Handle func(ctx context.Context, job *Job) (Done, error)

	// OnError, if set, is told of every attempt that did not end with the task done: by
	// the error of Handle, a panic (*PanicError), a Done that was refused (a *StaleError
	// if its reads had changed; the task is then tried again at once) or the loss of the
	// lease. Several may be told of at a time.
	OnError func(job *Job, err error)
}

// DefaultDrain is how long jobs may take to finish when a Worker is to end.
const DefaultDrain = 30 * time.Second

// Done is what comes of a task, all of it or nothing.
type Done struct {
	Result any // what encoding/json makes of it is the task's result; of a message, the reply; nil: nothing

	// The commit, as of Commit: without current Reads nothing is written, and the task is
	// handed out anew with what is there by then.
	Reads  []interlock.Read
	AsOf   interlock.Version
	Writes []interlock.Write

	Tasks    []TaskSpec // what is to be done next; their IDs are not used
	Messages []Message  // and is to be told to other keys' writers, likewise

	Note string // for the next holder of the keys, and with what is written
}
