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
	"github.com/interlockdev/interlock/merge/train"
)

// errUnneeded ends a check that the train does not need any more.
var errUnneeded = errors.New("the check is not needed any more")

// startCheck has the tip of a chain checked. The owner gets the end as an event.
func (l *line) startCheck(ctx context.Context, c train.Check, t tip) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.checks[c.Number] = func() { cancel(errUnneeded) }
	spec := Check{Repo: l.Name.Repo, Target: l.Name.Target, Commit: t.commit, Tree: t.tree}
	seen := map[string]int{}
	for _, name := range l.Checks {
		seen[name], _ = l.reported.get(t.tree + "/" + name)
	}
	go func() {
		defer cancel(nil)
		verdicts, err := l.checkAll(ctx, spec, seen)
		l.send(ctx, func(ctx context.Context) error {
			if l.checks[c.Number] == nil {
				return nil // it was cancelled
			}
			delete(l.checks, c.Number)
			if err != nil {
				return err
			}
			id, suspect := l.suspect(c.Chain)
			if failures := l.learn(c.Number, t.tree, verdicts); suspect && len(failures) > 0 {
				l.checkAlone(ctx, id, failures)
			}
			return nil
		})
	}()
}

// learn tells the train how a check ended, and returns what failed.
func (l *line) learn(number uint64, tree string, verdicts map[string]Verdict) (failures []CheckResult) {
	passed := true
	for _, name := range l.Checks {
		v, ok := verdicts[name]
		if passed = passed && v.Passed; !ok || v.Passed {
			continue
		}
		l.reported.set(tree+"/"+name, v.Failures)
		failures = append(failures, CheckResult{Name: name, Tail: v.Tail})
	}
	l.failures.set(tree, failures)
	if passed {
		l.passed.set(tree, true)
	}
	l.train.Verdict(number, passed)
	return failures
}

// checkAll runs all checks of a tree beside each other, and ends the others when one has failed. seen has the number
// of failures of each check that are known already.
func (l *line) checkAll(ctx context.Context, spec Check, seen map[string]int) (map[string]Verdict, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type end struct {
		name    string
		verdict Verdict
		err     error
	}
	ends := make(chan end, len(l.Checks))
	for _, name := range l.Checks {
		spec := spec
		spec.Check = name
		go func() {
			v, err := l.check(ctx, spec, seen[name])
			ends <- end{name, v, err}
		}()
	}
	verdicts := map[string]Verdict{}
	var failed error
	for range l.Checks {
		e := <-ends
		switch {
		case e.err == nil:
			verdicts[e.name] = e.verdict
			if !e.verdict.Passed {
				cancel(errUnneeded)
			}
		case failed == nil && !errors.Is(context.Cause(ctx), errUnneeded):
			failed = e.err
			cancel(e.err)
		}
	}
	return verdicts, failed
}

// check returns the verdict on one check of a tree: one that is kept, if it has passed or has more failures than are
// known, else that of another run. Runs that were lost with their workers are repeated.
func (l *line) check(ctx context.Context, spec Check, seen int) (Verdict, error) {
	key := l.Name.VerdictKey(spec.Tree, spec.Check)
	for {
		var v Verdict
		if _, err := read(ctx, l.Client, key, &v); err != nil {
			return v, err
		}
		if v.Passed || v.Failures > seen {
			return v, nil
		}
		if !v.Running {
			if err := l.submitCheck(ctx, spec, &v); err != nil {
				return v, err
			}
			if err := l.keep(ctx, key, &v); err != nil {
				return v, err
			}
		}
		task, ended, err := l.awaitCheck(ctx, v.Task)
		if err != nil {
			return v, err
		}
		v.Running = false
		v.Runs++
		switch ended {
		case runPassed:
			v.Passed = true
		case runFailed:
			v.Failures++
			v.Tail = tail(task)
		}
		if err := l.keep(ctx, key, &v); err != nil {
			return v, err
		}
	}
}

