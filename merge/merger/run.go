package merger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// A run of a check is a task of the check's queue. Each run ends, whatever its worker does:
//
//	the worker reports          ─► passed or failed
//	it reports nothing in time  ─► failed: the check timed out, by our limit or that of the queue
//	it is lost, or cannot try   ─► no result: another run. After maxLost in a row the tree is tried alone:
//	                                 ├─► with a result: that one counts, another tree has ended the workers
//	                                 └─► without: the head of the target is tried alone
//	                                       ├─► with a result: the tree has failed, it ends its workers
//	                                       └─► without: the failure is the merger's, and no submission comes back
//	no worker takes it          ─► it waits, and the health of the merger tells that

// maxLost is how many runs of a check on a tree may be lost in a row.
const maxLost = 3

// runEnd is how a run of a check ended.
type runEnd int

const (
	runLost   runEnd = iota // its worker died or could not try, or it was cancelled: no result
	runPassed               // the worker finished the task
	runFailed               // the worker failed it, or took too long
)

// run is the end of a run of a check.
type run struct {
	end   runEnd
	words string // why it has not passed, at most maxTail
	by    string // the credential that reported it
	task  string
}

// submitCheck makes the task of a run. A merger that dies before the verdict names it leaves a run without a reader.
func (l *line) submitCheck(ctx context.Context, spec Check, v *Verdict) error {
	task, err := l.Client.Submit(ctx, client.TaskSpec{
		Queue: l.Name.CheckQueue(spec.Check), Payload: spec, MaxAttempts: 1,
		Purpose: fmt.Sprintf("check %s for %s", spec.Check, spec.Target),
	})
	v.Running, v.Task = true, task.ID.String()
	return err
}

// blame decides about a tree that has lost its workers too often: see above. It fails if the workers are at fault.
func (l *line) blame(ctx context.Context, spec Check, head string) (run, error) {
	end, err := l.quiet.alone(ctx)
	if err != nil {
		return run{}, err
	}
	defer end()
	own, err := l.once(ctx, spec)
	if err != nil || own.end != runLost {
		return own, err
	}
	last := own
	if tree, err := l.Files.Tree(ctx, head); err != nil {
		return own, err
	} else if tree != spec.Tree {
		spec.Commit, spec.Tree = head, tree
		if last, err = l.once(ctx, spec); err != nil {
			return own, err
		}
	}
	if last.end == runLost {
		return own, fmt.Errorf("check %q has no result: its workers were lost %d times in a row, also on the target's "+
			"head; last: %s", spec.Check, maxLost+1, last.words)
	}
	own.end = runFailed
	own.words = fmt.Sprintf(
		"its workers were lost %d times in a row on this tree, and not on the target's head; last: %s", maxLost+1, own.words,
	)
	return own, nil
}

// once is a run that no verdict names before its end.
func (l *line) once(ctx context.Context, spec Check) (run, error) {
	var v Verdict
	if err := l.submitCheck(ctx, spec, &v); err != nil {
		return run{}, err
	}
	return l.awaitCheck(ctx, spec.Check, v.Task)
}

// quiet lets one run of a check be without others beside it. Waiting for that holds back those that begin.
type quiet struct{ gate, runs chan struct{} }

func newQuiet() *quiet { return &quiet{make(chan struct{}, 1), make(chan struct{}, 1000)} }

// beside begins a run, until end.
func (q *quiet) beside(ctx context.Context) (end func(), err error) {
	if err := take(ctx, q.gate, 1); err != nil {
		return nil, err
	}
	defer func() { <-q.gate }()
	if err := take(ctx, q.runs, 1); err != nil {
		return nil, err
	}
	return func() { <-q.runs }, nil
}

// alone waits for the end of all runs, and begins one.
func (q *quiet) alone(ctx context.Context) (end func(), err error) {
	if err := take(ctx, q.gate, 1); err != nil {
		return nil, err
	}
	if err := take(ctx, q.runs, cap(q.runs)); err != nil {
		<-q.gate
		return nil, err
	}
	return func() {
		for range cap(q.runs) {
			<-q.runs
		}
		<-q.gate
	}, nil
}

// take puts n into a channel, or nothing.
func take(ctx context.Context, c chan struct{}, n int) error {
	for i := range n {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
			for range i {
				<-c
			}
			return context.Cause(ctx)
		}
	}
	return nil
}

