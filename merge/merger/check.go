package merger

import (
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
	head := l.target.Head
	spec := Check{Repo: l.Name.Repo, Target: l.Name.Target, Commit: t.commit, Tree: t.tree}
	seen := map[string]int{}
	for _, name := range l.Checks {
		seen[name], _ = l.reported.get(t.tree + "/" + name)
	}
	go func() {
		defer cancel(nil)
		verdicts, err := l.checkAll(ctx, spec, head, seen)
		l.send(ctx, func(ctx context.Context) error {
			if l.checks[c.Number] == nil {
				return nil // it was cancelled
			}
			delete(l.checks, c.Number)
			if err != nil {
				return err
			}
			id, suspect := l.suspect(c.Chain)
			if failures := l.learn(c, t.tree, verdicts); suspect && len(failures) > 0 {
				l.checkAlone(ctx, id, failures)
			}
			return nil
		})
	}()
}

// learn tells the train how a check ended, and returns what failed.
func (l *line) learn(c train.Check, tree string, verdicts map[string]Verdict) (failures []CheckResult) {
	passed := true
	var passes []Pass
	for _, name := range l.Checks {
		v, ok := verdicts[name]
		if passed = passed && v.Passed; !ok || v.Passed {
			passes = append(passes, Pass{Check: name, Tree: tree, Task: v.Task, Principal: v.Principal})
			continue
		}
		l.reported.set(tree+"/"+name, v.Failures)
		failures = append(failures, CheckResult{Name: name, Tail: v.Tail})
	}
	l.failures.set(tree, failures)
	if passed {
		l.passed.set(tree, passes)
		for _, id := range c.Chain {
			if e := l.records[id]; e != nil {
				e.passed = passes
			}
		}
	}
	l.train.Verdict(c.Number, passed)
	return failures
}

// checkAll runs all checks of a tree beside each other, and ends the others when one has failed. seen has the number
// of failures of each check that are known already, and head is that of the target.
func (l *line) checkAll(
	ctx context.Context, spec Check, head string, seen map[string]int,
) (map[string]Verdict, error) {
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
			v, err := l.check(ctx, spec, head, seen[name])
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
// known, else that of another run. Each run ends: see run.go. Runs without a result are repeated. After maxLost in a
// row the tree and the head of the target are tried alone, to find out whether the tree or the workers are at fault.
func (l *line) check(ctx context.Context, spec Check, head string, seen int) (Verdict, error) {
	key := l.Name.VerdictKey(spec.Tree, spec.Check)
	for lost := 0; ; {
		v, err := l.verdict(ctx, key)
		if err != nil {
			return v, err
		}
		if v.Passed || v.Failures > seen {
			return v, nil
		}
		r, err := l.runCheck(ctx, key, spec, &v)
		if err != nil {
			return v, err
		}
		if r.end == runLost {
			if lost++; lost < maxLost {
				l.Log.Warn("a check has no result", "check", spec.Check, "tree", spec.Tree, "times", lost, "why", r.words)
			} else if r, err = l.blame(ctx, spec, head); err != nil {
				return v, err
			}
		}
		v.Running, v.Principal, v.Task = false, r.by, r.task
		switch r.end {
		case runPassed:
			v.Passed = true
			v.Runs++
		case runFailed:
			v.Failures++
			v.Runs++
			v.Tail = r.words
		}
		if err := l.keep(ctx, key, &v); err != nil {
			return v, err
		}
		if r.end == runLost {
			select {
			case <-ctx.Done():
				return v, context.Cause(ctx)
			case <-time.After(l.pause(lost)):
			}
		}
	}
}

// runCheck carries out a run of a check, or goes on with the one that a verdict names.
func (l *line) runCheck(ctx context.Context, key interlock.Key, spec Check, v *Verdict) (run, error) {
	end, err := l.quiet.beside(ctx)
	if err != nil {
		return run{}, err
	}
	defer end()
	if !v.Running {
		if err := l.submitCheck(ctx, spec, v); err != nil {
			return run{}, err
		}
		if err := l.keep(ctx, key, v); err != nil {
			return run{}, err
		}
	}
	return l.awaitCheck(ctx, spec.Check, v.Task)
}

// verdict reads what is known of a check of a tree. What no merger has written counts for nothing.
func (m *Merger) verdict(ctx context.Context, key interlock.Key) (v Verdict, err error) {
	d, err := m.Client.Document(ctx, key)
	if err != nil || d.Absent || json.Unmarshal(d.Body, &v) != nil || !m.wrote(d, v.By) {
		return Verdict{}, err
	}
	return v, nil
}

// wrote reports whether a merger of this or a later version has written a document that names it as by. Earlier
// versions let agents write such documents, and a server may have got credentials since.
func (m *Merger) wrote(d interlock.Document, by string) bool {
	return by == d.Principal && (by != "" || m.principal == "")
}

// keep writes a verdict.
func (l *line) keep(ctx context.Context, key interlock.Key, v *Verdict) error {
	v.By = l.principal
	_, err := l.Client.Update(ctx, key, func(interlock.Document) (interlock.Write, error) {
		return client.Put(key, encode(v)), nil
	})
	return err
}

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