// keep writes a verdict.
func (l *line) keep(ctx context.Context, key interlock.Key, v *Verdict) error {
	_, err := l.Client.Update(ctx, key, func(interlock.Document) (interlock.Write, error) {
		return client.Put(key, encode(v)), nil
	})
	return err
}

// runEnd is how a run of a check ended.
type runEnd int

const (
	runLost   runEnd = iota // its worker died, or it was cancelled: no verdict
	runPassed               // the worker finished the task
	runFailed               // the worker failed it
)

// submitCheck makes the task of a run. A merger that dies before the verdict names it leaves a run without a reader.
func (l *line) submitCheck(ctx context.Context, spec Check, v *Verdict) error {
	task, err := l.Client.Submit(ctx, client.TaskSpec{
		Queue: l.Name.CheckQueue(spec.Check), Payload: spec, MaxAttempts: 1,
		Purpose: fmt.Sprintf("check %s for %s", spec.Check, spec.Target),
	})
	v.Running, v.Task = true, task.ID.String()
	return err
}

// awaitCheck waits for the end of a run, by this merger or an earlier one.
func (l *line) awaitCheck(ctx context.Context, name string) (interlock.Task, runEnd, error) {
	id, err := interlock.ParseTaskID(name)
	if err != nil {
		return interlock.Task{}, 0, err
	}
	task, err := l.Client.Await(ctx, id)
	if forgotten(err) {
		return task, runLost, nil
	}
	settled, ok := errors.AsType[*client.TaskError](err)
	switch {
	case err == nil && report(task).Failed:
		return task, runFailed, nil
	case err == nil:
		return task, runPassed, nil
	case !ok:
		if errors.Is(context.Cause(ctx), errUnneeded) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, _ = l.Client.CancelTask(ctx, id, errUnneeded.Error())
		}
		return task, 0, err
	}
	task = settled.Task
	if n := len(task.Attempts); task.State == interlock.TaskDead && n > 0 && task.Attempts[n-1].EndedBy == "nack" {
		return task, runFailed, nil
	}
	return task, runLost, nil
}

// tail is the end of the report of a failed check.
func tail(t interlock.Task) string {
	text := cmp.Or(report(t).Tail, t.Reason)
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Reason != "" {
		text = t.Attempts[n-1].Reason
	}
	return strings.ToValidUTF8(text[max(0, len(text)-maxTail):], "")
}

// report is the result of a check's task. A result of another form is none.
func report(t interlock.Task) (r Report) {
	if json.Unmarshal(t.Result, &r) != nil {
		return Report{}
	}
	return r
}

const maxTail = 4 << 10

// failed is the outcome of a submission with a tree that fails its checks on the head.
func (l *line) failed(ctx context.Context, e *entry, against *Against) *Outcome {
	o := l.back(e, WhyChecks, against)
	id := train.ID(e.record.Task)
	if res, err := l.merged(ctx, l.target.Head, id, l.target.Sequence+1); err == nil {
		failures, _ := l.failures.get(res.landing.Tree)
		o.Checks = slices.Clone(failures)
	}
	alone := 0
	own, err := l.Files.Tree(ctx, e.record.Head)
	for i := range o.Checks {
		var v Verdict
		if err == nil {
			_, _ = read(ctx, l.Client, l.Name.VerdictKey(own, o.Checks[i].Name), &v)
		}
		if o.Checks[i].PassedAlone = v.Passed; v.Passed {
			alone++
		}
	}
	o.Message = fmt.Sprintf(
		"Your change is kept. On %s at landing %d its tree fails %s, and failed again when repeated. "+
			"To correct it: %s, and %s.",
		l.Name.Target, against.Sequence, checkNames(o.Checks), syncFirst(&e.record), submitAgain(&e.record),
	)
	if alone > 0 {
		o.Message += " The checks passed on your own tree: what has landed meanwhile and your change are bad together."
	}
	return o
}

func checkNames(list []CheckResult) string {
	if len(list) == 0 {
		return "its checks"
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = fmt.Sprintf("check %q", c.Name)
	}
	return strings.Join(names, ", ")
}
