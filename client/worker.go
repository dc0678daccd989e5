package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// Worker is how a process works on the tasks of a queue: see Client.Work. Queue and Handle are
// required.
type Worker struct {
	Queue       string
	Concurrency int // how many tasks are handled at a time; 0: 1

	TTL   time.Duration // of the leases under which they run; 0: the queue's, else the session's
	Drain time.Duration // how long those under way may take to finish when Work is to end; 0: DefaultDrain

	// Handle does the task. Its context is that of the lease (Lease.Context): it ends when the
	// lease is lost, with the reason as its cause, or when Drain is over, and leases acquired
	// under it belong to the task's flow. Handle's result ends the attempt: a Done means that
	// the task is done, and is committed together with its result, its writes and its follow-up
	// tasks, all or nothing. An error means that the attempt has failed, and the task is tried
	// again after a pause, unless this was the last one: RetryAfter, Dead and NeedsApproval
	// change that. A panic is an error.
	//
	// A result that cannot be stored has nothing repeated: see DeadUnstored. Writes or follow-up
	// tasks that are wrong as such make the task dead.
	//
	// It runs outside Interlock, so it may run again: after a crash, or when its lease was
	// lost. External actions belong into Client.Do.
	Handle func(ctx context.Context, job *Job) (Done, error)

	// DeadUnstored makes a task dead when its result cannot be stored, as it is no JSON or has more
	// than interlock.MaxResultBytes. Otherwise it is done, with {"interlock": "result not stored",
	// "reason": ...} as its result.
	DeadUnstored bool

	// OnError, if set, is called for every attempt that did not end with the task done: by the
	// error of Handle, a panic (*PanicError), a Done that was refused (a *StaleError if its
	// reads had changed; the task is then tried again at once) or the loss of the lease.
	// Several calls may run at a time.
	OnError func(job *Job, err error)
}

// DefaultDrain is how long jobs may take to finish when a Worker is to end.
const DefaultDrain = 30 * time.Second

// Done is the result of a task, committed all or nothing.
type Done struct {
	Result any // marshalled by encoding/json, the task's result; of a message, the reply; nil: nothing

	// The commit, as of Commit: without current Reads nothing is written, and the task is
	// handed out anew with the documents that are there by then.
	Reads  []interlock.Read
	AsOf   interlock.Version
	Writes []interlock.Write

	Tasks    []TaskSpec // follow-up tasks; their IDs are not used
	Messages []Message  // and is to be sent to other keys' writers, likewise

	Note string // for the next holder of the keys, and with the written documents; cut off at interlock.MaxNoteBytes
}

// errDraining is the cause of the contexts of jobs that have not finished in time when
// their worker ended.
var errDraining = errors.New("the worker is stopping, and its time to finish has passed")

// Work works on the tasks of a queue until ctx ends. It asks for as many tasks as it has idle
// handlers, and the server hands them out as soon as they can run, without polling. Connections
// that break do not end it.
//
// When ctx ends, no more tasks are taken, and those under way have Worker.Drain to finish; then
// their contexts end, and their tasks are returned at once, so that others get them. Work
// returns when every Handle has returned: nil, or the error that ended it before, which only an
// operator can mend, such as CodeUnknownQueue. While no server answers it waits some seconds
// more for the answers about its last assignments; these are returned when there is a server
// again.
func (c *Client) Work(ctx context.Context, w Worker) error {
	if w.Queue == "" || w.Handle == nil {
		return errors.New("client: a Worker needs a Queue and a Handle")
	}
	w.Concurrency, w.Drain = max(1, w.Concurrency), cmp.Or(w.Drain, DefaultDrain)
	work := &work{c: c, w: w, least: w.TTL, free: make(chan struct{}, w.Concurrency), jobs: map[*Job]struct{}{}}
	work.told, work.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	defer work.stop(nil)
	if err := work.learnTTL(ctx); err != nil {
		return err
	}
	for range w.Concurrency {
		work.free <- struct{}{}
	}
	err := work.takeAll(ctx)
	work.drain()
	return err
}

// work is a worker at work.
type work struct {
	c    *Client
	w    Worker
	free chan struct{} // one for each task that may be handled besides those that are

	told context.Context // ends when the server need not learn any more how attempts ended
	stop context.CancelCauseFunc

	running sync.WaitGroup
	mu      sync.Mutex        // guards the fields below
	least   time.Duration     // the shortest ttl that its leases are known to have; 0: the session's
	jobs    map[*Job]struct{} // that are being handled
	over    bool              // nothing is handled any more
}