// awaitCheck waits for the end of a run, by this merger or an earlier one.
func (l *line) awaitCheck(ctx context.Context, check, name string) (run, error) {
	id, err := interlock.ParseTaskID(name)
	if err != nil {
		return run{}, err
	}
	told := false
	tell := func(words string) {
		if told || words != "" {
			l.send(ctx, func(ctx context.Context) error { return l.tell(ctx, words) })
		}
		told = words != ""
	}
	var since time.Time // since when a worker is known to have it
	waits := time.Now() // since when none is known to have it
	for {
		wait, cancel := context.WithTimeout(ctx, max(l.CheckWithin/60, time.Millisecond))
		task, err := l.Client.Await(wait, id)
		late := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		if late {
			task, err = l.Client.Task(ctx, id)
		}
		if settled, ok := errors.AsType[*client.TaskError](err); ok {
			task, err = settled.Task, nil
		}
		switch {
		case forgotten(err):
			tell("")
			return run{task: name, words: "the server has forgotten its task"}, nil
		case err != nil:
			if errors.Is(context.Cause(ctx), errUnneeded) {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				defer cancel()
				_, _ = l.Client.CancelTask(ctx, id, errUnneeded.Error())
			}
			return run{}, err
		case task.State.IsSettled():
			tell("")
			return runOf(&task), nil
		case task.State != interlock.TaskRunning:
			since = time.Time{}
			words, err := l.noWorker(ctx, check, time.Since(waits))
			if err != nil {
				return run{}, err
			}
			tell(words)
		case since.IsZero():
			since = time.Now()
			tell("")
		case time.Since(since) >= l.CheckWithin:
			l.Log.Warn("a check timed out", "check", check, "task", name, "within", l.CheckWithin)
			return run{
				task: name, end: runFailed, words: fmt.Sprintf("the check timed out: no result within %v", l.CheckWithin),
			}, nil
		}
	}
}

// noWorker is why no worker takes a run that has waited for some time, "" if one may.
func (l *line) noWorker(ctx context.Context, check string, waited time.Duration) (string, error) {
	queues, err := l.Client.Queues(ctx)
	if err != nil {
		return "", err
	}
	for i := range queues {
		q := &queues[i]
		switch {
		case q.Name != l.Name.CheckQueue(check):
		case q.Paused:
			return fmt.Sprintf("the queue of check %q is paused", check), nil
		case q.Idle+q.Running == 0:
			return fmt.Sprintf("check %q has no workers: start some for the queue %s", check, q.Name), nil
		case waited >= l.CheckWithin:
			return fmt.Sprintf("no worker of check %q was free for %v", check, l.CheckWithin), nil
		}
	}
	return "", nil
}

// tell notes in the health what checks or a landing wait for; "" is nothing any more.
func (l *line) tell(ctx context.Context, words string) error {
	if l.health.Failure != nil && l.health.Failure.Message == words {
		return nil
	}
	l.health.Failure = nil
	if now := time.Now(); words != "" {
		l.Log.Warn("the line waits", "why", words)
		l.health.Failure = &Failure{Message: words, Times: 1, Since: now.UnixMilli(), Next: now.Add(time.Minute).UnixMilli()}
	}
	return l.writeHealth(ctx)
}

// limits are those of a queue that end a task's lease.
var limits = []string{"max_hold", "stall"}

// runOf is how a run ended, by its task.
func runOf(t *interlock.Task) run {
	said := report(t)
	r := run{task: t.ID.String(), by: t.DoneBy, words: tail(t, said)}
	n := len(t.Attempts)
	switch {
	case t.State == interlock.TaskDone && said.Lost:
	case t.State == interlock.TaskDone && !said.Failed:
		r.end = runPassed
	case t.State == interlock.TaskDone, t.State == interlock.TaskDead && n > 0 && t.Attempts[n-1].EndedBy == "nack":
		r.end = runFailed
	case t.State == interlock.TaskDead && n > 0 && slices.Contains(limits, t.Attempts[n-1].EndedBy):
		r.end = runFailed
		r.words = "the check timed out: its lease ended by the limit " + t.Attempts[n-1].EndedBy + " of the queue"
	case t.State == interlock.TaskDead && n > 0:
		r.words = cmp.Or(r.words, "its lease ended: "+t.Attempts[n-1].EndedBy)
	}
	return r
}

// tail is the end of the words about a run that has not passed.
func tail(t *interlock.Task, said Report) string {
	text := cmp.Or(said.Tail, t.Reason)
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Reason != "" {
		text = t.Attempts[n-1].Reason
	}
	return strings.ToValidUTF8(text[max(0, len(text)-maxTail):], "")
}

// report is the result of a check's task. A result of another form is none.
func report(t *interlock.Task) (r Report) {
	if json.Unmarshal(t.Result, &r) != nil {
		return Report{}
	}
	return r
}

const maxTail = 4 << 10
