package client

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// errGone is the outcome of a job after its handler has ended its goroutine: runtime.Goexit,
// which a test's FailNow calls.
var errGone = errors.New("its handler ended its goroutine")

// run handles one task, and reports its outcome.
func (w *work) run(job *Job) {
	done, err := Done{}, errGone
	defer func() { w.handled(job, done, err) }() // for every outcome of the handler
	done, err = w.handle(job)
}

// handled reports the outcome of a task.
func (w *work) handled(job *Job, done Done, err error) {
	w.mu.Lock()
	_, ours := w.jobs[job]
	delete(w.jobs, job)
	w.mu.Unlock()
	if !ours { // it was given up meanwhile
		w.free <- struct{}{}
		w.complain(job, errDraining)
		return
	}
	if err == nil {
		err = job.lease.reason(w.ack(job, done))
	} else {
		lost := job.lease.Err()
		w.nack(job, err)
		if lost != nil {
			err = errors.Join(err, lost)
		}
	}
	// Nothing works under the lease any more. If the server knows of no end, the next attempt comes when it is over.
	w.c.mu.Lock()
	job.lease.g.s.forget(job.lease.g)
	w.c.mu.Unlock()
	if err != nil {
		w.complain(job, err)
	}
}

// handle calls Handle. A panic is an error.
func (w *work) handle(job *Job) (done Done, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	if err = w.complete(job); err == nil {
		done, err = w.w.Handle(job.lease.Context(), job)
	}
	return done, err
}

// complete reads the documents with bodies too large for the answer that brought the job.
func (w *work) complete(job *Job) error {
	for i := range job.documents {
		if d := &job.documents[i]; d.Body == nil && d.Size > 0 {
			whole, err := w.c.Document(job.lease.Context(), d.Key)
			if err != nil {
				return fmt.Errorf("reading %s for the task: %w", d.Key, err)
			}
			*d = whole
		}
	}
	return nil
}

func (w *work) complain(job *Job, err error) {
	if w.w.OnError != nil {
		w.w.OnError(job, err)
	}
}

// ack reports to the server that a task is done. Its work is done, so a report with wrong content has nothing repeated.
// If it is refused otherwise and the attempt continues, it has failed.
func (w *work) ack(job *Job, done Done) error {
	op, problem, err := done.wire()
	if err != nil {
		return w.refused(job, err)
	}
	for result := op.Task.Result; ; {
		if problem != "" {
			if w.w.DeadUnstored {
				err := Dead(errors.New("result not stored: " + problem))
				w.nack(job, err)
				return err
			}
			slog.Warn("the result of a task that is done is not stored", "task", job.task.ID.String(), "reason", problem)
			result = unstored(problem)
		}
		again := *op.Task
		again.Result, op.Task = result, &again
		got, err := w.end(job, proto.OpAckTask, op, true)
		refusal, refused := errors.AsType[*interlock.Error](err)
		switch {
		case err == nil:
			return nil
		case !refused || attemptOver(refusal.Code):
			return err
		case refusedAsWrong(err) && problem == "" && result != nil:
			problem = refusal.Message
			continue
		case refusedAsWrong(err):
			return w.refused(job, err)
		case refusal.Code == interlock.CodeStale:
			stale := &StaleError{Refusal: refusal, Packet: interlock.Packet{Message: refusal.Message}}
			if got != nil && got.Packet != nil {
				stale.Packet = *got.Packet
			}
			w.nack(job, RetryAfter(0, stale)) // the next attempt reads fresh documents
			return stale
		}
		if hopeless(refusal.Code) {
			return w.refused(job, err)
		}
		w.nack(job, err)
		return err
	}
}

// hopeless reports whether a Done is refused with code because of its content, so that the work
// would only be repeated to the same end. A fault of the server shows nothing about the content.
func hopeless(code interlock.Code) bool {
	switch code {
	case interlock.CodeParked, interlock.CodeDenied, interlock.CodeInternal:
		return false
	}
	return !code.Retryable()
}