// learnTTL finds out how often there must be heartbeats.
func (w *work) learnTTL(ctx context.Context) error {
	queues, err := w.c.Queues(ctx)
	if err != nil {
		return err
	}
	for i := range queues {
		if queues[i].Name == w.w.Queue {
			w.least = cmp.Or(w.least, queues[i].TTL)
			return nil
		}
	}
	return &interlock.Error{
		Code:    interlock.CodeUnknownQueue,
		Message: fmt.Sprintf("no queue is named %q: an operator creates queues", w.w.Queue),
	}
}

// maxPulls bounds how many pulls of a worker are under way at a time.
const maxPulls = 16

// takeAll pulls tasks and starts their handlers, until ctx ends or a pull is refused for good.
// A pull brings interlock.MaxPull tasks at most, and their assignment must be durable first: so
// several pulls are under way if one cannot keep all handlers busy.
func (w *work) takeAll(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	limit, giveUp := context.WithCancelCause(w.told) // of pulls that are withdrawn
	defer giveUp(nil)
	context.AfterFunc(ctx, func() {
		if pause(limit, settleTimeout) == nil {
			giveUp(errDraining)
		}
	})
	var (
		pulls sync.WaitGroup
		once  sync.Once
		why   error
	)
	for range min(maxPulls, (w.w.Concurrency+interlock.MaxPull-1)/interlock.MaxPull) {
		pulls.Go(func() {
			if err := w.take(ctx, limit); err != nil {
				once.Do(func() { why = err })
				stop()
			}
		})
	}
	pulls.Wait()
	return why
}

// take pulls tasks and starts their handlers, again and again, until ctx ends. When limit ends,
// it does not wait for tasks that were assigned to it meanwhile.
func (w *work) take(ctx, limit context.Context) error {
	pace := Backoff{Most: reconnectMost}
	for {
		idle := w.idle(ctx)
		if idle == 0 {
			return nil
		}
		w.mu.Lock()
		least := w.least
		w.mu.Unlock()
		list, err := w.c.pull(ctx, limit, w.w.Queue, idle, w.w.TTL, least)
		for range idle - len(list) {
			w.free <- struct{}{}
		}
		for i := range list {
			w.begin(&list[i])
		}
		switch {
		case err == nil && len(list) > 0:
			pace = Backoff{Most: reconnectMost}
		case ctx.Err() != nil:
			return nil
		case err != nil && !goesOn(err):
			return err
		case pace.Wait(ctx, retryAfter(err)) != nil:
			return nil
		}
	}
}

// idle waits until tasks may be handled, and returns how many at least; 0 when ctx has ended.
func (w *work) idle(ctx context.Context) (n int) {
	if ctx.Err() != nil {
		return 0
	}
	select {
	case <-w.free:
	case <-ctx.Done():
		return 0
	}
	for n = 1; n < interlock.MaxPull; n++ {
		select {
		case <-w.free:
		default:
			return n
		}
	}
	return n
}

// goesOn reports whether a worker asks again after this refusal.
func goesOn(err error) bool {
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return errors.Is(err, ErrUnreachable)
	}
	return refusal.Code.Retryable() || sessionGone(err)
}

func retryAfter(err error) time.Duration {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Advice.RetryAfter
	}
	return 0
}

// begin has a task handled.
func (w *work) begin(h *assignment) {
	job := &Job{task: cloneTask(h.task), documents: cloneDocuments(h.documents), asOf: h.asOf}
	job.lease = h.grant.handle(w.told)
	ttl := h.grant.info.TTL
	w.mu.Lock()
	if ttl < cmp.Or(w.c.cfg.SessionTTL, interlock.DefaultTTL) && (w.least == 0 || ttl < w.least) {
		w.least = ttl
	}
	w.jobs[job] = struct{}{}
	w.mu.Unlock()
	w.running.Go(func() { w.run(job) })
}

// drain waits for the handlers that run, and abandons those that take too long.
func (w *work) drain() {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		w.running.Wait()
	}()
	timer := time.NewTimer(w.w.Drain)
	defer timer.Stop()
	select {
	case <-finished:
		return
	case <-timer.C:
	}
	w.mu.Lock()
	w.over = true
	for job := range w.jobs {
		delete(w.jobs, job)
		w.giveUp(job)
	}
	w.mu.Unlock()
	last := time.AfterFunc(settleTimeout, func() { w.stop(errDraining) })
	defer last.Stop()
	<-finished
}
