package merger

import (
	"context"

	"github.com/interlockdev/interlock/merge/train"
)

// A submission that fails on the target may be good alone: then something that has landed meanwhile and the submission
// are bad together, and its author looks elsewhere than in its own change. So the checks that failed also run on the
// submission's own tree, beside the repetition of the failed tree, and it goes back when both have ended.

// aloneRun is the run of checks on the tree of one submission. left counts those that have not ended.
type aloneRun struct{ left int }

// suspect returns the last submission of a chain that failed, if the chain before it has passed.
func (l *line) suspect(chain []train.ID) (train.ID, bool) {
	parent := l.target.Head
	for i, id := range chain {
		if i == len(chain)-1 {
			break
		}
		e := l.records[id]
		if e == nil {
			return "", false
		}
		res, ok := l.trees.get(step{parent, id, e.record.Head})
		if !ok {
			return "", false
		}
		if _, passed := l.passed.get(res.landing.Tree); i == len(chain)-2 && !passed {
			return "", false
		}
		parent = res.landing.Commit
	}
	if len(chain) == 0 {
		return "", false
	}
	return chain[len(chain)-1], true
}

// checkAlone runs checks on a submission's own tree, once.
func (l *line) checkAlone(ctx context.Context, id train.ID, checks []CheckResult) {
	e := l.records[id]
	if e == nil || e.alone != nil {
		return
	}
	run := &aloneRun{left: len(checks)}
	e.alone = run
	head := l.target.Head
	for _, c := range checks {
		go func() {
			spec := Check{Repo: l.Name.Repo, Target: l.Name.Target, Check: c.Name, Commit: e.record.Head}
			tree, err := l.Files.Tree(ctx, e.record.Head)
			if spec.Tree = tree; err == nil {
				_, err = l.check(ctx, spec, head, 0)
			}
			l.send(ctx, func(context.Context) error {
				run.left--
				return err
			})
		}()
	}
}

// awaitsAlone reports whether a submission that must go back still has checks of its own tree to wait for.
func (l *line) awaitsAlone(ctx context.Context, outcomes []train.Outcome) bool {
	for _, o := range outcomes {
		e := l.records[o.ID]
		if e == nil || o.Reason != train.FailsCheck {
			continue
		}
		if res, err := l.merged(ctx, l.target.Head, o.ID, l.target.Sequence+1); err == nil {
			failures, _ := l.failures.get(res.landing.Tree)
			l.checkAlone(ctx, o.ID, failures)
		}
		if e.alone != nil && e.alone.left > 0 {
			return true
		}
	}
	return false
}
