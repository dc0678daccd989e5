package merger

import (
	"context"
	"path"
	"slices"
	"strings"

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
	landing   merge.Landing
	refusal   *merge.Refusal
	objection *objection
	allowed   []Why // what guards have found, and the author allows
	fault     *fault
}

func (r *stepResult) refused() bool { return r.refusal != nil || r.objection != nil || r.fault != nil }

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
	r := &l.records[id].record
	if err := l.working(ctx, string(id)); err != nil {
		return res, err
	}
	if res.fault, err = l.attempt(ctx, r.ID, func(ctx context.Context) (err error) {
		if res.landing, err = l.Boundary.Land(ctx, l.turn(r, parent, number, l.Checks)); err == nil {
			res.objection, res.allowed, err = l.objects(ctx, r, &res.landing)
		}
		return err
	}); err != nil {
		if res.refusal = refusal(err); res.refusal == nil {
			return res, err
		}
	}
	l.trees.set(at, res)
	return res, nil
}

// turn is the input of the boundary for a submission that needs some checks.
func (m *Merger) turn(r *Record, parent string, number uint64, checks []string) merge.Turn {
	t := merge.Turn{
		Submission: merge.Submission{
			ID: r.ID, Head: r.Head, Style: r.Style, Message: r.Message, Submitted: r.Submitted,
			Agent: r.Agent, Principal: r.Principal,
		},
		Sequence: number, Parent: parent, Staged: r.Admitted, Checks: strings.Join(checks, ", "), Committer: m.Committer,
	}
	switch {
	case r.From != "":
		t.Base = r.From
	case r.Style == merge.StyleSquash:
		t.Base = r.Base // a merge finds its own in history
	}
	return t
}

// sequences checks the versions of files that a landing adds in folders with numbered files.
func (l *line) sequences(ctx context.Context, landing *merge.Landing) (found []string, err error) {
	for _, folder := range l.numbered(landing.Paths) {
		target, err := l.Files.List(ctx, landing.Parent, folder)
		if err != nil {
			return nil, err
		}
		now, err := l.Files.List(ctx, landing.Commit, folder)
		if err != nil {
			return nil, err
		}
		problems := l.Guards.Sequences.Check(folder, target, now)
		heads, err := l.heads(ctx, landing, target, now)
		if err != nil {
			return nil, err
		}
		for _, p := range append(problems, heads...) {
			found = append(found, p.String())
		}
	}
	return found, nil
}

// numbered are the folders above paths in which versions may be guarded, in order.
func (l *line) numbered(paths []string) (folders []string) {
	for _, p := range paths {
		for folder := path.Dir(p); folder != "/"; folder = path.Dir(folder) {
			if l.Guards.Sequences.Covers(folder) {
				folders = append(folders, folder)
			}
			if folder == "." {
				break
			}
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// heads checks the new migrations of a folder that name the one before in their text.
func (l *line) heads(
	ctx context.Context, landing *merge.Landing, target, now []string,
) (problems []sequence.Problem, err error) {
	scripts := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(p string) bool { return path.Ext(p) != ".py" })
	}
	touched := slices.DeleteFunc(scripts(now), func(p string) bool { return !slices.Contains(landing.Paths, p) })
	if len(touched) == 0 {
		return nil, nil
	}
	after, err := l.Files.Read(ctx, landing.Commit, touched)
	if err != nil {
		return nil, err
	}
	linked := false
	for p, text := range after {
		linked = linked || sequence.Linked(p, text)
	}
	if !linked {
		return nil, nil
	}
	before, err := l.Files.Read(ctx, landing.Parent, scripts(target))
	if err == nil {
		after, err = l.Files.Read(ctx, landing.Commit, scripts(now))
	}
	return sequence.Heads(before, after), err
}