// refused ends the attempt at a task that was handled, when its Done can never be taken.
func (w *work) refused(job *Job, why error) error {
	err := Dead(fmt.Errorf("it was handled, and what its handler returned is refused: %w", why))
	w.nack(job, err)
	return err
}

// attemptOver reports whether a refusal with this code means that the attempt is over, or may
// be, so that there is nothing more to report.
func attemptOver(code interlock.Code) bool {
	switch code {
	case interlock.CodeTaskMoved, interlock.CodeAlreadyReplied, interlock.CodeOutcomeUnknown, interlock.CodeSessionEnded, interlock.CodeUnknownSession,
		interlock.CodeExpired, interlock.CodeTaken, interlock.CodeRevoked, interlock.CodeReleased, interlock.CodeUnknownLease:
		return true
	}
	return false
}

// nack ends a failed attempt as its error asks for.
func (w *work) nack(job *Job, err error) {
	x, kind := &proto.TaskOp{Reason: reasonOf(err)}, proto.OpNackTask
	if v, ok := errors.AsType[*verdict](err); ok {
		switch {
		case v.question != nil:
			x, kind = &proto.TaskOp{Question: cloneQuestion(v.question)}, proto.OpAskHuman
		case v.dead:
			x.Dead = true
		case v.timed:
			x.Delay = min(max(v.delay, 0), interlock.MaxDelay)
			if x.Delay == 0 {
				x.Delay = -1 // at once
			}
		}
	}
	_, no := w.end(job, kind, proto.Op{Task: x}, true)
	if refusal, refused := errors.AsType[*interlock.Error](no); refused && kind == proto.OpAskHuman &&
		!attemptOver(refusal.Code) {
		w.nack(job, fmt.Errorf("%v: %w", err, no)) // the question cannot be asked, and is not asked again
	}
}

// giveUp ends an attempt that its handler takes too long for. mu is held.
func (w *work) giveUp(job *Job) {
	job.lease.Context()
	job.lease.hold.cancel(errDraining)
	w.running.Go(func() {
		_, _ = w.end(job, proto.OpNackTask, proto.Op{Task: &proto.TaskOp{Reason: errDraining.Error(), Delay: -1}}, false)
	})
}

// end reports to the server how an attempt ended. With returned, its handler has, and as soon
// as that is on its way there is room for another task: what is asked for then comes after it.
func (w *work) end(job *Job, kind proto.OpKind, op proto.Op, returned bool) (got *found, err error) {
	c := w.c
	err = c.again(w.told, serverBusy, func() error {
		k := c.newCall(kind)
		k.op = op
		k.op.Kind, k.op.ID = kind, job.lease.ID()
		err := k.check()
		if err == nil {
			err = c.begin(k)
		}
		if returned && !job.left {
			job.left = true
			w.free <- struct{}{}
		}
		if err != nil {
			return err
		}
		got, err = c.answer(w.told, k, "the end of task "+job.task.ID.String())
		return err
	})
	return got, err
}

// wire returns the operation that reports it, and why its result cannot be stored, "" if it can.
func (d *Done) wire() (op proto.Op, problem string, err error) {
	op.Task = &proto.TaskOp{}
	op.Commit = &interlock.CommitRequest{
		AsOf: d.AsOf, Note: clip(d.Note, interlock.MaxNoteBytes), Reads: slices.Clone(d.Reads), Writes: cloneWrites(d.Writes),
	}
	op.Task.Result, problem = resultOf(d.Result)
	for i := range d.Tasks {
		spec, no := d.Tasks[i].wire()
		op.Task.Specs, err = append(op.Task.Specs, spec), errors.Join(err, no)
	}
	for i := range d.Messages {
		spec, no := d.Messages[i].wire()
		op.Task.Specs, err = append(op.Task.Specs, spec), errors.Join(err, no)
	}
	return op, problem, err
}
