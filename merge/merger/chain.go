package merger

import (
	"context"
	"path"
	"slices"

	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/sequence"
	"github.com/interlockdev/interlock/merge/train"
)

// step is one merge: a submission with a head onto a commit.
type step struct {
	parent string
	id     train.ID
	head   string
}

// stepResult is what a merge has made: a landing, or why there is none.
type stepResult struct {
	landing  merge.Landing
	refusal  *merge.Refusal
	problems []sequence.Problem
}

func (r *stepResult) refused() bool { return r.refusal != nil || len(r.problems) > 0 }

// tip is the end of a chain.
type tip struct{ commit, tree string }

// chain merges a chain onto the head. It reports false if a submission of it conflicts, and then the train knows it.
func (l *line) chain(ctx context.Context, ids []train.ID) (t tip, clean bool, err error) {
	t.commit = l.target.Head
	for i, id := range ids {
		res, err := l.merged(ctx, t.commit, id, l.target.Sequence+uint64(i)+1)
		if err != nil {
			return t, false, err
		}
		if res.refused() {
			l.train.Conflict(ids[:i], id)
			return t, false, nil
		}
		t = tip{res.landing.Commit, res.landing.Tree}
	}
	if len(ids) == 0 {
		t.tree, err = l.Files.Tree(ctx, t.commit)
	}
	return t, true, err
}

// merged merges a submission onto a commit, or remembers it.
func (l *line) merged(ctx context.Context, parent string, id train.ID, number uint64) (stepResult, error) {
	at := step{parent, id, l.records[id].record.Head}
	if res, ok := l.trees.get(at); ok {
		return res, nil
	}
	var res stepResult
	var err error
	res.landing, err = l.Boundary.Land(ctx, turn(&l.records[id].record, parent, number))
	if res.refusal = refusal(err); res.refusal == nil {
		if err != nil {
			return res, err
		}
		if res.problems, err = l.sequences(ctx, res.landing); err != nil {
			return res, err
		}
	}
	l.trees.set(at, res)
	return res, nil
}

// turn is the input of the boundary for a submission.
func turn(r *Record, parent string, number uint64) merge.Turn {
	t := merge.Turn{
		Submission: merge.Submission{ID: r.ID, Head: r.Head, Style: r.Style, Message: r.Message, Submitted: r.Submitted},
		Sequence:   number, Parent: parent, Staged: r.Admitted,
	}
	if r.Style == merge.StyleSquash {
		t.Base = r.Base // a merge finds its own in history, and the record has one for people
	}
	return t
}

// sequences checks the numbers of files that a landing adds in directories with numbered files.
func (l *line) sequences(ctx context.Context, landing merge.Landing) (problems []sequence.Problem, err error) {
	changed := map[string][]string{}
	for _, p := range landing.Paths {
		if d := path.Dir(p); sequence.Usual(d) {
			changed[d] = append(changed[d], p)
		}
	}
	for d, paths := range changed {
		target, err := l.Files.List(ctx, landing.Parent, d)
		if err != nil {
			return nil, err
		}
		now, err := l.Files.List(ctx, landing.Commit, d)
		if err != nil {
			return nil, err
		}
		added := slices.DeleteFunc(paths, func(p string) bool {
			return slices.Contains(target, p) || !slices.Contains(now, p)
		})
		problems = append(problems, sequence.Check(sequence.Detect(target), target, added)...)
	}
	slices.SortFunc(problems, func(a, b sequence.Problem) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return problems, nil
}
